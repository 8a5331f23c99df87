//! A server as a process that does not outlive whoever started it.

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

/// How often it is looked whether a server has begun or ended, and how many times.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS: usize = 1500;

/// Runs a program until its own input ends, which is when this process ends, however it does. It says the program's
/// id first, and clears the folder away at last.
const KEEPER: &str = r#"folder=$1; shift
"$@" </dev/null >"$folder/log" 2>&1 &
server=$!
echo $server
read -r how
kill -INT $server 2>/dev/null; kill -CONT $server 2>/dev/null; wait $server
[ "$how" = keep ] || rm -rf "$folder""#;

/// A program that is running.
#[derive(Debug)]
pub(crate) struct Running {
    keeper: Child,
    pub(crate) server: i32,
}

impl Running {
    /// Starts it as this user; `folder` is its own, and is removed with it.
    pub(crate) fn start(user: Option<u32>, folder: &Path, program: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(folder).arg(program).args(arguments);
        // A group of its own: a signal from the terminal is for the tests, which then end this.
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

    /// Ends it at once, as a crash would, and keeps the folder.
    pub(crate) fn crash(self) {
        use std::io::Write;
        // Its own children too: one that outlives it keeps its memory, and then it does not start again. A server that
        // stands still has no more of them.
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

    /// Stops it and its children where they are.
    pub(crate) fn pause_all(&self) {
        pause(self.server);
        self.signal_children(Signal::STOP);
    }

    /// Lets them go on.
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

    /// Ends it, and removes its folder.
    pub(crate) fn end(mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Waits until a process runs no more, whether or not somebody has taken note of its end.
fn wait_until_dead(id: Pid) {
    let id = id.as_raw_nonzero();
    for _ in 0..LOOKS {
        let status = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // Behind its name, which is in brackets: its state, Z for one that has ended.
        let state = status.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
        if matches!(state, None | Some("Z" | "X")) {
            return;
        }
        sleep(LOOK);
    }
    panic!("process {id} was killed and does not end");
}

/// Where ports are taken from: below those of outgoing connections. One of those, knocking again and again at a server that
/// is down, would in the end get that very port for itself, and then it knocks at its own door.
const PORTS: Range<u16> = 20_000..30_000;

/// A port that nobody listens on at this moment, and that this process has not given away before.
pub(crate) fn free_port() -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let count = u32::from(PORTS.end - PORTS.start);
    // Tests that run side by side begin at different places.
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

/// Waits until something answers there.
pub(crate) fn wait_until_open(port: u16, folder: &Path) {
    for _ in 0..LOOKS {
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return;
        }
        sleep(LOOK);
    }
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    panic!("a server does not answer on port {port}; it said:\n{log}");
}

/// Ends a process as `kill -9` does.
pub fn kill(id: i32) {
    signal(id, Signal::KILL);
}

/// Stops a process where it is, as `kill -STOP` does.
pub fn pause(id: i32) {
    signal(id, Signal::STOP);
}

/// Lets a paused process go on.
pub fn resume(id: i32) {
    signal(id, Signal::CONT);
}

fn signal(id: i32, signal: Signal) {
    let id = Pid::from_raw(id).expect("a process has a number");
    kill_process(id, signal).expect("the process is there");
}
