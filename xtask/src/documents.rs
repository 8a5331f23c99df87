//! Compares docs/documents.md with the tests: every requirement has an id, and its tests begin with that id.

use crate::run::{TaskResult, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The documents, with their numbers of items.
const DOCUMENTS: [(char, u32); 5] = [('A', 8), ('B', 7), ('C', 8), ('D', 11), ('E', 13)];

/// The folders with tests.
const FOLDERS: [&str; 3] = ["crates", "examples", "sdks"];

/// The heading of the items that are not built.
const MISSING: &str = "## Not built yet";

/// The content of the page.
#[derive(Debug, Default)]
struct DocumentsPage {
    /// The names of the tests by id.
    shown: BTreeMap<String, Vec<String>>,
    /// Whether an item is missing completely, by id.
    missing: BTreeMap<String, bool>,
    /// The unreadable rows.
    problems: Vec<String>,
}

/// Fails with every id without a test, and with every difference between the page and the tests.
pub(crate) fn check() -> TaskResult {
    let path = root().join("docs/documents.md");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut tests = BTreeSet::new();
    for folder in FOLDERS {
        collect(&root().join(folder), &mut tests)?;
    }
    let problems = compare(&DocumentsPage::read(&text), &tests);
    if problems.is_empty() {
        let named = tests.iter().filter(|name| !ids(name).is_empty()).count();
        println!("docs/documents.md: every item has tests or a reason; {named} tests begin with an id");
        return Ok(());
    }
    Err(format!("docs/documents.md and the tests differ:\n- {}", problems.join("\n- ")))
}

fn compare(page: &DocumentsPage, tests: &BTreeSet<String>) -> Vec<String> {
    let mut problems = page.problems.clone();
    let known: BTreeSet<String> = DOCUMENTS
        .iter()
        .flat_map(|(letter, items)| (1..=*items).map(move |number| format!("{letter}{number}")))
        .collect();
    let mut by_id: BTreeMap<String, &str> = BTreeMap::new();
    for name in tests {
        for id in ids(name) {
            if !known.contains(&id) {
                problems.push(format!("the test `{name}` begins with the unknown id {id}"));
            }
            by_id.entry(id).or_insert(name);
        }
    }
    for id in &known {
        let Some(named) = page.shown.get(id) else {
            problems.push(format!("{id} has no row"));
            continue;
        };
        let all_missing = page.missing.get(id) == Some(&true);
        match (named.is_empty(), all_missing, by_id.get(id)) {
            (true, false, None) => {
                problems.push(format!("{id} has no test: write one, or give the reason under `{MISSING}`"));
            }
            (true, false, Some(test)) => {
                problems.push(format!("the row of {id} names no test, but `{test}` exists"));
            }
            (false, true, _) | (true, true, Some(_)) => {
                problems.push(format!(
                    "{id} has a test and is listed as not built: mark it `part`, or remove it there"
                ));
            }
            (false, false, _) | (true, true, None) => {}
        }
        for name in named {
            if !tests.contains(name) {
                problems.push(format!("the row of {id} names the unknown test `{name}`"));
            } else if !ids(name).contains(id) {
                problems
                    .push(format!("the row of {id} names `{name}`, whose name does not begin with the id"));
            }
        }
    }
    let strangers = page.shown.keys().chain(page.missing.keys()).filter(|id| !known.contains(*id));
    problems.extend(strangers.map(|id| format!("the row of {id} has an unknown id")));
    problems
}

impl DocumentsPage {
    /// Reads the tables. A row before the heading has an id, the requirement and tests; after it an id, `all` or `part`,
    /// and the reason.
    fn read(text: &str) -> Self {
        let mut page = Self::default();
        let mut after = false;
        for line in text.lines() {
            after |= line == MISSING;
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let ["", id, middle, last, ""] = cells[..] else { continue };
            if !is_id(id, char::is_ascii_uppercase) {
                continue;
            }
            let twice = match (after, middle) {
                (false, _) => {
                    let names = last.split('`').skip(1).step_by(2).map(str::to_owned).collect();
                    page.shown.insert(id.into(), names).is_some()
                }
                (true, "all" | "part") if !last.is_empty() => {
                    page.missing.insert(id.into(), middle == "all").is_some()
                }
                (true, _) => {
                    page.problems.push(format!(
                        "the row of {id} under `{MISSING}` needs `all` or `part`, and a reason"
                    ));
                    false
                }
            };
            if twice {
                page.problems.push(format!("{id} has two rows in one table"));
            }
        }
        page
    }
}

/// The names of the tests in a folder, recursively.
fn collect(folder: &Path, tests: &mut BTreeSet<String>) -> TaskResult {
    let failed = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !matches!(&*name, "target" | "node_modules") && !name.starts_with('.') {
                collect(&path, tests)?;
            }
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            tests.extend(tests_in(&text));
        } else if name.starts_with("test_") && name.ends_with(".py") {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            tests.extend(tests_in_python(&text));
        }
    }
    Ok(())
}

/// Functions with a test attribute, and those in a list of a macro that makes tests.
fn tests_in(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let (mut is_test, mut is_ignored) = (false, false);
    for line in text.lines().map(str::trim) {
        is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
        // Those that need a program run in a stage of their own, and say so.
        is_ignored |= line.starts_with("#[ignore") && !line.contains("`cargo xtask ");
        if let Some(name) = function(line) {
            if is_test && !is_ignored {
                names.push(name.to_owned());
            }
            (is_test, is_ignored) = (false, false);
        } else if let Some(name) = listed(line)
            && !ids(name).is_empty()
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// Methods whose name has an id after `test_`; their names without that.
fn tests_in_python(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("def test_")?.split('(').next());
    names.filter(|name| !ids(name).is_empty()).map(str::to_owned).collect()
}

/// The name in `fn name(` and `async fn name(`.
fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    let name = line.strip_prefix("fn ")?.split(['(', '<']).next()?;
    is_name(name).then_some(name)
}

