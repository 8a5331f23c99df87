use crate::process::{Running, free_port, wait_until_open};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/smtp/server.py");
/// `cargo xtask servers` makes it of `smtp/requirements.txt`.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/python/smtp/bin/python");

/// An SMTP server (aiosmtpd) that keeps every mail. `smtp/server.py` says which recipients it refuses.
#[derive(Debug)]
pub struct Smtp {
    // `None` between a crash and the next start.
    running: Mutex<Option<Running>>,
    folder: PathBuf,
    port: u16,
    arguments: Vec<String>,
}

/// How a connection to it is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpTls {
    None,
    Implicit,
    StartTls,
}

impl Smtp {
    pub fn start() -> Self {
        Self::start_with(SmtpTls::None, "", None)
    }

    /// `certificate`: with its key, as PEM. `user`: with a password; others are refused.
    pub fn start_with(tls: SmtpTls, certificate: &str, user: Option<(&str, &str)>) -> Self {
        assert!(Path::new(PYTHON).exists(), "aiosmtpd is not installed: run `cargo xtask servers`");
        let folder = tempfile::Builder::new().prefix("aldaba-smtp-").tempdir().expect("a folder").keep();
        fs::write(folder.join("certificate.pem"), certificate).expect("the folder is ours");
        let tls = match tls {
            SmtpTls::None => "none",
            SmtpTls::Implicit => "implicit",
            SmtpTls::StartTls => "starttls",
        };
        let port = free_port();
        let mut arguments =
            vec![SCRIPT.to_owned(), "--port".into(), port.to_string(), "--tls".into(), tls.into()];
        arguments.extend(["--certificate".into(), "certificate.pem".into()]);
        if let Some((user, password)) = user {
            arguments.extend(["--user".into(), user.into(), "--password".into(), password.into()]);
        }
        let server = Self { running: Mutex::new(None), folder, port, arguments };
        server.restart();
        server
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends it as a crash would.
    pub fn kill(&self) {
        if let Some(running) = self.running.lock().expect("no test has panicked here").take() {
            running.crash();
        }
    }

    /// Starts it again on the same port, with what it had.
    pub fn restart(&self) {
        let mut running = self.running.lock().expect("no test has panicked here");
        assert!(running.is_none(), "it is running");
        let arguments: Vec<_> = self.arguments.iter().map(String::as_str).collect();
        *running = Some(Running::start(None, &self.folder, Path::new(PYTHON), &arguments));
        wait_until_open(self.port, &self.folder);
    }

    /// Every mail that it has got, as JSON: `from`, `to`, `headers`, `text`, `html`, `raw`, `encrypted`, `user`, `peer`.
    pub fn mails(&self) -> Vec<String> {
        let kept = fs::read_to_string(self.folder.join("mails.jsonl")).unwrap_or_default();
        // The last line may not be whole yet.
        let whole = kept.rfind('\n').map_or("", |end| &kept[..end]);
        whole.lines().map(str::to_owned).collect()
    }

    /// It cuts the connection after so many of the next mails, in place of an answer. It has them.
    pub fn break_after_data(&self, mails: u32) {
        fs::write(self.folder.join("break"), mails.to_string()).expect("the folder is ours");
    }

    /// From now on it answers no more at a step: `hello`, `sender`, `recipient` or `end`. Conversations that hang stay so.
    pub fn hang_at(&self, step: Option<&str>) {
        let file = self.folder.join("hang");
        match step {
            Some(step) => fs::write(file, step).expect("the folder is ours"),
            None => drop(fs::remove_file(file)),
        }
    }

    /// The steps at which conversations hang.
    pub fn hangs(&self) -> Vec<String> {
        let steps = fs::read_to_string(self.folder.join("hangs")).unwrap_or_default();
        steps.lines().map(str::to_owned).collect()
    }

    /// It offers to take several commands at once.
    pub fn pipeline(&self) {
        fs::write(self.folder.join("pipelines"), "").expect("the folder is ours");
    }

    /// Whether it refuses every sender for the time being.
    pub fn refuse(&self, refuses: bool) {
        let file = self.folder.join("refuse");
        match refuses {
            true => fs::write(file, "").expect("the folder is ours"),
            false => drop(fs::remove_file(file)),
        }
    }
}

impl Drop for Smtp {
    fn drop(&mut self) {
        match self.running.get_mut().ok().and_then(Option::take) {
            Some(running) => running.end(),
            None => drop(fs::remove_dir_all(&self.folder)),
        }
    }
}
