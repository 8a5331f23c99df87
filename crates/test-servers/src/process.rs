//! A server as a child process that ends with its parent.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// The delay between two checks whether a server has started or ended, and the maximum number of checks.
const POLL_DELAY: Duration = Duration::from_millis(20);
const MAX_POLLS: usize = 1500;

/// Runs a program until its own input ends, that is until this process ends. It prints the program's id first, and removes
/// the folder at the end.
const KEEPER: &str = r#"folder=$1; shift
"$@" </dev/null >"$folder/log" 2>&1 &
server=$!
echo $server
read -r how
kill -INT $server 2>/dev/null; kill -CONT $server 2>/dev/null; wait $server
[ "$how" = keep ] || rm -rf "$folder""#;

/// A running program.
#[derive(Debug)]
pub(crate) struct Running {
    keeper: Child,
    pub(crate) server: i32,
}

impl Running {
    /// Starts a program as this user. `folder` belongs to it and is removed with it.
    pub(crate) fn start(user: Option<u32>, folder: &Path, program: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(folder).arg(program).args(arguments);
        // In its own process group: a signal from the terminal ends the tests, which then end this.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::null()).current_dir(folder);
        if let Some(user) = user {
            command.uid(user);
        }
        let mut keeper = command.spawn().expect("a shell starts");
        let mut line = String::new();
        let said = keeper.stdout.take().expect("it is piped");
        BufReader::new(said).read_line(&mut line).expect("the shell says the server's id");
        let server = line.trim().parse().expect("it is a number");
        Self { keeper, server }
    }

    /// Kills the program like a crash, and keeps the folder.
    pub(crate) fn crash(self) {
        use std::io::Write;
        // Kills the children too: a surviving child keeps the shared memory and prevents a restart. A paused server starts no
        // more children.
        pause(self.server);
        let children = self.children();
        kill(self.server);
        for child in &children {
            // Some have ended meanwhile.
            let _ = kill_process(*child, Signal::KILL);
        }
        children.into_iter().for_each(wait_until_dead);
        let mut keeper = self.keeper;
        let mut input = keeper.stdin.take().expect("it is piped");
        let _ = input.write_all(b"keep\n");
        drop(input);
        let _ = keeper.wait();
    }

    /// Pauses the program and its children.
    pub(crate) fn pause_all(&self) {
        pause(self.server);
        self.signal_children(Signal::STOP);
    }

    /// Resumes the program and its children.
    pub(crate) fn resume_all(&self) {
        self.signal_children(Signal::CONT);
        resume(self.server);
    }

    fn signal_children(&self, signal: Signal) {
        for child in self.children() {
            // Some have ended meanwhile.
            let _ = kill_process(child, signal);
        }
    }

    fn children(&self) -> Vec<Pid> {
        let children = format!("/proc/{0}/task/{0}/children", self.server);
        let children = fs::read_to_string(children).unwrap_or_default();
        children.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().unwrap_or(0))).collect()
    }

    /// Ends the program and removes its folder.
    pub(crate) fn end(mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Waits until a process has ended, even if it is not reaped yet.
fn wait_until_dead(id: Pid) {
    let id = id.as_raw_nonzero();
    for _ in 0..MAX_POLLS {
        let status = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // The state follows the name in brackets; Z means ended.
        let state = status.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
        if matches!(state, None | Some("Z" | "X")) {
            return;
        }
        sleep(POLL_DELAY);
    }
    panic!("process {id} was killed and has not ended");
}

/// The range of ports, below those of outgoing connections. A client that reconnects repeatedly to a stopped server could
/// otherwise get the server's port as its own, and connect to itself.
const PORTS: Range<u16> = 20_000..30_000;

/// A free port that this process has not used before.
pub(crate) fn free_port() -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let count = u32::from(PORTS.end - PORTS.start);
    // Concurrent tests begin at different ports.
    let first = std::process::id().wrapping_mul(97);
    for _ in 0..count {
        let place = first.wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed)) % count;
        let port = PORTS.start + u16::try_from(place).expect("it is one of them");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("none of the ports {PORTS:?} is free");
}

/// Waits until a server accepts connections on a port.
pub(crate) fn wait_until_open(port: u16, folder: &Path) {
    for _ in 0..MAX_POLLS {
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return;
        }
        sleep(POLL_DELAY);
    }
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    panic!("a server does not answer on port {port}; its log:\n{log}");
}

/// Ends a process as `kill -9` does.
pub fn kill(id: i32) {
    signal(id, Signal::KILL);
}

/// Pauses a process, as `kill -STOP` does.
pub fn pause(id: i32) {
    signal(id, Signal::STOP);
}

/// Resumes a paused process.
pub fn resume(id: i32) {
    signal(id, Signal::CONT);
}

fn signal(id: i32, signal: Signal) {
    let id = Pid::from_raw(id).expect("a process has a number");
    kill_process(id, signal).expect("the process is there");
}
