//! Runs every recipe of docs/recipes as written, and compares the output with the page.
//!
//! All recipes share a server and a receiver. The recipes of a page run as a reader runs them: one after another, in one
//! shell and one organization, after the block `setup` of docs/README.md. Then each page runs again in reverse order in
//! the same shell, because a recipe must work in any order and repeatedly. Pages run concurrently, each in its own
//! organization.

use crate::background::{Background, Folder, PATIENT};
use crate::markdown::{self, Block, Fitting};
use crate::readme::free_port;
use crate::run::{TaskResult, root};
use crate::tools::{self, Node};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Pages that run concurrently: recipes mostly wait.
const MAX_PAGES_AT_ONCE: usize = 4;

/// The time limit of a recipe, on average over its page.
const MAX_RECIPE_SECONDS: usize = 60;

/// The maximum number of sentences before the code of a recipe.
const MAX_SENTENCES: usize = 2;

/// The languages of executed code.
const RUN: [&str; 3] = ["sh", "python", "javascript"];

/// The language of a block with the expected output of the code before it.
const PRINTS: &str = "text";

/// In such a block this matches anything within a line.
const ANYTHING: char = '…';

/// A recipe: a heading in a user's words, and code with its output.
#[derive(Debug)]
struct Recipe {
    /// The name of the page's file.
    page: String,
    heading: String,
    /// The text below the heading.
    text: String,
}

/// Runs the recipes with one of these words in their page or heading, or all.
pub(crate) fn run(binary: &Path, words: &[String]) -> TaskResult {
    let index = read(&root().join("docs/README.md"))?;
    let recipes = all()?;
    let problems = check(&index, &recipes);
    if !problems.is_empty() {
        return Err(format!("docs/recipes:\n- {}", problems.join("\n- ")));
    }
    let wanted = |recipe: &&Recipe| {
        let name = recipe.name().to_lowercase();
        words.is_empty() || words.iter().any(|word| name.contains(&word.to_lowercase()))
    };
    let wanted: Vec<_> = recipes.iter().filter(wanted).collect();
    if wanted.is_empty() {
        return Err(format!("no recipe has any of these words: {}", words.join(" ")));
    }
    let (runner, _processes) = Runner::start(binary, &index)?;
    let failed = runner.run_all(&wanted);
    if failed.is_empty() {
        println!("docs/recipes: {} recipes work as written", wanted.len());
        return Ok(());
    }
    Err(format!("recipes whose output differs from their page:\n\n{}", failed.join("\n\n")))
}

/// The recipes of all pages.
fn all() -> Result<Vec<Recipe>, String> {
    let folder = root().join("docs/recipes");
    let files = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let pages: BTreeSet<_> = files.flatten().map(|file| file.path()).collect();
    let mut recipes = Vec::new();
    for path in pages.iter().filter(|path| path.extension().is_some_and(|ending| ending == "md")) {
        let page = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        recipes.extend(recipes_of(&page, &read(path)?));
    }
    Ok(recipes)
}

fn recipes_of(page: &str, text: &str) -> Vec<Recipe> {
    let sections = text.split("\n## ").skip(1);
    let recipe = |section: &str| {
        let (heading, text) = section.split_once('\n').unwrap_or((section, ""));
        Recipe { page: page.to_owned(), heading: heading.to_owned(), text: text.to_owned() }
    };
    sections.map(recipe).collect()
}

