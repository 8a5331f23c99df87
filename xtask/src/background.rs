//! Processes and folders of the tests, which end with them.

use crate::run::read;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// A setting with which a server refuses nothing while other tests use the disk and the processors.
pub(crate) const PATIENT: (&str, &str) = ("ALDABA_QUEUE_MILLISECONDS", "30000");

/// A process in its own process group. Dropping it ends the whole group.
pub(crate) struct Background {
    child: Child,
    prints: mpsc::Receiver<String>,
    so_far: String,
}

impl Background {
    pub(crate) fn start(mut command: Command) -> Result<Self, String> {
        use std::os::unix::process::CommandExt;
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let mut output = child.stdout.take().ok_or("a process has no output")?;
        let (printed, prints) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                print!("{text}");
                let _ = printed.send(text);
            }
        });
        Ok(Self { child, prints, so_far: String::new() })
    }

    /// Waits until it has printed a text; returns all output so far.
    pub(crate) fn wait_for(&mut self, text: &str) -> Result<&str, String> {
        while !self.so_far.contains(text) {
            match self.prints.recv_timeout(WAIT_TIMEOUT) {
                Ok(more) => self.so_far.push_str(&more),
                Err(_) => return Err(format!("a process did not print `{text}` in time")),
            }
        }
        Ok(&self.so_far)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // The whole group: otherwise the children of a shell would survive.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-TERM", "--", &group]).status();
        let _ = self.child.wait();
    }
}

/// A temporary folder, removed when dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("aldaba-xtask-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server with its own data.
pub(crate) struct Server {
    // Dropped in this order: the process ends before its data are removed.
    _process: Background,
    folder: Folder,
    binary: PathBuf,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start(binary: &Path, settings: &[(&str, &str)]) -> Result<Self, String> {
        let folder = Folder::new()?;
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&folder.0);
        command.env("ALDABA_LOG", "error").env(PATIENT.0, PATIENT.1).envs(settings.iter().copied());
        let mut process = Background::start(command)?;
        let printed = process.wait_for("token create")?;
        let url = url(printed).ok_or(format!("the server printed no address: {printed}"))?;
        Ok(Self { _process: process, folder, binary: binary.to_owned(), url })
    }

    /// A token of the organization whose id ends like this. Each client has its own organization.
    pub(crate) fn token(&self, organization: &str) -> Result<String, String> {
        let org = format!("org_{organization:0>27}");
        let mut command = Command::new(&self.binary);
        command.args(["token", "create", "--org", &org, "--data"]).arg(&self.folder.0);
        Ok(read(&mut command)?.trim().to_owned())
    }
}

/// The address that a server has printed.
pub(crate) fn url(printed: &str) -> Option<String> {
    let rest = &printed[printed.find("http://")?..];
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "/.:".contains(c)))?;
    Some(rest[..end].trim_end_matches(['/', '.']).to_owned())
}
