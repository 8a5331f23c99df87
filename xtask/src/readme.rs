//! Runs the README's examples as they are written, but on free ports, in a temporary folder and
//! with a binary that is already built.

use crate::background::{Background, Folder, PATIENT};
use crate::run::{Outcome, root};
use crate::tools;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The examples against a server binary.
pub(crate) fn run(binary: &Path) -> Outcome {
    let text = fs::read_to_string(root().join("README.md")).map_err(|error| format!("README.md: {error}"))?;
    if Command::new("curl").arg("--version").output().is_err() {
        tools::install(&["curl"])?;
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
        command.env(PATIENT.0, PATIENT.1);
        command
    }

    /// The curl example and, in the same terminal, the Python one.
    fn client_script(&self) -> Result<String, String> {
        let python = tools::python("newest")?;
        let (curl, example) = (self.block("curl")?, self.block("python")?);
        Ok(format!("{curl}\nexport TOKEN SECRET\n{} - <<'END'\n{example}\nEND\n", python.display()))
    }
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| format!("no free port: {error}"))?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}
