//! The tests of the workspace, built once and run in parts. `cargo test --package` would build dependencies again with
//! the features of that package alone. So all packages are always selected, and then some targets.

use crate::run::{TaskResult, cargo, read, show};
use crate::stages::{FEATURES, PROFILE};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A test program.
struct Suite {
    package: String,
    /// The name of the target.
    name: String,
    /// The working directory of the tests.
    folder: PathBuf,
    program: PathBuf,
}

/// Builds all test programs.
pub(crate) fn build() -> TaskResult {
    show(workspace("test").arg("--no-run"))
}

/// Builds the programs that tests start, such as the server.
pub(crate) fn programs() -> TaskResult {
    show(workspace("build").arg("--bins"))
}

/// A cargo command for the whole workspace with all features.
pub(crate) fn workspace(what: &str) -> Command {
    cargo(&[what, "--workspace", "--locked", PROFILE, FEATURES])
}

/// Runs the tests of these packages.
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

/// Runs those tests of a target that are ignored otherwise.
pub(crate) fn run_ignored(package: &str, name: &str) -> TaskResult {
    let found = all()?.into_iter().find(|tests| tests.package == package && tests.name == name);
    let tests = found.ok_or_else(|| format!("{package} has no tests called `{name}`"))?;
    show(Command::new(&tests.program).arg("--ignored").current_dir(&tests.folder))
}

/// Runs the examples in the documentation of the code.
pub(crate) fn documentation() -> TaskResult {
    show(workspace("test").arg("--doc"))
}

/// The messages of cargo about its artifacts, one in each line.
fn all() -> Result<Vec<Suite>, String> {
    let said = read(workspace("test").args(["--no-run", "--quiet", "--message-format=json"]))?;
    let artifacts = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(artifacts.filter_map(|artifact| Suite::read(&artifact)).collect())
}

impl Suite {
    /// Reads a message; `None` if it is not about a test program.
    fn read(artifact: &Value) -> Option<Self> {
        let program = artifact["executable"].as_str()?;
        let manifest = artifact["manifest_path"].as_str()?;
        if artifact["profile"]["test"] != true {
            return None;
        }
        let folder = Path::new(manifest).parent()?;
        let package = folder.file_name()?.to_str()?;
        let name = artifact["target"]["name"].as_str()?;
        Some(Self {
            package: package.into(),
            name: name.into(),
            folder: folder.into(),
            program: program.into(),
        })
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
                "target": {"name": "one"},
                "profile": {"test": test}, "executable": "/here/target/ci/deps/one-1f",
            })
        };
        let tests = Suite::read(&artifact(true)).unwrap();
        assert_eq!((tests.package.as_str(), tests.folder.to_str()), ("one", Some("/here/crates/one")));
        assert!(Suite::read(&artifact(false)).is_none());
        assert!(Suite::read(&json!({"reason": "build-finished", "success": true})).is_none());
    }
}
