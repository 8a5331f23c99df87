//! Programs that people copy: each a workspace of its own under `examples/`, with tests against a real server.

use crate::run::{Outcome, cargo, root, show};
use std::path::Path;
use std::process::Command;

/// Their folders.
const EXAMPLES: [&str; 1] = ["apalis-worker"];

/// Most of a test is waiting for something that must not come.
const AT_ONCE: &str = "--test-threads=8";

/// The tests of all of them.
pub(crate) fn run(binary: &Path) -> Outcome {
    each(|manifest| show(example("test", manifest).args(["--", AT_ONCE]).env("ALDABA_BIN", binary)))
}

/// What the tests need, built with the rest.
pub(crate) fn build() -> Outcome {
    each(|manifest| show(example("test", manifest).arg("--no-run")))
}

/// Formatting and lints.
pub(crate) fn lint() -> Outcome {
    each(|manifest| {
        show(cargo(&["fmt", "--check", "--manifest-path"]).arg(manifest))?;
        show(example("clippy", manifest).args(["--all-targets", "--", "--deny", "warnings"]))
    })
}

/// Does something with the manifest of each.
pub(crate) fn each(what: impl Fn(&Path) -> Outcome) -> Outcome {
    EXAMPLES.iter().try_for_each(|name| what(&root().join("examples").join(name).join("Cargo.toml")))
}

/// It shares the folder of what is built, because all need much of the same.
fn example(what: &str, manifest: &Path) -> Command {
    let mut command = cargo(&[what, "--locked", "--manifest-path"]);
    command.arg(manifest).arg("--target-dir").arg(root().join("target"));
    command
}
