//! Rules for dependencies: licences, banned crates, sources. No check needs a network.

use crate::run::{TaskResult, cargo, read, show};
use crate::stages::FEATURES;
use crate::{examples, sqlx};
use spdx::{Expression, LicenseReq};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Permissive licences only.
const ALLOWED: [&str; 11] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    // The Boost licence. The Business Source licence is a different one (BUSL) and not allowed.
    "BSL-1.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "CDLA-Permissive-2.0",
    "0BSD",
];

/// Packages whose manifest names a file instead of a licence, and the licence in that file. A new version must be read
/// again.
const IN_A_FILE: [(&str, &str); 1] = [("apalis-postgres v1.0.0", "MIT")];

/// Crates that are banned, also as indirect dependencies.
const BANNED: [(&str, &str); 5] = [
    ("ring", "one cryptography library is enough: aws-lc-rs"),
    ("openssl-sys", "TLS is rustls"),
    ("native-tls", "TLS is rustls"),
    ("reqwest", "its resolver cannot guard against forbidden addresses"),
    SQLX,
];

/// The examples may use it: their queues are not in one program with the server. So may the ledgers for sqlx.
const SQLX: (&str, &str) = ("sqlx", "does not resolve beside rusqlite");

/// The packages that are built on any platform: the lock file and `cargo metadata` also name optional parts that are
/// never enabled.
const TREE: [&str; 9] = [
    "tree",
    "--workspace",
    "--locked",
    "--target=all",
    "--edges=normal,build,dev",
    "--prefix=none",
    "--no-dedupe",
    "--format",
    "{p}|{l}",
];

pub(crate) fn check() -> TaskResult {
    listed(cargo(&TREE).arg(FEATURES), &BANNED)?;
    let banned: Vec<_> = BANNED.into_iter().filter(|banned| *banned != SQLX).collect();
    let apart = |manifest: &Path| listed(cargo(&TREE).arg("--manifest-path").arg(manifest), &banned);
    apart(&examples::manifest())?;
    apart(&sqlx::manifest())
}

/// Checks all packages that a command lists.
fn listed(command: &mut Command, banned: &[(&str, &str)]) -> TaskResult {
    let tree = read(command)?;
    let packages: BTreeSet<&str> = tree.lines().filter(|line| !line.is_empty()).collect();
    let wrong: Vec<_> = packages.iter().filter_map(|line| problem(line, banned)).collect();
    if packages.len() < 50 {
        return Err(format!("only {} packages were listed, which is too few", packages.len()));
    }
    if wrong.is_empty() {
        println!("\n{} packages: licences, bans and sources are in order", packages.len());
        return Ok(());
    }
    Err(format!("forbidden dependencies:\n{}", wrong.join("\n")))
}

/// The problem of a package, from a line `name v1.2.3 (source)|licence`.
fn problem(line: &str, banned: &[(&str, &str)]) -> Option<String> {
    // A dependency of a package on itself, for its tests, is marked as repeated.
    let (package, licence) = line.trim_end_matches(" (*)").rsplit_once('|')?;
    let name = package.split(' ').next()?;
    if let Some((_, why)) = banned.iter().find(|(banned, _)| *banned == name) {
        return Some(format!("{package} is banned: {why}"));
    }
    // A package of the default registry has no source after its version; local packages have their folder.
    if package.contains("://") {
        return Some(format!("{package} is not from the registry"));
    }
    let read = IN_A_FILE.iter().find(|(read, _)| licence.is_empty() && *read == package);
    licensed(read.map_or(licence, |(_, licence)| licence)).err().map(|why| format!("{package}: {why}"))
}

fn licensed(expression: &str) -> TaskResult {
    let parsed = Expression::parse_mode(expression, spdx::ParseMode::LAX)
        .map_err(|_| format!("the licence `{expression}` is unreadable"))?;
    let allowed = |wanted: &LicenseReq| {
        wanted.license.id().is_some_and(|id| ALLOWED.contains(&id.name)) && wanted.addition.is_none()
    };
    if parsed.evaluate(allowed) { Ok(()) } else { Err(format!("the licence `{expression}` is not allowed")) }
}

/// The only check that needs a network. Reports clearly if it could not run.
pub(crate) fn advisories() -> TaskResult {
    show(&mut cargo(&["audit", "--deny", "warnings"])).map_err(|why| {
        format!(
            "{why}\nTHE ADVISORY CHECK DID NOT RUN TO ITS END. It needs `cargo install cargo-audit` and a network \
             that reaches the advisory database."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{BANNED, licensed};

    fn problem(line: &str) -> Option<String> {
        super::problem(line, &BANNED)
    }

    #[test]
    fn a_choice_with_one_permissive_licence_is_fine_and_a_demand_for_another_is_not() {
        assert!(licensed("MIT OR GPL-3.0-only").is_ok());
        assert!(licensed("MIT/Apache-2.0").is_ok());
        assert!(licensed("MIT AND GPL-3.0-only").is_err());
        assert!(licensed("BSL-1.0").is_ok());
        assert!(licensed("BUSL-1.1").is_err());
        assert!(licensed("").is_err());
    }

    #[test]
    fn banned_crates_other_sources_and_other_licences_are_named() {
        assert_eq!(problem("serde v1.0.0|MIT OR Apache-2.0"), None);
        assert_eq!(problem("aldaba v0.1.0 (/somewhere/aldaba)|MIT OR Apache-2.0"), None);
        assert!(problem("ring v0.17.0|Apache-2.0 AND ISC").is_some());
        assert!(problem("serde v1.0.0 (https://example.com/serde#abc)|MIT").is_some());
        assert!(problem("serde v1.0.0|GPL-3.0-only").is_some());
    }

    #[test]
    fn a_licence_in_a_file_counts_for_the_version_that_was_read() {
        assert_eq!(problem("apalis-postgres v1.0.0|"), None);
        assert!(problem("apalis-postgres v1.0.0|GPL-3.0-only").is_some());
        assert!(problem("apalis-postgres v1.0.1|").is_some());
        assert!(problem("serde v1.0.0|").is_some());
    }
}