/// The problems of the pages themselves.
fn check(index: &str, recipes: &[Recipe]) -> Vec<String> {
    let mut problems = Vec::new();
    for recipe in recipes {
        let link = format!("](recipes/{}#{})", recipe.page, anchor(&recipe.heading));
        if !index.contains(&link) {
            problems.push(format!("docs/README.md has no link to {}: `{link}`", recipe.name()));
        }
        match recipe.steps() {
            Ok(steps) => {
                let habits = steps.iter().flat_map(|(code, _)| bad_habits(code));
                problems.extend(habits.map(|why| format!("{}: {why}", recipe.name())));
            }
            Err(why) => problems.push(format!("{}: {why}", recipe.name())),
        }
        if recipe.sentences() > MAX_SENTENCES {
            problems.push(format!("{} has more than {MAX_SENTENCES} sentences", recipe.name()));
        }
        let links: Vec<_> = recipe.links().collect();
        if links.is_empty() {
            problems.push(format!("{} has no link to a reference page", recipe.name()));
        }
        let broken = links.into_iter().filter(|link| !leads_somewhere(link));
        problems.extend(broken.map(|link| format!("{}: the link {link} is broken", recipe.name())));
    }
    let links = index.split("](recipes/").skip(1).filter_map(|rest| rest.split(')').next());
    for link in links.filter(|link| link.contains('#')) {
        let is_it = |recipe: &Recipe| *link == format!("{}#{}", recipe.page, anchor(&recipe.heading));
        if !recipes.iter().any(is_it) {
            problems.push(format!("docs/README.md has a broken link to recipes/{link}"));
        }
    }
    problems
}

/// The reasons why a recipe would fail after others in the same terminal, or would not end.
fn bad_habits(code: &Block) -> Vec<&'static str> {
    let mut habits = Vec::new();
    if code.language == "sh" && code.body.contains("$APP") && !code.body.starts_with("fresh\n") {
        habits.push("must begin with `fresh`: an earlier recipe may have changed `$APP` and `$ENDPOINT`");
    }
    let endless = |line: &str| line.trim_start().starts_with("until ") || line.contains("while true");
    if code.body.lines().any(endless) {
        habits.push("must wait with `wait_for` or `settled`, which time out");
    }
    habits
}

/// Whether a page next to docs/recipes, or a heading on it, exists.
fn leads_somewhere(link: &str) -> bool {
    let (page, heading) = link.split_once('#').unwrap_or((link, ""));
    let Ok(text) = read(&root().join("docs/recipes").join(page)) else { return false };
    let headings = text.lines().filter(|line| line.starts_with('#'));
    heading.is_empty()
        || headings.map(|line| anchor(line.trim_start_matches(['#', ' ']))).any(|one| one == heading)
}

/// The part of a link that names a heading.
pub(crate) fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|sign| sign.is_alphanumeric() || matches!(sign, '-' | '_')).collect()
}

impl Recipe {
    fn name(&self) -> String {
        format!("{} \"{}\"", self.page, self.heading)
    }

    /// The text before its code.
    fn sentences(&self) -> usize {
        let prose = self.text.split("```").next().unwrap_or_default();
        prose.split_whitespace().filter(|word| word.ends_with(['.', '?', '!'])).count()
    }

    /// The links to pages of the reference.
    fn links(&self) -> impl Iterator<Item = &str> {
        let rests = self.text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        rests.filter(|link| link.starts_with("../"))
    }

    /// Its code: each block with its expected output.
    fn steps(&self) -> Result<Vec<(Block, String)>, String> {
        let blocks = markdown::blocks(&self.text);
        let (pairs, rest) = blocks.as_chunks::<2>();
        if blocks.is_empty() || !rest.is_empty() {
            return Err(format!("needs code, followed by a block of `{PRINTS}` with its output"));
        }
        let step = |[code, prints]: &[Block; 2]| {
            if !RUN.contains(&code.language.as_str()) {
                return Err(format!("code must be in one of {}, not in `{}`", RUN.join(", "), code.language));
            }
            if prints.language != PRINTS || prints.body.trim().is_empty() {
                return Err(format!("needs a block of `{PRINTS}` after the code, with its output"));
            }
            Ok((code.clone(), prints.body.clone()))
        };
        pairs.iter().map(step).collect()
    }
}

