//! What the workspace builds, built once and run by parts. `cargo test --package` would build dependencies again, with just the
//! features that this package wants of them. So `--package` is nowhere here: all packages are chosen, and then some targets.

use crate::run::{TaskResult, cargo, read, show};
use crate::stages::{FEATURES, PROFILE};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program with tests.
struct Suite {
    package: String,
    /// Where tests expect to be run.
    folder: PathBuf,
    program: PathBuf,
}

/// Builds all of them.
pub(crate) fn build() -> TaskResult {
    show(workspace("test").arg("--no-run"))
}

/// Builds the programs that tests start, the server before all.
pub(crate) fn programs() -> TaskResult {
    show(workspace("build").arg("--bins"))
}

/// Does something with all that the workspace has.
pub(crate) fn workspace(what: &str) -> Command {
    cargo(&[what, "--workspace", "--locked", PROFILE, FEATURES])
}

/// Runs those of these packages.
pub(crate) fn run(packages: &[&str]) -> TaskResult {
    let all = all()?;
    for package in packages {
        let mut of_it = all.iter().filter(|tests| tests.package == *package).peekable();
        if of_it.peek().is_none() {
            return Err(format!("no package `{package}` has tests"));
        }
        of_it.try_for_each(|tests| show(Command::new(&tests.program).current_dir(&tests.folder)))?;
    }
    Ok(())
}

/// Runs the examples in the documentation of the code.
pub(crate) fn documentation() -> TaskResult {
    show(workspace("test").arg("--doc"))
}

/// What cargo says of its artifacts, one in a line.
fn all() -> Result<Vec<Suite>, String> {
    let said = read(workspace("test").args(["--no-run", "--quiet", "--message-format=json"]))?;
    let artifacts = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(artifacts.filter_map(|artifact| Suite::read(&artifact)).collect())
}

impl Suite {
    /// `None`: it is something else.
    fn read(artifact: &Value) -> Option<Self> {
        let program = artifact["executable"].as_str()?;
        let manifest = artifact["manifest_path"].as_str()?;
        if artifact["profile"]["test"] != true {
            return None;
        }
        let folder = Path::new(manifest).parent()?;
        let package = folder.file_name()?.to_str()?;
        Some(Self { package: package.into(), folder: folder.into(), program: program.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::Suite;
    use serde_json::json;

    #[test]
    fn a_program_with_tests_is_known_by_its_folder() {
        let artifact = |test: bool| {
            json!({
                "reason": "compiler-artifact", "manifest_path": "/here/crates/one/Cargo.toml",
                "profile": {"test": test}, "executable": "/here/target/ci/deps/one-1f",
            })
        };
        let tests = Suite::read(&artifact(true)).unwrap();
        assert_eq!((tests.package.as_str(), tests.folder.to_str()), ("one", Some("/here/crates/one")));
        assert!(Suite::read(&artifact(false)).is_none());
        assert!(Suite::read(&json!({"reason": "build-finished", "success": true})).is_none());
    }
}
