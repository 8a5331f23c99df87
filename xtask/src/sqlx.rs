//! The receiver's ledgers for sqlx: a crate beside the workspace, because sqlx and rusqlite do not resolve together.

use crate::examples::apart;
use crate::run::{TaskResult, cargo, root, show};
use std::path::PathBuf;

pub(crate) fn manifest() -> PathBuf {
    root().join("crates/aldaba-receiver-sqlx/Cargo.toml")
}

/// What its tests need, built with the rest.
pub(crate) fn build() -> TaskResult {
    show(apart("test", &manifest()).arg("--no-run"))
}

pub(crate) fn test() -> TaskResult {
    show(&mut apart("test", &manifest()))
}

/// Its part of `cargo xtask trials`.
pub(crate) fn trials(count: &str) -> TaskResult {
    let trials = ["--test", "crashes", "--", "--nocapture"];
    show(apart("test", &manifest()).args(trials).env("ALDABA_TRIALS", count))
}

/// Formatting, lints and the links of its documentation.
pub(crate) fn lint() -> TaskResult {
    show(cargo(&["fmt", "--check", "--manifest-path"]).arg(manifest()))?;
    show(apart("clippy", &manifest()).args(["--all-targets", "--", "--deny", "warnings"]))?;
    show(apart("doc", &manifest()).arg("--no-deps").env("RUSTDOCFLAGS", "--deny warnings"))
}
