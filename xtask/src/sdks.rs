//! The official SDKs of Svix as clients of a real server, and schemathesis over the API's document.

use crate::background::Server;
use crate::run::{Outcome, cargo, root, show};
use crate::tools::{self, Node};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Deliveries go to receivers on this machine, with the headers that users of the SDKs expect.
const SETTINGS: [(&str, &str); 2] =
    [("ALDABA_ALLOW_NETWORKS", "127.0.0.0/8"), ("ALDABA_WIRE_PROFILE", "svix")];

/// A client: its name, the organization that is its own, and how its tests are run.
type Suite = (&'static str, &'static str, fn() -> Result<Command, String>);

const SUITES: [Suite; 4] = [
    ("python", "Python", || python_suite("newest")),
    ("python-1", "PythonOfTheFirstGeneration", || python_suite("first-generation")),
    ("javascript", "JavaScript", javascript_suite),
    ("rust", "Rust", rust_suite),
];

/// The suites with these names, or all. All of them run; what failed is told at the end.
pub(crate) fn run(binary: &Path, names: &[String]) -> Outcome {
    if let Some(unknown) = names.iter().find(|name| !SUITES.iter().any(|(known, ..)| name == known)) {
        let known = SUITES.map(|(name, ..)| name).join(", ");
        return Err(format!("there is no suite `{unknown}`; there are: {known}"));
    }
    let server = Server::start(binary, &SETTINGS)?;
    let chosen = SUITES.iter().filter(|(name, ..)| names.is_empty() || names.iter().any(|one| one == name));
    let mut failed = Vec::new();
    for (name, organization, suite) in chosen {
        println!("\n--- SDK: {name}");
        let mut command = suite()?;
        command.env("ALDABA_URL", &server.url).env("ALDABA_TOKEN", server.token(organization)?);
        if show(&mut command).is_err() {
            failed.push(*name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed with the SDKs: {}", failed.join(", "))) }
}

/// What the Rust suite needs, built with the rest.
pub(crate) fn build() -> Outcome {
    show(rust("test").arg("--no-run"))
}

fn python_suite(version: &str) -> Result<Command, String> {
    let mut command = Command::new(tools::python(version)?);
    command.args(["-m", "unittest", "discover", "--start-directory"]).arg(folder("python"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

fn javascript_suite() -> Result<Command, String> {
    let (node, package) = (Node::new()?, folder("javascript"));
    node.install(&package)?;
    let mut command = node.node();
    command.args(["--test", "--test-isolation=none", "--test-reporter=spec"]).current_dir(package);
    Ok(command)
}

fn rust_suite() -> Result<Command, String> {
    Ok(rust("test"))
}

/// It shares the folder of what is built, because both need much of the same.
fn rust(what: &str) -> Command {
    let mut command = cargo(&[what, "--locked", "--manifest-path"]);
    command.arg(folder("rust").join("Cargo.toml")).arg("--target-dir").arg(root().join("target"));
    command
}

/// Deliveries lead nowhere: whatever address is made up, nothing leaves this machine.
const NOWHERE: [(&str, &str); 2] =
    [("ALDABA_ALLOW_NETWORKS", "127.0.0.0/8"), ("ALDABA_EGRESS_PROXY", "http://127.0.0.1:9")];

/// Every operation of the API's document, with requests that are made up from it. What else is given goes to
/// schemathesis.
pub(crate) fn schemathesis(binary: &Path, examples: &str, more: &[String]) -> Outcome {
    let server = Server::start(binary, &NOWHERE)?;
    let program = tools::python("tools")?.with_file_name("schemathesis");
    let home = folder("schemathesis");
    let mut command = Command::new(program);
    command.arg("--config-file").arg(home.join("schemathesis.toml"));
    command.arg("run").arg(format!("{}/api/v1/openapi.json", server.url));
    command.args(["--max-examples", examples]).args(more);
    command.env("ALDABA_HOOKS", home.join("hooks.py"));
    command.env("ALDABA_URL", &server.url).env("ALDABA_TOKEN", server.token("Schemathesis")?);
    command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(std::env::temp_dir());
    show(&mut command)
}

fn folder(name: &str) -> PathBuf {
    root().join("sdks").join(name)
}
