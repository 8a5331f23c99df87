//! Checks that the targets of relative links exist, and the source files that maps name.

use crate::recipes::anchor;
use crate::run::{TaskResult, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Folders without files of the repository.
const SKIPPED: [&str; 6] = [".git", "target", "node_modules", "__pycache__", ".venv", "aldaba-data"];

/// Pages that name present source files. Other pages may describe the past.
const MAPS: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/glossary.md"];

/// The extensions of files that maps name.
const SOURCE_ENDINGS: [&str; 2] = [".rs", ".sql"];

/// Fails with every broken link, and with every missing file of a map.
pub(crate) fn check() -> TaskResult {
    let mut files = BTreeSet::new();
    collect(&root(), Path::new(""), &mut files)?;
    let mut problems = Vec::new();
    let mut checked = 0;
    for page in files.iter().filter(|file| file.ends_with(".md")) {
        let text = read(page)?;
        for link in relative_links(&text) {
            checked += 1;
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { Some(page.clone()) } else { resolved(page, path) };
            if !target.as_ref().is_some_and(|target| exists(target, &files)) {
                problems.push(format!("{page}: the link to `{link}` is broken"));
            } else if let Some(target) =
                target.filter(|target| target.ends_with(".md") && !heading.is_empty())
                && !has_heading(&read(&target)?, heading)
            {
                problems.push(format!(
                    "{page}: the link to `{link}` names a heading that {target} does not have"
                ));
            }
        }
        if MAPS.contains(&page.as_str()) {
            for name in source_files(&text) {
                checked += 1;
                if !is_end_of_a_path(name, &files) {
                    problems.push(format!("{page}: the file `{name}` does not exist"));
                }
            }
        }
    }
    if problems.is_empty() {
        println!("{checked} links and named source files exist");
        return Ok(());
    }
    Err(format!("broken links and missing files:\n- {}", problems.join("\n- ")))
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

fn read(page: &str) -> Result<String, String> {
    fs::read_to_string(root().join(page)).map_err(|error| format!("{page}: {error}"))
}

/// The lines outside of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// The targets of links outside of code that point into the repository.
fn relative_links(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    for line in prose(text) {
        for part in line.split("](").skip(1) {
            let target = part.split([')', ' ']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                links.push(target);
            }
        }
    }
    links
}

/// The path of a link from the root; `None` outside of the repository.
fn resolved(page: &str, link: &str) -> Option<String> {
    let mut path = PathBuf::new();
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    for component in folder.join(link).components() {
        match component {
            Component::ParentDir if !path.pop() => return None,
            Component::ParentDir | Component::CurDir => {}
            other => path.push(other),
        }
    }
    Some(path.to_string_lossy().into_owned())
}

/// Whether a path is a file, or a folder with files in it.
fn exists(path: &str, files: &BTreeSet<String>) -> bool {
    files.contains(path) || files.iter().any(|file| file.starts_with(&format!("{path}/")))
}

/// Whether a page has the heading of a link's fragment.
fn has_heading(text: &str, wanted: &str) -> bool {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).any(|heading| heading == wanted)
}

/// Words that look like source files. `many.rs` is one, `*.rs` is not.
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

/// Whether a file exists. Maps may shorten paths: `lane/backlog.rs` matches the end of a path.
fn is_end_of_a_path(name: &str, files: &BTreeSet<String>) -> bool {
    files.contains(name) || files.iter().any(|file| file.ends_with(&format!("/{name}")))
}

#[cfg(test)]
mod tests {
    use super::{exists, has_heading, is_end_of_a_path, relative_links, resolved, source_files};
    use std::collections::BTreeSet;

    fn files() -> BTreeSet<String> {
        ["README.md", "docs/a.md", "crates/engine/src/lane/mod.rs"].map(String::from).into()
    }

    #[test]
    fn links_in_code_and_to_other_sites_are_not_looked_at() {
        let text = "[a](docs/a.md#part) and [b](https://example.com/x.md)\n```\n[c](none.md)\n```\n[d](#here) [e](../x.md)";
        assert_eq!(relative_links(text), ["docs/a.md#part", "#here", "../x.md"]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let leads_somewhere =
            |page: &str, link: &str| resolved(page, link).is_some_and(|path| exists(&path, &files()));
        assert!(leads_somewhere("README.md", "docs/a.md"));
        assert!(leads_somewhere("docs/a.md", "../README.md"));
        assert!(leads_somewhere("docs/a.md", "../crates/engine"));
        assert!(!leads_somewhere("docs/a.md", "README.md"));
        assert!(!leads_somewhere("docs/a.md", "../../README.md"));
    }

    #[test]
    fn a_heading_is_found_by_its_anchor_and_not_in_code() {
        let page = "# A page\n\n## What's `new`?\n\n```\n# comment\n```\n";
        assert!(has_heading(page, "a-page") && has_heading(page, "whats-new"));
        assert!(!has_heading(page, "comment") && !has_heading(page, "old"));
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
