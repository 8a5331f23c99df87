//! Runs the README's examples as written, but on free ports, in a temporary folder and with a binary that is already
//! built.

use crate::background::{Background, Folder, PATIENT};
use crate::markdown::{self, Fitting};
use crate::run::{TaskResult, read, root};
use crate::tools;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the examples with a server binary.
pub(crate) fn run(binary: &Path) -> TaskResult {
    let text = fs::read_to_string(root().join("README.md")).map_err(|error| format!("README.md: {error}"))?;
    if Command::new("curl").arg("--version").output().is_err() {
        tools::install(&["curl"])?;
    }
    let folder = Folder::new()?;
    let fitting = Fitting { binary: binary.to_owned(), ports: [free_port()?, free_port()?, free_port()?] };
    let examples = Examples { text, fitting, folder: folder.0.clone() };

    let mut server = Background::start(examples.in_shell(&examples.block("server")?))?;
    server.wait_for("token create")?;
    let mut client = Background::start(examples.in_shell(&examples.client_script()?))?;
    for text in [
        "verified: {\"invoice\": 42}",
        "\"responseStatusCode\":200",
        // This message was sent while the receiver was down.
        "verified: {\"invoice\": 43}",
        "accepted msg_",
        "verified: {\"invoice\":44}",
    ] {
        client.wait_for(text)?;
    }
    examples.outages_of_any_length()?;
    println!("README: server, curl, outage and Python examples work as written");
    Ok(())
}

/// Outages for which the README promises delivery under the policy of its example. The test has an outage of a few seconds;
/// for the longer ones it checks the preview of the same policy.
const OUTAGES: [&str; 4] = ["35s", "10m", "1h", "6d"];

struct Examples {
    text: String,
    fitting: Fitting,
    folder: PathBuf,
}

impl Examples {
    /// The code block after `<!-- run: name -->`, adapted to this run.
    fn block(&self, name: &str) -> Result<String, String> {
        let block = markdown::block(&self.text, name).map_err(|why| format!("README.md: {why}"))?;
        Ok(self.fitting.fit(&block))
    }

    /// Checks that the message arrives after each outage, under the policy of the curl example.
    fn outages_of_any_length(&self) -> TaskResult {
        let preview = self.block("preview")?;
        let policy = preview.split_whitespace().skip_while(|word| *word != "preview").nth(1);
        let policy = policy.ok_or("README.md previews no policy")?;
        if !self.block("curl")?.contains(&format!("\"policy\": \"{policy}\"")) {
            return Err(format!("README.md previews `{policy}`, which is not the policy of its endpoint"));
        }
        if !preview.contains(OUTAGES[0]) {
            return Err(format!("README.md does not preview an outage of {}", OUTAGES[0]));
        }
        for outage in OUTAGES {
            let printed = read(&mut self.in_shell(&preview.replace(OUTAGES[0], outage)))?;
            if !printed.contains("Arrives after ") {
                return Err(format!(
                    "README.md: under `{policy}` no message arrives after an outage of {outage}: {printed}"
                ));
            }
        }
        Ok(())
    }

    /// A background receiver must not outlive its example: the script waits for it and is ended.
    fn in_shell(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        // Without this, output of the client and the receiver would be mixed within a line.
        command.env_remove("PYTHONUNBUFFERED");
        command.args(["-c", &format!("set -euo pipefail\n{script}\nwait")]).current_dir(&self.folder);
        command.env(PATIENT.0, PATIENT.1);
        command
    }

    /// The curl example, then in the same terminal the outage and the Python example.
    fn client_script(&self) -> Result<String, String> {
        let python = tools::python("newest")?;
        let (curl, outage, example) = (self.block("curl")?, self.block("outage")?, self.block("python")?);
        let python = python.display();
        Ok(format!("{curl}\n{outage}\nexport SERVER TOKEN SECRET\n{python} - <<'END'\n{example}\nEND\n"))
    }
}

pub(crate) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| format!("no free port: {error}"))?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}
