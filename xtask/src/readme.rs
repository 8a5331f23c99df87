//! Runs the README's examples as they are written, but on free ports, in a temporary folder and
//! with a binary that is already built.

use crate::run::{Outcome, read, root, show};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// The examples against a server binary.
pub(crate) fn run(binary: &Path) -> Outcome {
    let text = fs::read_to_string(root().join("README.md")).map_err(|error| format!("README.md: {error}"))?;
    let folder = Folder::new()?;
    let examples = Examples {
        text,
        binary: binary.to_owned(),
        folder: folder.0.clone(),
        ports: [free_port()?, free_port()?],
    };

    let server = Background::start(examples.shell("server")?)?;
    server.wait_for("http://")?;
    let receiver = Background::start(examples.shell("curl")?)?;
    receiver.wait_for("verified: {\"invoice\": 42}")?;
    receiver.wait_for("\"responseStatusCode\":204")?;

    let python = examples.python()?;
    let printed = read(&mut examples.in_python(&python)?)?;
    if !printed.starts_with("accepted msg_") {
        return Err(format!("the Python example printed `{printed}`"));
    }
    println!("README: server, curl and Python examples work as written");
    Ok(())
}

struct Examples {
    text: String,
    binary: PathBuf,
    folder: PathBuf,
    ports: [u16; 2],
}

impl Examples {
    /// The code block after `<!-- run: name -->`, made to fit this run.
    fn block(&self, name: &str) -> Result<String, String> {
        let mark = format!("<!-- run: {name} -->");
        let rest = self.text.split_once(&mark).ok_or(format!("README.md has no `{mark}`"))?.1;
        let body = rest.split_once("```").and_then(|(_, rest)| rest.split_once('\n')).map(|(_, body)| body);
        let block = body.and_then(|body| body.split_once("```")).ok_or(format!("no code after `{mark}`"))?.0;
        let [server, receiver] = self.ports;
        let beside = self.binary.with_file_name("examples");
        Ok(block
            .replace(
                "cargo run --release --example receiver --",
                &beside.join("receiver").display().to_string(),
            )
            .replace("cargo run --release --", &self.binary.display().to_string())
            .replace("-- serve", "serve")
            .replace(" serve", &format!(" serve --listen 127.0.0.1:{server}"))
            .replace("127.0.0.1:8071", &format!("127.0.0.1:{server}"))
            .replace("127.0.0.1:9000", &format!("127.0.0.1:{receiver}")))
    }

    fn shell(&self, name: &str) -> Result<Command, String> {
        let mut command = Command::new("bash");
        // A background receiver must not outlive its example: the script waits for it and is ended.
        let script = format!("set -euo pipefail\n{}\nwait", self.block(name)?);
        command.args(["-c", &script]).current_dir(&self.folder);
        Ok(command)
    }

    /// A Python environment with the official SDK, made once.
    fn python(&self) -> Result<PathBuf, String> {
        let home = root().join("target/readme-python");
        let python = home.join("bin/python");
        if !home.join("ready").exists() {
            let make = || show(Command::new("python3").args(["-m", "venv"]).arg(&home));
            make().or_else(|_| install(&["python3", "python3-venv"]).and_then(|()| make()))?;
            show(Command::new(&python).args(["-m", "pip", "install", "--quiet", "svix"]))?;
            fs::write(home.join("ready"), "").map_err(|error| format!("{}: {error}", home.display()))?;
        }
        Ok(python)
    }

    fn in_python(&self, python: &Path) -> Result<Command, String> {
        let token = read(Command::new(&self.binary).args(["token", "create"]).current_dir(&self.folder))?;
        let mut command = Command::new(python);
        command.args(["-c", &self.block("python")?]).current_dir(&self.folder).env("TOKEN", token.trim());
        Ok(command)
    }
}

/// Debian packages that the tests need and that are not there.
fn install(packages: &[&str]) -> Outcome {
    show(Command::new("apt-get").args(["update", "--quiet"]))?;
    show(
        Command::new("apt-get")
            .args(["install", "--quiet", "--yes", "--no-install-recommends"])
            .args(packages)
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| format!("no free port: {error}"))?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}

/// A process in a group of its own, ended with everything it started when this is dropped.
struct Background {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Background {
    fn start(mut command: Command) -> Result<Self, String> {
        use std::os::unix::process::CommandExt;
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(|error| format!("cannot start an example: {error}"))?;
        let output = child.stdout.take().ok_or("an example has no output")?;
        let (line, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for read in BufReader::new(output).lines().map_while(Result::ok) {
                println!("  {read}");
                let _ = line.send(read);
            }
        });
        Ok(Self { child, lines })
    }

    fn wait_for(&self, text: &str) -> Outcome {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return Ok(()),
                Ok(_) => {}
                Err(_) => return Err(format!("an example of the README never printed `{text}`")),
            }
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // The group, because the shell's own children would otherwise stay.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-TERM", "--", &group]).status();
        let _ = self.child.wait();
    }
}

/// A temporary folder, removed when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("aldaba-readme-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
