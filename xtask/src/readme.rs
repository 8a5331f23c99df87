//! Runs the README's examples as they are written, but on free ports, in a temporary folder and
//! with a binary that is already built.

use crate::run::{Outcome, root, show};
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// The examples against a server binary.
pub(crate) fn run(binary: &Path) -> Outcome {
    let text = fs::read_to_string(root().join("README.md")).map_err(|error| format!("README.md: {error}"))?;
    if Command::new("curl").arg("--version").output().is_err() {
        install(&["curl"])?;
    }
    let folder = Folder::new()?;
    let examples = Examples {
        text,
        binary: binary.to_owned(),
        folder: folder.0.clone(),
        ports: [free_port()?, free_port()?],
    };

    let mut server = Background::start(examples.in_shell(&examples.block("server")?))?;
    server.wait_for("http://")?;
    let mut client = Background::start(examples.in_shell(&examples.client_script()?))?;
    for text in [
        "verified: {\"invoice\": 42}",
        "\"responseStatusCode\":204",
        "accepted msg_",
        "verified: {\"invoice\":43}",
    ] {
        client.wait_for(text)?;
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

    /// A background receiver must not outlive its example: the script waits for it and is ended.
    fn in_shell(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("set -euo pipefail\n{script}\nwait")]).current_dir(&self.folder);
        command
    }

    /// The curl example and, in the same terminal, the Python one.
    fn client_script(&self) -> Result<String, String> {
        let python = python()?;
        let (curl, example) = (self.block("curl")?, self.block("python")?);
        Ok(format!("{curl}\nexport TOKEN SECRET\n{} - <<'END'\n{example}\nEND\n", python.display()))
    }
}

/// A Python environment with the official SDK, made once.
fn python() -> Result<PathBuf, String> {
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
    prints: mpsc::Receiver<String>,
    so_far: String,
}

impl Background {
    fn start(mut command: Command) -> Result<Self, String> {
        use std::os::unix::process::CommandExt;
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(|error| format!("cannot start an example: {error}"))?;
        let mut output = child.stdout.take().ok_or("an example has no output")?;
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

    fn wait_for(&mut self, text: &str) -> Outcome {
        while !self.so_far.contains(text) {
            match self.prints.recv_timeout(PATIENCE) {
                Ok(more) => self.so_far.push_str(&more),
                Err(_) => return Err(format!("an example of the README never printed `{text}`")),
            }
        }
        Ok(())
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
