//! What users install: a Debian package, one with its debug symbols, and the folder of a container image. Their parts are
//! in `packaging/`.

mod binary;
mod checks;
mod container;
mod debian;
mod guide;
mod installed;
mod machine;
mod service;
mod throwaway_root;

use crate::run::{TaskResult, cargo, root, show};
use binary::Stripped;
use debian::Compression;
use std::fs;
use std::path::PathBuf;

pub(crate) use checks::check;
pub(crate) use container::check as check_container;

/// The version of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Builds all packages from a release build; `image` builds the container image too, with podman, buildah or docker.
pub(crate) fn package(arguments: &[String]) -> TaskResult {
    let with_image = match arguments {
        [] => false,
        [word] if word == "image" => true,
        [word, ..] => return Err(format!("unknown argument `{word}`; expected `image`, or nothing")),
    };
    show(&mut cargo(&["build", "--release", "--locked", "--package", "aldaba", "--bins"]))?;
    let folder = root().join("target/package");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let stripped = Stripped::of(&root().join("target/release/aldaba"), &folder.join("binary"))?;
    let server = debian::server(&stripped, VERSION, Compression::Small, &folder)?;
    let symbols = debian::symbols(&stripped, VERSION, Compression::Small, &folder)?;
    let context = container::prepare(&stripped, &folder.join("container"))?;
    println!("\n{}\n{}\n{}", server.display(), symbols.display(), context.display());
    if with_image { container::build(&context, None).map(drop) } else { Ok(()) }
}

/// A file of `packaging/`.
fn part(name: &str) -> PathBuf {
    root().join("packaging").join(name)
}
