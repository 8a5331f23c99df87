//! The server as users run it: a process, its port, its command line.
//!
//! The driver is blocking and small, and shares no code with the server.

#![allow(dead_code, unused_imports, reason = "each test uses its own part of this module")]

mod client;
mod receiver;

pub(crate) use client::Client;
pub(crate) use receiver::Receiver;

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_aldaba");

/// A running server; killed without mercy when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts it on `data` and waits until it says that it listens.
    pub(crate) fn start(data: &Path, address: SocketAddr) -> Self {
        Self::start_with(data, address, &[])
    }

    /// The same with other settings.
    pub(crate) fn start_with(data: &Path, address: SocketAddr, settings: &[(&str, &str)]) -> Self {
        Self::spawn(data, address, &[], settings, Stdio::inherit())
    }

    /// The same with its log in a file.
    pub(crate) fn start_logging(
        data: &Path,
        address: SocketAddr,
        settings: &[(&str, &str)],
        log: &Path,
    ) -> Self {
        let log = std::fs::File::create(log).expect("a file for the log");
        Self::spawn(data, address, &[], settings, log.into())
    }

    /// The same with more arguments.
    pub(crate) fn start_arguments(data: &Path, address: SocketAddr, arguments: &[&str]) -> Self {
        Self::spawn(data, address, arguments, &[], Stdio::inherit())
    }

    fn spawn(
        data: &Path,
        address: SocketAddr,
        arguments: &[&str],
        settings: &[(&str, &str)],
        log: Stdio,
    ) -> Self {
        let mut child = Command::new(BINARY)
            .args(["serve", "--listen", &address.to_string(), "--data"])
            .arg(data)
            .args(arguments)
            .env("ALDABA_ALLOW_NETWORKS", "127.0.0.0/8")
            .env("ALDABA_LOG", "error")
            // Tests share their disk and processors with others, and are not about that.
            .env("ALDABA_QUEUE_MILLISECONDS", "30000")
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the server starts");
        let output = child.stdout.take().expect("it has an output");
        let mut lines = BufReader::new(output).lines();
        let listening = lines.by_ref().map_while(Result::ok).any(|line| line.contains(&address.to_string()));
        assert!(listening, "the server never said that it listens");
        // Keep its output flowing, so that a full pipe cannot stop it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    /// SIGKILL: what a power switch or the kernel's out-of-memory killer does to a process.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("the server is killed");
        self.child.wait().expect("the server is gone");
    }

    /// SIGTERM, and its exit code.
    pub(crate) fn stop(self) -> Option<i32> {
        self.terminate();
        self.ended()
    }

    /// SIGTERM.
    pub(crate) fn terminate(&self) {
        self.signal("-TERM");
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().expect("a signal is sent");
        assert!(sent.success(), "{signal}");
    }

    /// A line of what the kernel says about its memory.
    pub(crate) fn memory_kib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.unwrap_or_else(|| panic!("no {field} in {status}"))
    }

    /// Waits for its end, and returns its exit code.
    pub(crate) fn ended(mut self) -> Option<i32> {
        self.child.wait().expect("the server ends").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A token, as an operator's script makes one, before or after the first start.
pub(crate) fn token(data: &Path) -> String {
    let made = Command::new(BINARY).args(["init", "--data"]).arg(data).output().expect("the command runs");
    assert!(made.status.success(), "init: {}", String::from_utf8_lossy(&made.stderr));
    let output = Command::new(BINARY)
        .args(["token", "create", "--data"])
        .arg(data)
        .output()
        .expect("the command runs");
    assert!(output.status.success(), "token create: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a token is text").trim().to_owned()
}

/// Polls until a condition holds; fails after a minute.
pub(crate) fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    assert!(wait_at_most(Duration::from_secs(60), condition), "not within a minute: {what}");
}

/// Polls until a condition holds, and returns whether it does.
pub(crate) fn wait_at_most(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    const POLL_DELAY: Duration = Duration::from_millis(20);
    for _ in 0..limit.as_millis() / POLL_DELAY.as_millis() {
        if condition() {
            return true;
        }
        std::thread::sleep(POLL_DELAY);
    }
    condition()
}

pub(crate) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it has an address")
}
