//! A real mail server, and one that never says a word.

use crate::process::{Process, free_address};
use crate::sample::program;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

/// aiosmtpd, which puts every mail into a folder as a file.
#[derive(Debug)]
pub struct Mailbox {
    _server: Process,
    address: SocketAddr,
    new: PathBuf,
}

impl Mailbox {
    pub async fn start(folder: &Path) -> Self {
        let (address, mails) = (free_address(), folder.join("mails"));
        let mut command = Command::new(program("MAIL_PYTHON"));
        command.args(["-m", "aiosmtpd", "--nosetuid", "--listen", &address.to_string()]);
        command.args(["--class", "aiosmtpd.handlers.Mailbox"]).arg(&mails).current_dir(folder);
        let server = Process::start(command, &folder.join("mail.log"), address).await;
        Self { _server: server, address, new: mails.join("new") }
    }

    pub fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    /// The mails to this address, whole.
    pub fn to(&self, address: &str) -> Vec<String> {
        let wanted = format!("X-RcptTo: {address}\n");
        self.all().into_iter().filter(|mail| mail.contains(&wanted)).collect()
    }

    pub fn all(&self) -> Vec<String> {
        let files = fs::read_dir(&self.new).into_iter().flatten().flatten();
        files.map(|file| fs::read_to_string(file.path()).unwrap().replace("\r\n", "\n")).collect()
    }
}

/// Takes connections and never answers.
#[derive(Debug)]
pub struct SilentPort(TcpListener);

impl SilentPort {
    pub fn open() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    pub fn url(&self) -> String {
        format!("smtp://{}", self.0.local_addr().unwrap())
    }
}
