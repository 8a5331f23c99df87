//! The dashboard in Debian's Chromium, driven by Playwright; axe-core looks at each page.

use crate::run::{TaskResult, root, show};
use crate::tools::{self, Node};
use std::path::Path;
use std::process::Command;

/// Runs the tests with these names, or all.
pub(crate) fn run(binary: &Path, names: &[String]) -> TaskResult {
    let home = root().join("crates/aldaba/tests/browser");
    let chromium = tools::chromium()?;
    Node::new()?.install(&home)?;
    let mut command = Command::new(tools::environment("browser", &home.join("packages.txt"))?);
    command.args(["-m", "unittest"]);
    if names.is_empty() {
        command.args(["discover", "--start-directory"]).arg(&home);
    } else {
        command.args(names);
    }
    command.env("ALDABA_BINARY", binary).env("ALDABA_CHROMIUM", chromium).env("PYTHONDONTWRITEBYTECODE", "1");
    show(command.current_dir(home))
}
