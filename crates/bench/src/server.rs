//! The server process under test.

use crate::Result;
use crate::api::Api;
use crate::clock::{self, Nanos};
use crate::interrupt;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A start on a large folder reads much data.
const WAIT_TIMEOUT: Duration = Duration::from_secs(120);
/// The unit of CPU time in `/proc`, the same on every Linux.
const TICKS_A_SECOND: f64 = 100.0;

/// How to start the server.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    binary: PathBuf,
    data: PathBuf,
    settings: Vec<(&'static str, String)>,
    resolv_conf: Option<PathBuf>,
    cores: Option<&'static str>,
    /// A program that runs it, with its arguments.
    under: Vec<String>,
}

impl Launch {
    pub(crate) fn new(binary: &Path, data: &Path) -> Self {
        let settings = vec![("ALDABA_ALLOW_NETWORKS", "127.0.0.0/8".into()), ("ALDABA_LOG", "error".into())];
        Self {
            binary: binary.to_owned(),
            data: data.to_owned(),
            settings,
            resolv_conf: None,
            cores: None,
            under: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, variable: &'static str, value: usize) -> Self {
        self.settings.push((variable, value.to_string()));
        self
    }

    /// With other name servers than the machine's: a mount that only the server sees, which needs root.
    pub(crate) fn with_name_servers(mut self, resolv_conf: &Path) -> Self {
        self.resolv_conf = Some(resolv_conf.to_owned());
        self
    }

    /// On these cores only.
    pub(crate) fn on(mut self, cores: &'static str) -> Self {
        self.cores = Some(cores);
        self
    }

    /// Run by another program, such as a profiler.
    pub(crate) fn under(mut self, words: &[&str]) -> Self {
        self.under = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Starts the server and waits until it prints its address.
    pub(crate) fn start(&self) -> Result<Server> {
        let init = Command::new(&self.binary).args(["init", "--data"]).arg(&self.data).output()?;
        if !init.status.success() {
            return Err(format!("init: {}", String::from_utf8_lossy(&init.stderr)).into());
        }
        let token = self.token(&[])?;
        let mut command = self.command();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&self.data);
        let spawned_at = clock::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("the server has no output")?;
        let pid = Pid::from_child(&child);
        interrupt::watch(pid);
        let mut server = Server { child, pid, spawned_at, api: None };
        let (found, finds) = mpsc::channel();
        std::thread::spawn(move || {
            // Reads all output, so that a full pipe cannot stop the server.
            for line in BufReader::new(output).lines().map_while(std::io::Result::ok) {
                if let Some(address) =
                    line.split_once("http://").and_then(|(_, address)| address.parse().ok())
                {
                    let _ = found.send(address);
                }
            }
        });
        let address: SocketAddr =
            finds.recv_timeout(WAIT_TIMEOUT).map_err(|_| "the server did not print its address")?;
        server.api = Some(Api::new(address, &token));
        Ok(server)
    }

    fn command(&self) -> Command {
        let mut command = match (&self.resolv_conf, self.cores) {
            (None, None) => match self.under.split_first() {
                None => Command::new(&self.binary),
                Some((program, words)) => {
                    let mut command = Command::new(program);
                    command.args(words).arg(&self.binary);
                    command
                }
            },
            (None, Some(cores)) => {
                let mut command = Command::new("taskset");
                command.args(["-c", cores]).arg(&self.binary);
                command
            }
            (Some(resolv_conf), _) => {
                let script = "mount --bind \"$1\" /etc/resolv.conf && shift && exec \"$@\"";
                let mut command = Command::new("unshare");
                command.args(["--mount", "--", "sh", "-c", script, "sh"]).arg(resolv_conf).arg(&self.binary);
                command
            }
        };
        // Variables of the caller's shell must not change the measurement.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ALDABA_") {
                command.env_remove(name);
            }
        }
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
    }

    /// A token for another organization on this folder.
    pub(crate) fn as_organization(&self, org: &str, server: &Server) -> Result<Api> {
        Ok(server.api()?.with_token(&self.token(&["--org", org])?))
    }

    fn token(&self, whose: &[&str]) -> Result<String> {
        let output = Command::new(&self.binary)
            .args(["token", "create", "--data"])
            .arg(&self.data)
            .args(whose)
            .output()?;
        if !output.status.success() {
            return Err(format!("token create: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

/// A running server; killed when dropped.
pub(crate) struct Server {
    child: Child,
    pid: Pid,
    pub(crate) spawned_at: Nanos,
    api: Option<Api>,
}

impl Server {
    pub(crate) fn api(&self) -> Result<&Api> {
        self.api.as_ref().ok_or_else(|| "the server has not started".into())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM and waits for the end, after which everything is in the database file.
    pub(crate) fn stop(mut self) -> Result<()> {
        kill_process(self.pid, Signal::TERM)?;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
    }

    /// Sends SIGKILL, like the kernel's out-of-memory killer.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// Resident memory in bytes.
    pub(crate) fn resident(&self) -> Result<f64> {
        self.memory("VmRSS:")
    }

    /// The peak of resident memory in bytes.
    pub(crate) fn peak(&self) -> Result<f64> {
        self.memory("VmHWM:")
    }

    fn memory(&self, field: &str) -> Result<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix(field)).ok_or("no such field in status")?;
        let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kibibytes * 1024.0)
    }

    /// CPU seconds of the process, in user and kernel mode.
    pub(crate) fn cpu(&self) -> Result<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the program may contain any character; the fields after it have fixed positions.
        let (_, fields) = text.rsplit_once(')').ok_or("no name in stat")?;
        let ticks: Vec<&str> = fields.split_whitespace().skip(11).take(2).collect();
        let ticks = ticks.iter().map(|ticks| ticks.parse::<f64>()).sum::<std::result::Result<f64, _>>()?;
        Ok(ticks / TICKS_A_SECOND)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        interrupt::forget(self.pid);
    }
}
