//! Checks the names of the code: sizes of folders, names of types, retired words.

mod folders;
mod source;
mod types;
mod words;

use crate::run::{TaskResult, root};
use source::SourceFile;
use std::fs;
use std::path::{Path, PathBuf};

/// The list of retired words, below the root.
const RETIRED_WORDS: &str = "xtask/retired-words.txt";

/// Fails with every folder, type and word that breaks a rule.
pub(crate) fn check() -> TaskResult {
    let root = root();
    let files = sources(&root)?;
    let retired = words::read(&read(&root.join(RETIRED_WORDS))?)?;
    let mut problems = folders::problems(&checked_folders(&root)?)?;
    problems.extend(types::problems(&files));
    problems.extend(words::problems(&retired, &files));
    if problems.is_empty() {
        println!("names: {} files keep the rules", files.len());
        return Ok(());
    }
    let count = problems.len();
    Err(format!("{}\nnames: {count} problems; CONTRIBUTING.md has the rules", problems.join("\n")))
}

/// The folders with the code of each crate, and that of the commands.
fn checked_folders(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut folders = vec![root.join("xtask/src")];
    for package in entries(&root.join("crates"))? {
        folders.extend(["src", "tests"].map(|name| package.join(name)));
    }
    folders.retain(|folder| folder.is_dir());
    Ok(folders)
}

/// Every Rust file of the crates and the commands, with paths relative to the root.
fn sources(root: &Path) -> Result<Vec<SourceFile>, String> {
    let mut files = Vec::new();
    for folder in ["crates", "xtask"] {
        collect(root, &root.join(folder), &mut files)?;
    }
    Ok(files)
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) -> TaskResult {
    for path in entries(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "target" {
            collect(root, &path, files)?;
        } else if name.ends_with(".rs") {
            let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            files.push(SourceFile::new(shown, &read(&path)?));
        }
    }
    Ok(())
}

/// The entries of a folder, sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
