//! What may be depended on: licences, banned crates, sources. None of it needs a network.

use crate::run::{Outcome, cargo, read, show};
use serde_json::Value;
use spdx::{Expression, LicenseReq};

/// Permissive licences only.
const ALLOWED: [&str; 9] = [
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "CDLA-Permissive-2.0",
    "0BSD",
];

/// Crates that must not come in, not even through another one.
const BANNED: [(&str, &str); 5] = [
    ("ring", "one cryptography library is enough: aws-lc-rs"),
    ("openssl-sys", "TLS is rustls"),
    ("native-tls", "TLS is rustls"),
    ("reqwest", "its resolver cannot guard against forbidden addresses"),
    ("sqlx", "does not resolve beside rusqlite"),
];

/// Where packages may come from: the default registry, or this repository.
const REGISTRY: &str = "registry+";

pub(crate) fn check() -> Outcome {
    let mut wrong = Vec::new();
    // What is built for users, and what only tests use, are both looked at: one list is simpler to trust.
    let metadata = read(&mut cargo(&["metadata", "--format-version", "1", "--locked"]))?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    for package in packages {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let (name, version) = (text("name"), text("version"));
        if let Some((_, why)) = BANNED.iter().find(|(banned, _)| *banned == name) {
            wrong.push(format!("{name} {version} is banned: {why}"));
        }
        let ours = package["source"].is_null();
        if !ours && !text("source").starts_with(REGISTRY) {
            wrong.push(format!("{name} {version} comes from {}", text("source")));
        }
        if let Err(why) = licensed(text("license")) {
            wrong.push(format!("{name} {version}: {why}"));
        }
    }
    if wrong.is_empty() {
        println!("\n{} packages: licences, bans and sources are in order", packages.len());
        return Ok(());
    }
    Err(format!("dependencies that may not be used:\n{}", wrong.join("\n")))
}

fn licensed(expression: &str) -> Outcome {
    let parsed = Expression::parse_mode(expression, spdx::ParseMode::LAX)
        .map_err(|_| format!("its licence `{expression}` cannot be read"))?;
    let allowed = |wanted: &LicenseReq| {
        wanted.license.id().is_some_and(|id| ALLOWED.contains(&id.name)) && wanted.addition.is_none()
    };
    if parsed.evaluate(allowed) {
        Ok(())
    } else {
        Err(format!("its licence `{expression}` is not on the list"))
    }
}

/// The one check that needs a network. It says loudly when it could not run.
pub(crate) fn advisories() -> Outcome {
    show(&mut cargo(&["audit", "--deny", "warnings"])).map_err(|why| {
        format!(
            "{why}\nTHE ADVISORY CHECK DID NOT RUN TO ITS END. It needs `cargo install cargo-audit` and a network \
             that reaches the advisory database."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::licensed;

    #[test]
    fn a_choice_with_one_permissive_licence_is_fine_and_a_demand_for_another_is_not() {
        assert!(licensed("MIT OR GPL-3.0-only").is_ok());
        assert!(licensed("MIT/Apache-2.0").is_ok());
        assert!(licensed("MIT AND GPL-3.0-only").is_err());
        assert!(licensed("").is_err());
    }
}
