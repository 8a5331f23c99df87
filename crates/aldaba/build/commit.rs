//! The commit that a build is made from.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What git says of a folder with sources.
#[derive(Debug)]
pub(crate) struct Checkout {
    pub(crate) commit: String,
    /// The files that change with the commit.
    pub(crate) files: Vec<PathBuf>,
}

/// `None`: git does not keep these sources, or is not there.
pub(crate) fn checkout(folder: &Path) -> Option<Checkout> {
    // The sources may lie within the repository of something else.
    git(folder, &["ls-files", "--error-unmatch", "Cargo.toml"])?;
    let commit = git(folder, &["rev-parse", "HEAD"])?;
    let branch = git(folder, &["symbolic-ref", "--quiet", "HEAD"]);
    let names = ["HEAD".to_owned(), "logs/HEAD".to_owned()].into_iter().chain(branch);
    let path = |name: String| Some(folder.join(git(folder, &["rev-parse", "--git-path", &name])?));
    Some(Checkout { commit, files: names.filter_map(path).filter(|file| file.exists()).collect() })
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let said = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    said.status.success().then(|| text.trim().to_owned())
}
