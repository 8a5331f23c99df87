//! What other programs need to watch a server, made from the one definition of the alert rules: Prometheus's rules with their tests, and
//! a dashboard for Grafana.

mod dashboard;
mod prometheus;
mod table;

use crate::run::{TaskResult, root, show};
use crate::tools;
use std::fs;
use std::process::Command;

/// The rules, and the file with their tests.
const RULES: &str = "contrib/prometheus/aldaba.rules.yml";
const RULE_TESTS: &str = "contrib/prometheus/aldaba.rules.test.yml";
const DASHBOARD: &str = "contrib/grafana/aldaba.json";

/// The page with a table of the rules.
const PAGE: &str = "docs/alerts.md";

/// Every file with its content.
fn files() -> Result<[(&'static str, String); 4], String> {
    let page = fs::read_to_string(root().join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))?;
    let page =
        table::put_into(&page).ok_or_else(|| format!("{PAGE}: has no place for the table of the rules"))?;
    Ok([
        (RULES, prometheus::rules()),
        (RULE_TESTS, prometheus::tests()),
        (DASHBOARD, dashboard::dashboard()),
        (PAGE, page),
    ])
}

/// Writes the files, or with `--check` says which are not as they should be.
pub(crate) fn contrib(arguments: &[String]) -> TaskResult {
    match arguments {
        [] => write(),
        [flag] if flag == "--check" => check(),
        _ => Err("expected nothing, or --check".into()),
    }
}

fn write() -> TaskResult {
    for (name, content) in files()? {
        let file = root().join(name);
        let folder = file.parent().expect("a file has a folder");
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        fs::write(&file, content).map_err(|error| format!("{name}: {error}"))?;
    }
    promtool()
}

/// Compares the files with the definition.
pub(crate) fn check() -> TaskResult {
    for (name, content) in files()? {
        if fs::read_to_string(root().join(name)).unwrap_or_default() != content {
            return Err(format!(
                "{name} differs from the alert rules in the code; `cargo xtask contrib` writes it"
            ));
        }
    }
    Ok(())
}

/// Has Prometheus's own tool check the rules and run their tests.
pub(crate) fn promtool() -> TaskResult {
    tools::prometheus()?;
    show(Command::new("promtool").args(["check", "rules", RULES]).current_dir(root()))?;
    show(Command::new("promtool").args(["test", "rules", RULE_TESTS]).current_dir(root()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_in_contrib_are_those_of_the_rules_in_the_code() {
        check().unwrap();
    }
}
