//! What a build says of itself.

#[path = "../../../build/commit.rs"]
mod commit;

use super::command_line::{aldaba, text};
use commit::checkout;
use std::path::Path;
use std::process::Command;

fn git(folder: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=test", "-c", "user.email=test@example.com", "-C"]).arg(folder);
    let done = git.args(arguments).output().unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn the_version_has_the_commit_and_its_short_form_has_not() {
    let folder = tempfile::tempdir().unwrap();
    let said = |flag: &str| text(&aldaba(folder.path()).arg(flag).output().unwrap().stdout).trim().to_owned();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(said("-V"), format!("aldaba {version}"));
    let long = said("--version");
    assert!(long.starts_with(&format!("aldaba {version} (commit ")) && long.ends_with(')'), "{long}");
}

#[test]
fn a_build_in_a_repository_is_of_its_commit_and_is_made_again_after_the_next_one() {
    let repository = tempfile::tempdir().unwrap();
    let package = repository.path().join("crates/one");
    std::fs::create_dir_all(&package).unwrap();
    assert!(checkout(&package).is_none(), "there is no repository");
    git(repository.path(), &["init", "--quiet"]);
    std::fs::write(package.join("Cargo.toml"), "").unwrap();
    assert!(checkout(&package).is_none(), "the repository does not keep the package");
    git(repository.path(), &["add", "."]);
    let mut seen = Vec::new();
    for _ in 0..2 {
        git(repository.path(), &["commit", "--quiet", "--allow-empty", "--message=a"]);
        let found = checkout(&package).unwrap();
        assert_eq!(found.commit.len(), 40, "{found:?}");
        let contents: Vec<_> = found.files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        seen.push((found.commit, contents));
    }
    let [(first, before), (second, after)] = &seen[..] else { panic!("two commits") };
    assert_ne!(first, second);
    assert_ne!(before, after, "a file that cargo watches has changed");
    // A second work tree has its own HEAD.
    let other = repository.path().join("other");
    git(repository.path(), &["worktree", "add", "--quiet", "--detach", other.to_str().unwrap()]);
    let found = checkout(&other.join("crates/one")).unwrap();
    assert_eq!(found.commit, *second);
    assert!(!found.files.is_empty() && found.files.iter().all(|file| file.exists()), "{found:?}");
}
