use crate::SOON;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;

/// A process whose output lies in a file, killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    fn spawn(command: &mut Command, log: &Path) -> Self {
        let output = File::options().create(true).append(true).open(log).unwrap();
        command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self { child, log: log.to_owned() }
    }

    /// Starts it, and waits until it has ended with an error by itself; what it has printed.
    pub(crate) async fn refuse(mut command: Command, log: &Path) -> String {
        let mut process = Self::spawn(&mut command, log);
        let ended = || std::future::ready(process.child.try_wait().unwrap());
        let status = crate::eventually("its end", ended).await;
        assert!(!status.success(), "{command:?} has ended well:\n{}", process.log());
        process.log()
    }

    /// Starts it, and waits until something answers at the address.
    pub(crate) async fn start(mut command: Command, log: &Path, answers: SocketAddr) -> Self {
        let mut process = Self::spawn(&mut command, log);
        let open = async {
            while TcpStream::connect(answers).await.is_err() {
                if let Some(status) = process.child.try_wait().unwrap() {
                    panic!("{command:?} has ended ({status}):\n{}", process.log());
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let opened = tokio::time::timeout(SOON, open).await;
        assert!(opened.is_ok(), "{command:?} does not answer at {answers}:\n{}", process.log());
        process
    }

    /// What it has printed.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Below the ports of outgoing connections. One of those could take the port of a sample that is killed and started again, and
/// a sender that asks for it meanwhile could even be connected with itself.
const PORTS: Range<u16> = 20_000..30_000;

/// An address that nobody listens at in this moment.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = (std::process::id() as u16).wrapping_mul(37);
    loop {
        let offset = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % (PORTS.end - PORTS.start);
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, PORTS.start + offset)) {
            return listener.local_addr().unwrap();
        }
    }
}
