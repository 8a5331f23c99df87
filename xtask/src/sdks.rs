//! The official SDKs of Svix against a real server, and schemathesis with the API's document.

use crate::background::{Folder, Server};
use crate::run::{TaskResult, read, root, show};
use crate::suites;
use crate::tools::{self, Node};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Allows deliveries to receivers on this machine, with the headers that users of the SDKs expect.
const SETTINGS: [(&str, &str); 2] =
    [("ALDABA_ALLOW_NETWORKS", "127.0.0.0/8"), ("ALDABA_WIRE_PROFILE", "svix")];

/// An SDK, with the commands that run its tests and list its methods.
struct Sdk {
    name: &'static str,
    /// The end of its organization's id. Each SDK has its own organization.
    organization: &'static str,
    tests: fn() -> Result<Command, String>,
    methods: fn() -> Result<Command, String>,
}

const SDKS: [Sdk; 4] = [
    Sdk {
        name: "python",
        organization: "Python",
        tests: || python_tests("newest"),
        methods: || python_methods("newest"),
    },
    Sdk {
        name: "python-1",
        organization: "Python1",
        tests: || python_tests("first-generation"),
        methods: || python_methods("first-generation"),
    },
    Sdk {
        name: "javascript",
        organization: "JavaScript",
        tests: javascript_tests,
        methods: || javascript(&["methods.mjs"]),
    },
    Sdk { name: "rust", organization: "Rust", tests: rust_tests, methods: rust_methods },
];

/// The table of methods in docs/sdks.md, as one more suite.
const METHODS: &str = "methods";

/// What the server exports, decoded with the official schema of OTLP.
const TRACES: &str = "traces";

/// The Python SDK against a server with TLS.
const TLS: &str = "tls";

/// Runs the suites with these names, or all, and reports the failed ones at the end. `--write` writes the table of
/// methods, which is otherwise only compared.
pub(crate) fn run(binary: &Path, arguments: &[String]) -> TaskResult {
    let (flags, names): (Vec<_>, Vec<_>) = arguments.iter().partition(|word| word.starts_with("--"));
    let known: Vec<_> = SDKS.iter().map(|sdk| sdk.name).chain([METHODS, TRACES, TLS]).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("unknown suite `{unknown}`; expected one of: {}", known.join(", ")));
    }
    let wanted = |name: &str| names.is_empty() || names.iter().any(|one| *one == name);
    let server = Server::start(binary, &SETTINGS)?;
    let mut failed = Vec::new();
    for sdk in SDKS.iter().filter(|sdk| wanted(sdk.name)) {
        println!("\n--- SDK: {}", sdk.name);
        let mut command = (sdk.tests)()?;
        command.env("ALDABA_URL", &server.url).env("ALDABA_TOKEN", server.token(sdk.organization)?);
        if show(&mut command).is_err() {
            failed.push(sdk.name);
        }
    }
    if wanted(METHODS) && methods(&server, &flags).inspect_err(|why| eprintln!("{why}")).is_err() {
        failed.push(METHODS);
    }
    if wanted(TRACES) && traces(binary).is_err() {
        failed.push(TRACES);
    }
    if wanted(TLS) && tls(binary).is_err() {
        failed.push(TLS);
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed SDKs: {}", failed.join(", "))) }
}

/// Starts a server of its own, with a collector.
fn traces(binary: &Path) -> TaskResult {
    println!("\n--- traces");
    let home = folder("traces");
    let mut command = Command::new(tools::environment(TRACES, &home.join("packages.txt"))?);
    command.arg(home.join("test_traces.py")).env("ALDABA_BINARY", binary);
    show(command.env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Starts servers of its own, with certificates.
fn tls(binary: &Path) -> TaskResult {
    println!("\n--- TLS");
    let mut command = python("newest")?;
    // The SDK cannot close its connections.
    command.args(["-W", "ignore::ResourceWarning"]);
    show(command.arg(folder("tls").join("test_tls.py")).env("ALDABA_BINARY", binary))
}

/// Compares the table of methods in docs/sdks.md with the SDKs and the server, or writes it.
fn methods(server: &Server, flags: &[&String]) -> TaskResult {
    let lists = Folder::new()?;
    for sdk in &SDKS {
        let list = read(&mut (sdk.methods)()?)?;
        fs::write(lists.0.join(sdk.name), list).map_err(|error| format!("{}: {error}", sdk.name))?;
    }
    let mut command = Command::new(tools::python("tools")?);
    command.arg(folder("methods.py")).arg(&server.url).arg(root().join("docs/sdks.md")).arg(&lists.0);
    show(command.args(flags))
}

fn python(version: &str) -> Result<Command, String> {
    let mut command = Command::new(tools::python(version)?);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

fn python_tests(version: &str) -> Result<Command, String> {
    let mut command = python(version)?;
    // The SDK cannot close its connections.
    command.args(["-W", "ignore::ResourceWarning", "-m", "unittest", "discover", "--start-directory"]);
    command.arg(folder("python"));
    Ok(command)
}

fn python_methods(version: &str) -> Result<Command, String> {
    let mut command = python(version)?;
    command.arg(folder("python/methods.py"));
    Ok(command)
}

fn javascript(arguments: &[&str]) -> Result<Command, String> {
    let (node, package) = (Node::new()?, folder("javascript"));
    node.install(&package)?;
    let mut command = node.node();
    command.args(arguments).current_dir(package);
    Ok(command)
}

fn javascript_tests() -> Result<Command, String> {
    // In one process: the tests share a receiver.
    javascript(&["--test", "--test-isolation=none", "--test-reporter=spec"])
}

fn rust_tests() -> Result<Command, String> {
    let mut command = suites::workspace("test");
    command.args(["--test", "sdk"]);
    Ok(command)
}

fn rust_methods() -> Result<Command, String> {
    let mut command = python("tools")?;
    command.arg(folder("rust/methods.py"));
    Ok(command)
}

/// The time limit of each request of schemathesis, in seconds.
const TIMEOUT_SECONDS: &str = "1800";

/// Tests every operation of the API's document with generated requests. Further arguments are passed to schemathesis.
pub(crate) fn schemathesis(binary: &Path, examples: &str, more: &[String]) -> TaskResult {
    let server = Server::start(binary, &SETTINGS)?;
    let program = tools::python("tools")?.with_file_name("schemathesis");
    let home = folder("schemathesis");
    let mut command = Command::new("timeout");
    command.arg(TIMEOUT_SECONDS).arg(program);
    command.arg("--config-file").arg(home.join("schemathesis.toml"));
    command.arg("run").arg(format!("{}/api/v1/openapi.json", server.url));
    command.args(["--max-examples", examples]).args(more);
    command.env("ALDABA_HOOKS", home.join("hooks.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("ALDABA_URL", &server.url).env("ALDABA_TOKEN", server.token("Schemathesis")?);
    // Its files are removed with the folder.
    let scratch = Folder::new()?;
    show(command.current_dir(&scratch.0))
}

fn folder(name: &str) -> PathBuf {
    root().join("sdks").join(name)
}
