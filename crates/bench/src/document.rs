//! The section of the documentation with the tables.

use crate::Result;
use std::fs;
use std::path::Path;

const BEGIN: &str = "<!-- bench:begin -->";
const END: &str = "<!-- bench:end -->";
/// The marker before the name of a case, at the beginning of its section.
const HEADING: &str = "### `";

/// Puts the tables of these cases between the markers. Tables of other cases stay, in the order of `all`.
pub(crate) fn write(document: &Path, all: &[&str], tables: &[(&str, String)]) -> Result<()> {
    let text = fs::read_to_string(document)?;
    let replaced = replaced(&text, all, tables)
        .ok_or_else(|| format!("{} has no `{BEGIN}` with `{END}` after it", document.display()))?;
    Ok(fs::write(document, replaced)?)
}

/// Replaces what is between two markers of a document.
pub(crate) fn replace_between(document: &Path, begin: &str, end: &str, new: &str) -> Result<()> {
    let text = fs::read_to_string(document)?;
    let found = text.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
    let (before, after) =
        found.ok_or_else(|| format!("{} has no `{begin}` with `{end}` after it", document.display()))?;
    Ok(fs::write(document, format!("{before}{begin}\n\n{}\n\n{end}{after}", new.trim()))?)
}

fn replaced(text: &str, all: &[&str], tables: &[(&str, String)]) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (old, after) = rest.split_once(END)?;
    let mut sections = String::new();
    for name in all {
        let new = tables.iter().find(|(of, _)| of == name).map(|(_, table)| table.as_str());
        if let Some(section) = new.or_else(|| section(old, name)) {
            sections.push_str(section.trim());
            sections.push_str("\n\n");
        }
    }
    Some(format!("{before}{BEGIN}\n\n{sections}{END}{after}"))
}

/// The section from a case's heading to the next heading.
fn section<'a>(tables: &'a str, name: &str) -> Option<&'a str> {
    let begin = tables.find(&format!("{HEADING}{name}`"))?;
    let rest = &tables[begin..];
    let end = rest[HEADING.len()..].find(HEADING).map_or(rest.len(), |at| HEADING.len() + at);
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&str; 3] = ["a", "a-b", "c"];

    fn table(name: &str, text: &str) -> String {
        format!("### `{name}`\n\n{text}\n")
    }

    #[test]
    fn only_the_tables_of_the_cases_that_ran_change() {
        let text = format!("# A\n\n{BEGIN}\n\nNone yet.\n\n{END}\n\nrest\n");
        let first = [("c", table("c", "old")), ("a", table("a", "old"))];
        let once = replaced(&text, &ALL, &first).unwrap();
        let expected = format!("# A\n\n{BEGIN}\n\n### `a`\n\nold\n\n### `c`\n\nold\n\n{END}\n\nrest\n");
        assert_eq!(once, expected);
        assert_eq!(replaced(&once, &ALL, &[]).unwrap(), once, "nothing ran");
        let twice = replaced(&once, &ALL, &[("a-b", table("a-b", "new")), ("a", table("a", "new"))]).unwrap();
        let sections = "### `a`\n\nnew\n\n### `a-b`\n\nnew\n\n### `c`\n\nold";
        assert_eq!(twice, format!("# A\n\n{BEGIN}\n\n{sections}\n\n{END}\n\nrest\n"));
    }

    #[test]
    fn a_document_without_markers_is_not_changed() {
        assert_eq!(replaced("no marks", &ALL, &[]), None);
        assert_eq!(replaced(&format!("{END}{BEGIN}"), &ALL, &[]), None);
    }
}