/// Runs recipes with a server and a receiver.
struct Runner {
    folder: Folder,
    fitting: Fitting,
    setup: String,
    python: PathBuf,
    node: PathBuf,
}

impl Runner {
    /// Starts the server and the receiver as in docs/README.md.
    fn start(binary: &Path, index: &str) -> Result<(Self, [Background; 2]), String> {
        let missing: Vec<_> = ["curl", "jq", "openssl"].into_iter().filter(|name| !is_there(name)).collect();
        if !missing.is_empty() {
            tools::install(&missing)?;
        }
        let node = Node::new()?;
        node.install(&packages())?;
        let (python, node) = (tools::python("newest")?, node.path());
        let folder = Folder::new()?;
        let fitting =
            Fitting { binary: binary.to_owned(), ports: [free_port()?, free_port()?, free_port()?] };
        let block = |name: &str| {
            let block = markdown::block(index, name).map_err(|why| format!("docs/README.md: {why}"))?;
            Ok::<_, String>(fitting.fit(&block))
        };
        let mut server = shell(&block("server")?, &folder.0);
        server.env("ALDABA_LOG", "error").env(PATIENT.0, PATIENT.1);
        let mut server = Background::start(server)?;
        server.wait_for("http://")?;
        let mut receiver = Background::start(shell(&block("receiver")?, &folder.0))?;
        receiver.wait_for("receiving on")?;
        let setup = block("setup")?;
        Ok((Self { folder, fitting, setup, python, node }, [server, receiver]))
    }

    /// Runs the recipes page by page, some pages concurrently. Returns the failures.
    fn run_all(&self, recipes: &[&Recipe]) -> Vec<String> {
        let pages: Vec<_> = recipes.chunk_by(|one, next| one.page == next.page).collect();
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            while let Some((number, page)) = take(&next, &pages) {
                let failures = self.run_page(number, page).unwrap_or_else(|why| vec![why]);
                failed.lock().unwrap_or_else(PoisonError::into_inner).extend(failures);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..MAX_PAGES_AT_ONCE {
                scope.spawn(work);
            }
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs all recipes of a page in one shell, and then all in reverse order. The first failed command ends the run.
    fn run_page(&self, number: usize, page: &[&Recipe]) -> Result<Vec<String>, String> {
        let runs = runs(page);
        let begun = self.file(format!("{number}-begun"));
        let mut script = self.setup_of(number);
        for (run, recipe) in runs.iter().enumerate() {
            script.push_str(&format!("echo {run} > {}\n", begun.display()));
            for (step, (code, _)) in recipe.steps()?.iter().enumerate() {
                script.push_str(&self.command(code, &self.output(number, run, step)));
            }
        }
        let seconds = (MAX_RECIPE_SECONDS * runs.len()).to_string();
        let mut command = Command::new("timeout");
        command.args([&seconds, "bash", "-c", &format!("set -euo pipefail\n{script}")]);
        command.current_dir(&self.folder.0).env("PYTHONDONTWRITEBYTECODE", "1");
        let done = command.output().map_err(|error| format!("bash: {error}"))?;
        let errors = String::from_utf8_lossy(&done.stderr);
        let last = fs::read_to_string(&begun).ok().and_then(|run| run.trim().parse::<usize>().ok());
        let Some(last) = last else {
            return Err(format!("the setup of docs/README.md ended with {}\n{errors}", done.status));
        };
        let mut failures = Vec::new();
        for (run, recipe) in runs.iter().enumerate().take(last + 1) {
            let ended = if run == last && !done.status.success() { Some(done.status) } else { None };
            if let Err(why) = self.judge(number, run, recipe, ended) {
                let again = if run < page.len() { "" } else { ", in the second run of its page" };
                failures.push(format!("{}{again}: {why}", recipe.name()));
            }
        }
        if !failures.is_empty() {
            failures.push(format!("{} printed to standard error:\n{errors}", page[0].page));
        } else {
            page.iter().for_each(|recipe| println!("{} ... ok", recipe.name()));
        }
        Ok(failures)
    }

    /// Compares the output of one run of a recipe with its page. `ended`: how the shell ended in it.
    fn judge(&self, number: usize, run: usize, recipe: &Recipe, ended: Option<ExitStatus>) -> TaskResult {
        for (step, (_, expected)) in recipe.steps()?.iter().enumerate() {
            let printed = fs::read_to_string(self.output(number, run, step)).unwrap_or_default();
            if let Some(status) = ended {
                return Err(format!(
                    "it exited with {status}, and the rest of its page did not run\n{printed}"
                ));
            }
            agree(&self.fitting.fit(expected), &printed)?;
        }
        Ok(())
    }

    fn file(&self, name: String) -> PathBuf {
        self.folder.0.join(name)
    }

    /// The output file of one step of a run.
    fn output(&self, number: usize, run: usize, step: usize) -> PathBuf {
        self.file(format!("{number}-{run}-{step}"))
    }

    /// The setup of a page, in its own organization.
    fn setup_of(&self, number: usize) -> String {
        let organization = format!("org_{:0>27}", format!("Recipes{number}"));
        self.setup.replace("token create", &format!("token create --org {organization}")) + "\n"
    }

    /// Shell code runs in braces, so that its variables stay.
    fn command(&self, code: &Block, output: &Path) -> String {
        let (body, output) = (self.fitting.fit(&code.body), output.display());
        let program = |line: String| format!("{line} > {output} <<'END_OF_RECIPE'\n{body}\nEND_OF_RECIPE\n");
        match code.language.as_str() {
            "python" => program(format!("{} -", self.python.display())),
            // Packages are searched from the working directory.
            "javascript" => {
                let node = format!("{} --input-type=module -", self.node.display());
                program(format!("env --chdir={} {node}", packages().display()))
            }
            _ => format!("{{\n{body}\n}} > {output}\n"),
        }
    }
}

/// The order in which the recipes of a page run: forward, then in reverse.
fn runs<T: Copy>(page: &[T]) -> Vec<T> {
    page.iter().chain(page.iter().rev()).copied().collect()
}

fn take<'a, T: ?Sized>(next: &AtomicUsize, all: &[&'a T]) -> Option<(usize, &'a T)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    all.get(number).map(|one| (number, *one))
}

