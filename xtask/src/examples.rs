//! Programs that people copy: each a folder of its own under `examples/`, with tests against a real server. Those in Rust are
//! packages of the workspace, but for one.

use crate::run::{TaskResult, cargo, root, show};
use crate::stages::{PROFILE, program};
use crate::suites;
use crate::tools::{self, Node};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A workspace of its own: sqlx and rusqlite do not resolve together.
const APALIS: &str = "apalis-worker";

/// The queue of that one in PostgreSQL.
const ON_POSTGRES: &str = "--features=postgres";

/// Its tests in which it is a process. The others are about the layer, and see no difference between queues.
const AS_PROCESS: &str = "worker::";

/// What the samples of receivers have in common, and the tests of all of them.
const SHOP: &str = "shop";

/// The samples of receivers that Node.js runs.
const PACKAGES: [&str; 2] = ["express-receiver", "hono-receiver"];

/// Most of a test is waiting for something that must not come.
const AT_ONCE: &str = "--test-threads=8";

/// The tests of all of them.
pub(crate) fn run(binary: &Path) -> TaskResult {
    tools::servers()?;
    show(suites::workspace("test").args(["--bin", "actix-receiver", "--test", "shop", "--", AT_ONCE]))?;
    show(apart("test", &manifest()).args(["--", AT_ONCE]).env("ALDABA_BIN", binary))?;
    let on_postgres = [ON_POSTGRES, "--test=webhooks", "--", AT_ONCE, AS_PROCESS];
    show(apart("test", &manifest()).args(on_postgres).env("ALDABA_BIN", binary))?;
    receivers(binary)
}

/// The samples of receivers, as processes that are told where everything is.
fn receivers(binary: &Path) -> TaskResult {
    let node = Node::new()?;
    for package in PACKAGES {
        node.install(&folder(package))?;
    }
    let flask = tools::environment("flask-receiver", &folder("flask-receiver").join("requirements.txt"))?;
    let mails = tools::environment("mail-server", &folder(SHOP).join("mail-server.txt"))?;
    let mut tests = suites::workspace("test");
    tests.args(["--test", "samples"]).env("ALDABA_BIN", binary).env("NODE_BIN", node.path());
    tests.env("AXUM_SHOP_BIN", program("axum-shop"));
    show(tests.env("FLASK_PYTHON", flask).env("MAIL_PYTHON", mails))
}

/// What the tests of the one beside the workspace need, built with the rest.
pub(crate) fn build() -> TaskResult {
    show(apart("test", &manifest()).args([ON_POSTGRES, "--no-run"]))?;
    show(apart("test", &manifest()).arg("--no-run"))
}

/// Its formatting and lints.
pub(crate) fn lint() -> TaskResult {
    show(cargo(&["fmt", "--check", "--manifest-path"]).arg(manifest()))?;
    show(apart("clippy", &manifest()).args([ON_POSTGRES, "--all-targets", "--", "--deny", "warnings"]))?;
    show(apart("clippy", &manifest()).args(["--all-targets", "--", "--deny", "warnings"]))
}

fn folder(name: &str) -> PathBuf {
    root().join("examples").join(name)
}

pub(crate) fn manifest() -> PathBuf {
    folder(APALIS).join("Cargo.toml")
}

/// Does something with a workspace of its own. It shares the folder of what is built, because all need much of the same.
pub(crate) fn apart(what: &str, manifest: &Path) -> Command {
    let mut command = cargo(&[what, "--locked", PROFILE, "--manifest-path"]);
    command.arg(manifest).arg("--target-dir").arg(root().join("target"));
    command
}
