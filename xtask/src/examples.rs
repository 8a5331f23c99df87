//! Programs to copy: each has its folder under `examples/`, with tests against a real server. The Rust ones are packages
//! of the workspace, except one.

use crate::run::{TaskResult, cargo, root, show};
use crate::stages::{PROFILE, program};
use crate::suites;
use crate::tools::{self, Node};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A separate workspace: sqlx and rusqlite do not resolve together.
const APALIS: &str = "apalis-worker";

/// The feature for its queue in PostgreSQL.
const ON_POSTGRES: &str = "--features=postgres";

/// The tests that run it as a process. The others test the layer, which is the same for all queues.
const AS_PROCESS: &str = "worker::";

/// The shared code and tests of the sample receivers.
const SHOP: &str = "shop";

/// The sample receivers for Node.js.
const PACKAGES: [&str; 2] = ["express-receiver", "hono-receiver"];

/// Tests mostly wait, so they can run concurrently.
const AT_ONCE: &str = "--test-threads=8";

/// Runs the tests of all examples.
pub(crate) fn run(binary: &Path) -> TaskResult {
    tools::servers()?;
    show(suites::workspace("test").args(["--bin", "actix-receiver", "--test", "shop", "--", AT_ONCE]))?;
    show(apart("test", &manifest()).args(["--", AT_ONCE]).env("ALDABA_BIN", binary))?;
    let on_postgres = [ON_POSTGRES, "--test=webhooks", "--", AT_ONCE, AS_PROCESS];
    show(apart("test", &manifest()).args(on_postgres).env("ALDABA_BIN", binary))?;
    receivers(binary)
}

/// The sample receivers as processes, with the paths of all programs.
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

/// Builds the tests of the separate workspace.
pub(crate) fn build() -> TaskResult {
    show(apart("test", &manifest()).args([ON_POSTGRES, "--no-run"]))?;
    show(apart("test", &manifest()).arg("--no-run"))
}

/// Checks its formatting and lints.
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

/// A cargo command for a separate workspace. It shares the build folder, because dependencies overlap.
pub(crate) fn apart(what: &str, manifest: &Path) -> Command {
    let mut command = cargo(&[what, "--locked", PROFILE, "--manifest-path"]);
    command.arg(manifest).arg("--target-dir").arg(root().join("target"));
    command
}
