//! The ledgers for sqlx: a crate outside of the workspace, because sqlx and rusqlite do not resolve together.

use crate::examples::apart;
use crate::run::{TaskResult, cargo, root, show};
use std::path::PathBuf;

pub(crate) fn manifest() -> PathBuf {
    root().join("crates/aldaba-receiver-sqlx/Cargo.toml")
}

/// Builds the tests.
pub(crate) fn build() -> TaskResult {
    show(apart("test", &manifest()).arg("--no-run"))
}

pub(crate) fn test() -> TaskResult {
    show(&mut apart("test", &manifest()))
}

/// Runs its part of `cargo xtask trials`.
pub(crate) fn trials(count: &str) -> TaskResult {
    let trials = ["--test", "crashes", "--", "--nocapture"];
    show(apart("test", &manifest()).args(trials).env("ALDABA_TRIALS", count))
}

/// Checks formatting, lints and the links of the documentation.
pub(crate) fn lint() -> TaskResult {
    show(cargo(&["fmt", "--check", "--manifest-path"]).arg(manifest()))?;
    show(apart("clippy", &manifest()).args(["--all-targets", "--", "--deny", "warnings"]))?;
    show(apart("doc", &manifest()).arg("--no-deps").env("RUSTDOCFLAGS", "--deny warnings"))
}