/// The name in a line `module::name,`.
fn listed(line: &str) -> Option<&str> {
    let (module, name) = line.strip_suffix(',')?.split_once("::")?;
    (is_name(module) && is_name(name)).then_some(name)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

/// The ids at the beginning of a test's name: `b1_b4_…` and `b1_and_b4_…` begin with two.
fn ids(name: &str) -> Vec<String> {
    let mut words = name.split('_').peekable();
    let mut ids = Vec::new();
    while let Some(id) = words.next_if(|word| is_id(word, char::is_ascii_lowercase)) {
        ids.push(id.to_uppercase());
        words.next_if_eq(&"and");
    }
    ids
}

/// A letter and a number.
fn is_id(word: &str, letter: fn(&char) -> bool) -> bool {
    let mut signs = word.chars();
    signs.next().is_some_and(|first| letter(&first))
        && !signs.as_str().is_empty()
        && signs.all(|sign| sign.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{DOCUMENTS, DocumentsPage, compare, ids, tests_in, tests_in_python};
    use std::collections::BTreeSet;
    use std::fmt::Write;

    /// A page where every item names one test, and those tests.
    fn complete() -> (String, BTreeSet<String>) {
        let (mut page, mut tests) = ("| id | asked | tests |\n".to_owned(), BTreeSet::new());
        for (letter, items) in DOCUMENTS {
            for number in 1..=items {
                let test = format!("{}{number}_works", letter.to_ascii_lowercase());
                writeln!(page, "| {letter}{number} | something | `{test}` |").unwrap();
                tests.insert(test);
            }
        }
        (page, tests)
    }

    fn problems(page: &str, tests: &BTreeSet<String>) -> String {
        compare(&DocumentsPage::read(page), tests).join("\n")
    }

    #[test]
    fn a_name_begins_with_one_id_or_several() {
        assert_eq!(ids("b4_it_ends"), ["B4"]);
        assert_eq!(ids("d4_d5_it_holds"), ["D4", "D5"]);
        assert_eq!(ids("b1_and_b4_158_attempts"), ["B1", "B4"]);
        assert_eq!(ids("a_test_of_b4"), [""; 0]);
        assert_eq!(ids("b_everything"), [""; 0]);
    }

    #[test]
    fn tests_are_found_under_their_attributes_and_in_lists() {
        let code = "
            #[test]
            fn a1_one() {}
            // #[test] is a comment
            fn a2_no_test() {}
            #[tokio::test(flavor = \"multi_thread\")]
            #[expect(clippy::panic, reason = \"on purpose\")]
            async fn a3_two() {}
            #[test]
            #[ignore = \"a child of others\"]
            fn a4_ignored() {}
            #[test]
            #[ignore = \"needs Prometheus: `cargo xtask alerts` installs it\"]
            fn a7_in_a_stage_of_its_own() {}
            suite! {
                document::e4_three,
                document::without_an_id,
            }";
        assert_eq!(tests_in(code), ["a1_one", "a3_two", "a7_in_a_stage_of_its_own", "e4_three"]);
    }

    #[test]
    fn a_page_that_names_a_test_for_every_item_is_right() {
        let (page, tests) = complete();
        assert_eq!(problems(&page, &tests), "");
    }

    #[test]
    fn an_item_without_a_test_or_a_row_is_named() {
        let (page, mut tests) = complete();
        tests.remove("c7_works");
        assert_eq!(problems(&page, &tests), "the row of C7 names the unknown test `c7_works`");
        let empty = page.replace("`c7_works`", "");
        assert!(problems(&empty, &tests).starts_with("C7 has no test: write one"));
        let cut = page.replace("| C7 | something | `c7_works` |\n", "");
        assert_eq!(problems(&cut, &tests), "C7 has no row");
    }

    #[test]
    fn a_test_with_an_id_that_no_document_has_is_named() {
        let (page, mut tests) = complete();
        tests.insert("b9_works".into());
        assert_eq!(problems(&page, &tests), "the test `b9_works` begins with the unknown id B9");
    }

    #[test]
    fn a_row_names_only_tests_that_begin_with_its_id() {
        let (page, tests) = complete();
        let wrong = page.replace("| `a2_works` |", "| `a2_works`, `a1_works` |");
        assert!(problems(&wrong, &tests).contains("names `a1_works`, whose name does not begin with the id"));
    }

    #[test]
    fn missing_items_have_no_test_unless_a_part_is_built() {
        let (page, mut tests) = complete();
        tests.remove("a6_works");
        let missing = |how: &str| page.replace("`a6_works`", "") + "\n## Not built yet\n" + how;
        assert_eq!(problems(&missing("| A6 | all | no metrics |"), &tests), "");
        assert!(problems(&missing("| A6 | all | |"), &tests).contains("needs `all` or `part`, and a reason"));
        tests.insert("a6_works".into());
        let gained = problems(&missing("| A6 | all | no metrics |"), &tests);
        assert!(gained.starts_with("A6 has a test and is listed as not built"), "{gained}");
        let part = format!("{page}\n## Not built yet\n| A6 | part | no dashboard |");
        assert_eq!(problems(&part, &tests), "");
    }

    #[test]
    fn methods_of_browser_tests_count_by_their_id() {
        let text = "class Journeys:\n    def test_d5_resumed(self):\n    def test_plain(self):\n    def d4_no_test(self):";
        assert_eq!(tests_in_python(text), ["d5_resumed"]);
    }
}
