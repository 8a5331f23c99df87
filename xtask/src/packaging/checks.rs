//! The stage of the tests: the unit's sandbox, the stripped binary and its symbols, and the package in a throwaway root.

use super::binary::Stripped;
use super::debian::{self, Compression};
use super::machine::Machine;
use super::throwaway_root::ThrowawayRoot;
use super::{VERSION, guide, installed, part, service};
use crate::background::Folder;
use crate::run::{TaskResult, read};
use crate::tools;
use std::path::Path;
use std::process::Command;

/// The version that is upgraded.
const OLDER_VERSION: &str = "0.0.1";

/// The most exposure that `systemd-analyze security` may find, in tenths of its scale from 0 (safe) to 10.
const MOST_EXPOSURE: &str = "15";

/// Checks the packages of a server binary.
pub(crate) fn check(server: &Path) -> TaskResult {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        tools::install(&["systemd"])?;
    }
    the_sandbox_of_the_unit_is_tight()?;
    let folder = Folder::new()?;
    let stripped = Stripped::of(server, &folder.0.join("binary"))?;
    the_binary_is_stripped_and_its_symbols_are_found_beside_it(&stripped)?;
    let older = debian::server(&stripped, OLDER_VERSION, Compression::Quick, &folder.0)?;
    let newer = debian::server(&stripped, VERSION, Compression::Quick, &folder.0)?;
    let symbols = debian::symbols(&stripped, VERSION, Compression::Quick, &folder.0)?;
    if let Some(why) = Machine::obstacle() {
        println!(
            "installing, the service, docs/operations.md: NOT run, because there can be no machine within this one: {why}"
        );
        return Ok(());
    }
    let root = ThrowawayRoot::new()?;
    installed::check(&root, &older, &newer, &symbols)?;
    let [older, newer] = [root.take(&older)?, root.take(&newer)?];
    let machine = Machine::boot(&root)?;
    service::check(&machine, &older, &newer)?;
    guide::run(&machine)
}

fn the_sandbox_of_the_unit_is_tight() -> TaskResult {
    let threshold = format!("--threshold={MOST_EXPOSURE}");
    let mut analysis = Command::new("systemd-analyze");
    analysis
        .args(["security", "--no-pager", "--offline=true", &threshold])
        .arg(part("systemd/aldaba.service"));
    let found = read(&mut analysis)?;
    let overall = found.lines().find(|line| line.contains("Overall exposure")).unwrap_or_default();
    println!("packages: the unit's sandbox {overall} ... ok");
    Ok(())
}

/// The unit with its programs and folders, as it is installed. A warning is an error.
pub(super) fn the_unit_is_valid(root: &ThrowawayRoot) -> TaskResult {
    let done = root.output(&["systemd-analyze", "verify", "--man=no", "aldaba.service"])?;
    let said = [done.stdout, done.stderr].concat();
    if done.status.success() && said.is_empty() {
        println!("packages: the unit is valid where it is installed ... ok");
        return Ok(());
    }
    Err(format!("systemd-analyze verify: {}", String::from_utf8_lossy(&said)))
}

fn the_binary_is_stripped_and_its_symbols_are_found_beside_it(stripped: &Stripped) -> TaskResult {
    let has_main = |links: &[&str]| {
        let mut readelf = Command::new("readelf");
        let symbols = read(readelf.args(["--symbols", "--wide"]).args(links).arg(&stripped.program))?;
        Ok::<_, String>(symbols.lines().any(|line| line.ends_with(" main")))
    };
    if has_main(&[])? {
        return Err("the stripped binary has symbols".into());
    }
    // It follows the link in the binary, as debuggers and backtraces do.
    if !has_main(&["--process-links"])? {
        return Err("the symbols beside the stripped binary are not found".into());
    }
    println!("packages: the binary is stripped, and its symbols are found beside it ... ok");
    Ok(())
}