/// Fails unless the output matches line by line.
pub(crate) fn agree(expected: &str, printed: &str) -> TaskResult {
    let (wanted, lines): (Vec<_>, Vec<_>) = (expected.lines().collect(), printed.lines().collect());
    let all = wanted.len() == lines.len() && wanted.iter().zip(&lines).all(|(one, line)| is_like(one, line));
    if all { Ok(()) } else { Err(format!("expected output:\n{expected}actual output:\n{printed}")) }
}

/// Whether a line consists of the given pieces with anything between them.
fn is_like(pattern: &str, line: &str) -> bool {
    let mut pieces = pattern.split(ANYTHING);
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let mut pieces: Vec<_> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        let Some(found) = rest.find(piece) else { return false };
        rest = &rest[found + piece.len()..];
    }
    rest.ends_with(last)
}

/// The folder with the packages of Node.js.
fn packages() -> PathBuf {
    root().join("sdks/javascript")
}

fn shell(script: &str, folder: &Path) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("set -euo pipefail\n{script}\nwait")]).current_dir(folder);
    command
}

fn is_there(program: &str) -> bool {
    let option = if program == "openssl" { "version" } else { "--version" };
    Command::new(program).arg(option).output().is_ok()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{Recipe, agree, all, anchor, check, is_like, read, recipes_of, runs};
    use crate::run::root;

    const INDEX: &str = "- [Pause an endpoint](recipes/a.md#pause-an-endpoint)\n";
    const PAGE: &str = "# A\n\n## Pause an endpoint\n\nIt pauses.\n\n```sh\necho true\n```\n\n```text\ntrue\n```\n\nMore: [health](../health.md).\n";

    fn problems(index: &str, page: &str) -> String {
        check(index, &recipes_of("a.md", page)).join("\n")
    }

    #[test]
    fn a_recipe_is_a_heading_with_code_and_what_it_prints() {
        assert_eq!(problems(INDEX, PAGE), "");
        let silent = PAGE.replace("```text\ntrue\n```", "");
        assert!(problems(INDEX, &silent).contains("needs code, followed by a block of `text`"));
        let other = PAGE.replace("```sh", "```json");
        assert!(problems(INDEX, &other).contains("not in `json`"));
        let alone = PAGE.replace("](../health.md)", "]");
        assert!(problems(INDEX, &alone).contains("has no link to a reference page"));
        let long = PAGE.replace("It pauses.", "It pauses. It does. It really does.");
        assert!(problems(INDEX, &long).contains("more than 2 sentences"));
    }

    #[test]
    fn a_recipe_works_after_any_other_and_ends() {
        assert_eq!(runs(&[1, 2, 3]), [1, 2, 3, 3, 2, 1]);
        let of_a_customer = PAGE.replace("echo true", "api $API/app/$APP");
        assert!(problems(INDEX, &of_a_customer).contains("must begin with `fresh`"));
        let fresh = PAGE.replace("echo true", "fresh\napi $API/app/$APP");
        assert_eq!(problems(INDEX, &fresh), "");
        let endless = PAGE.replace("echo true", "until false; do sleep 1; done");
        assert!(problems(INDEX, &endless).contains("must wait with `wait_for`"));
    }

    #[test]
    fn a_link_to_a_page_or_a_heading_that_is_not_there_is_named() {
        for (link, is_there) in [
            ("../health.md", true),
            ("../health.md#resume-an-endpoint", true),
            ("../health.md#dancing", false),
            ("../dancing.md", false),
        ] {
            let page = PAGE.replace("../health.md", link);
            let expected = if is_there {
                String::new()
            } else {
                format!("a.md \"Pause an endpoint\": the link {link} is broken")
            };
            assert_eq!(problems(INDEX, &page), expected);
        }
    }

    #[test]
    fn the_index_leads_to_every_recipe_and_to_nothing_else() {
        assert!(problems("", PAGE).contains("has no link to a.md \"Pause an endpoint\""));
        let more = format!("{INDEX}- [Gone](recipes/a.md#gone)\n");
        assert_eq!(problems(&more, PAGE), "docs/README.md has a broken link to recipes/a.md#gone");
    }

    #[test]
    fn the_recipes_of_this_repository_are_well_formed() {
        let index = read(&root().join("docs/README.md")).unwrap();
        let recipes: Vec<Recipe> = all().unwrap();
        assert_eq!(check(&index, &recipes), [""; 0]);
    }

    #[test]
    fn a_heading_is_reached_as_github_writes_it() {
        assert_eq!(anchor("Why didn't it arrive?"), "why-didnt-it-arrive");
    }

    #[test]
    fn the_output_must_match_the_page() {
        agree("one\ntwo\n", "one\ntwo\n").unwrap();
        agree("msg_…\n", "msg_2srO\n").unwrap();
        let why = agree("one\n", "one\ntwo\n").unwrap_err();
        assert_eq!(why, "expected output:\none\nactual output:\none\ntwo\n");
        assert!(agree("one\ntwo\n", "one\n").is_err());
    }

    #[test]
    fn the_sign_for_anything_stays_within_its_line() {
        assert!(is_like("a … c … e", "a b c d e"));
        assert!(is_like("…", "") && is_like("…", "anything"));
        assert!(!is_like("a … c", "a b d"));
        assert!(!is_like("a", "ab") && !is_like("a", "b"));
        assert!(!is_like("ab…b", "ab"));
    }
}
