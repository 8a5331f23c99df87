//! Checks that every relative link in the repository's Markdown leads to a file, and to a heading where it names one.

use crate::recipes::anchor;
use crate::run::{Outcome, root};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Fails with every link that leads nowhere.
pub(crate) fn check() -> Outcome {
    let mut pages = BTreeMap::new();
    collect(&root(), &mut pages)?;
    let broken = broken(&pages, |path| path.exists());
    if broken.is_empty() {
        println!("{} pages of Markdown: every relative link leads somewhere", pages.len());
        return Ok(());
    }
    Err(format!("broken links:\n- {}", broken.join("\n- ")))
}

/// The Markdown files in a folder and the folders inside it, with their text.
fn collect(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> Outcome {
    let failed = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !matches!(&*name, "target" | "node_modules") && !name.starts_with('.') {
                collect(&path, pages)?;
            }
        } else if name.ends_with(".md") {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            pages.insert(path, text);
        }
    }
    Ok(())
}

/// The page and the target of each link that leads nowhere.
fn broken(pages: &BTreeMap<PathBuf, String>, exists: fn(&Path) -> bool) -> Vec<String> {
    let mut broken = Vec::new();
    for (page, text) in pages {
        for link in links(text) {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { resolved(page, file) };
            let is_there = match pages.get(&target) {
                Some(text) => heading.is_empty() || anchors(text).any(|anchor| anchor == heading),
                None => exists(&target),
            };
            if !is_there {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    broken
}

/// The relative links of a page.
fn links(text: &str) -> Vec<String> {
    let prose: Vec<_> = prose(text).collect();
    let targets =
        prose.iter().flat_map(|line| line.split("](").skip(1)).filter_map(|rest| rest.split(')').next());
    let is_relative = |link: &&str| !link.contains("://") && !link.starts_with(['/', '<']);
    targets.filter(is_relative).map(str::to_owned).collect()
}

fn anchors(text: &str) -> impl Iterator<Item = String> {
    prose(text).filter(|line| line.starts_with('#')).map(|line| anchor(line.trim_start_matches('#').trim()))
}

/// The lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The path that a link on a page names.
fn resolved(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(page).to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(part) => path.push(part),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::{broken, check};
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    fn broken_in(text: &str) -> Vec<String> {
        let other = "# Other\n\n## What's `new`?\n";
        let pages = [("docs/page.md", text), ("docs/more/other.md", other)];
        let pages: BTreeMap<_, _> =
            pages.map(|(path, text)| (PathBuf::from(path), text.to_owned())).into_iter().collect();
        broken(&pages, |path| path == "LICENSE")
    }

    #[test]
    fn links_to_files_and_headings_are_followed() {
        assert_eq!(
            broken_in("[a](more/other.md#whats-new), [b](../LICENSE), [c](https://example.com)"),
            [""; 0]
        );
        assert_eq!(broken_in("# Here\n\n[a](#here)"), [""; 0]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_named_with_its_page() {
        assert_eq!(broken_in("[a](gone.md)"), ["docs/page.md: gone.md"]);
        assert_eq!(broken_in("[a](more/other.md#old)"), ["docs/page.md: more/other.md#old"]);
        assert_eq!(broken_in("[a](#there)"), ["docs/page.md: #there"]);
    }

    #[test]
    fn code_has_no_links_and_no_headings() {
        assert_eq!(broken_in("```\n[a](gone.md)\n```"), [""; 0]);
        assert_eq!(broken_in("```\n# There\n```\n[a](#there)"), ["docs/page.md: #there"]);
    }

    #[test]
    fn the_links_of_this_repository_lead_somewhere() {
        check().unwrap();
    }
}
