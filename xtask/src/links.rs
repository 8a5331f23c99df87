//! Checks that what the pages point at exists: the targets of relative links, and the source files that the maps name.

use crate::run::{Outcome, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Folders that hold no files of the repository's own.
const SKIPPED: [&str; 6] = [".git", "target", "node_modules", "__pycache__", ".venv", "aldaba-data"];

/// Pages that name source files as they are today. Other pages may speak of the past.
const MAPS: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/glossary.md"];

/// Endings of the files that maps name.
const SOURCE_ENDINGS: [&str; 2] = [".rs", ".sql"];

/// Fails with every link that leads nowhere, and with every file on a map that does not exist.
pub(crate) fn check() -> Outcome {
    let mut files = BTreeSet::new();
    collect(&root(), Path::new(""), &mut files)?;
    let mut problems = Vec::new();
    let mut checked = 0;
    for page in files.iter().filter(|file| file.ends_with(".md")) {
        let text = fs::read_to_string(root().join(page)).map_err(|error| format!("{page}: {error}"))?;
        for link in relative_links(&text) {
            checked += 1;
            if !resolves(page, link, &files) {
                problems.push(format!("{page}: the link to `{link}` leads nowhere"));
            }
        }
        if MAPS.contains(&page.as_str()) {
            for name in source_files(&text) {
                checked += 1;
                if !is_end_of_a_path(name, &files) {
                    problems.push(format!("{page}: there is no file `{name}`"));
                }
            }
        }
    }
    if problems.is_empty() {
        println!("{checked} links and named source files exist");
        return Ok(());
    }
    Err(format!("pages point at what is not there:\n- {}", problems.join("\n- ")))
}

/// All files below a folder, as paths from the root with `/`.
fn collect(folder: &Path, from_root: &Path, files: &mut BTreeSet<String>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let entry = entry.map_err(|error| error.to_string())?;
        let name = entry.file_name();
        let path = from_root.join(&name);
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if !SKIPPED.iter().any(|skipped| name == *skipped) {
                collect(&entry.path(), &path, files)?;
            }
        } else {
            files.insert(path.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// The targets of links in the text that are not in code and lead into the repository, without their anchors.
fn relative_links(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for part in line.split("](").skip(1) {
            let target = part.split([')', ' ']).next().unwrap_or_default();
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                links.push(path);
            }
        }
    }
    links
}

/// Whether a link on a page leads to a file, or to a folder with files in it.
fn resolves(page: &str, link: &str, files: &BTreeSet<String>) -> bool {
    let mut path = PathBuf::new();
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    for component in folder.join(link).components() {
        match component {
            Component::ParentDir if !path.pop() => return false,
            Component::ParentDir | Component::CurDir => {}
            other => path.push(other),
        }
    }
    let path = path.to_string_lossy().into_owned();
    files.contains(&path) || files.iter().any(|file| file.starts_with(&format!("{path}/")))
}

/// Words that look like source files, wherever they stand. `many.rs` is one, `*.rs` is not.
fn source_files(text: &str) -> Vec<&str> {
    let is_of_a_path = |character: char| character.is_ascii_alphanumeric() || "_-./*".contains(character);
    text.split(|character| !is_of_a_path(character))
        .map(|word| word.trim_start_matches('/').trim_end_matches('.'))
        .filter(|word| {
            SOURCE_ENDINGS.iter().any(|ending| word.len() > ending.len() && word.ends_with(ending))
        })
        .filter(|word| !word.contains('*'))
        .collect()
}

/// Maps shorten paths: `lane/backlog.rs` is a file whose path ends so.
fn is_end_of_a_path(name: &str, files: &BTreeSet<String>) -> bool {
    files.contains(name) || files.iter().any(|file| file.ends_with(&format!("/{name}")))
}

#[cfg(test)]
mod tests {
    use super::{is_end_of_a_path, relative_links, resolves, source_files};
    use std::collections::BTreeSet;

    fn files() -> BTreeSet<String> {
        ["README.md", "docs/a.md", "crates/engine/src/lane/mod.rs"].map(String::from).into()
    }

    #[test]
    fn links_in_code_and_to_other_sites_are_not_looked_at() {
        let text = "[a](docs/a.md#part) and [b](https://example.com/x.md)\n```\n[c](none.md)\n```\n[d](#here) [e](../x.md)";
        assert_eq!(relative_links(text), ["docs/a.md", "../x.md"]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        assert!(resolves("README.md", "docs/a.md", &files()));
        assert!(resolves("docs/a.md", "../README.md", &files()));
        assert!(resolves("docs/a.md", "../crates/engine", &files()));
        assert!(!resolves("docs/a.md", "README.md", &files()));
        assert!(!resolves("docs/a.md", "../../README.md", &files()));
    }

    #[test]
    fn a_file_that_is_gone_is_found_by_its_short_name() {
        let named = source_files("`lane/mod.rs`, lane/turn.rs and any `*.rs`.");
        assert_eq!(named, ["lane/mod.rs", "lane/turn.rs"]);
        assert!(is_end_of_a_path(named[0], &files()));
        assert!(!is_end_of_a_path(named[1], &files()));
        assert!(!is_end_of_a_path("ane/mod.rs", &files()));
    }
}
