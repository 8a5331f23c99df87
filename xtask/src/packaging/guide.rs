//! Runs the commands of docs/operations.md as written, in their order, on a machine with the package in root's home. A
//! block of `text` after a command is its output.

use super::machine::{Machine, wait};
use crate::markdown::{self, Block};
use crate::recipes::agree;
use crate::run::{TaskResult, root};
use std::fs;

const PAGE: &str = "docs/operations.md";
/// A block after this runs with `cargo xtask container`.
const OF_CONTAINER: &str = "<!-- run: container -->";

/// After these the service must run.
const STARTS: [&str; 3] = ["apt-get install", "systemctl start", "systemctl restart"];

pub(super) fn run(machine: &Machine<'_>) -> TaskResult {
    let steps = steps(&text()?)?;
    for (commands, expected) in &steps {
        run_step(machine, commands, expected.as_deref())?;
    }
    println!("{PAGE}: {} blocks of commands work as written", steps.len());
    Ok(())
}

fn run_step(machine: &Machine<'_>, commands: &str, expected: Option<&str>) -> TaskResult {
    let done = machine.script(commands).output().map_err(|error| format!("nsenter: {error}"))?;
    let [printed, errors] =
        [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let failed = |why: String| {
        let journal =
            machine.script("systemctl --no-pager --full status aldaba; journalctl --no-pager --unit aldaba");
        let journal = { journal }.output().map(|done| String::from_utf8_lossy(&done.stdout).into_owned());
        Err(format!("{PAGE}:\n{commands}\n{why}\n{printed}\n{errors}\n{}", journal.unwrap_or_default()))
    };
    if !done.status.success() {
        return failed(format!("ended with {}", done.status));
    }
    if let Some(Err(why)) = expected.map(|expected| agree(expected, &printed)) {
        return failed(why);
    }
    if STARTS.iter().any(|start| commands.contains(start)) {
        let lives = "systemctl is-active --quiet aldaba && aldaba health --live --url http://127.0.0.1:8071";
        let active = || machine.script(lives).output().ok()?.status.success().then_some(());
        if let Err(why) = wait("the service", active) {
            return failed(why);
        }
    }
    Ok(())
}

fn text() -> Result<String, String> {
    fs::read_to_string(root().join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))
}

/// The commands with their expected output. Those of containers are left out.
fn steps(text: &str) -> Result<Vec<(String, Option<String>)>, String> {
    if let Some(line) =
        text.lines().find(|line| line.starts_with(' ') && line.trim_start().starts_with("```"))
    {
        return Err(format!("{PAGE}: an indented block of code is not found, and so not run: `{line}`"));
    }
    let mut parts = text.split(OF_CONTAINER);
    let mut blocks = parts.next().map(markdown::blocks).unwrap_or_default();
    blocks.extend(parts.flat_map(|part| markdown::blocks(part).into_iter().skip(1)));
    let mut steps: Vec<(String, Option<String>)> = Vec::new();
    for Block { language, body } in blocks {
        match (language.as_str(), steps.last_mut()) {
            ("sh", _) => steps.push((body, None)),
            ("text", Some((_, expected @ None))) => *expected = Some(body),
            ("text", _) => return Err(format!("{PAGE}: this output follows no command:\n{body}")),
            // Files, such as a change of the unit.
            _ => {}
        }
    }
    Ok(steps)
}

/// The change of the unit on the page.
pub(super) fn change_of_the_unit() -> Result<String, String> {
    let blocks = markdown::blocks(&text()?);
    let change = blocks.into_iter().find(|block| block.language == "ini");
    Ok(change.ok_or(format!("{PAGE} has no block of `ini`"))?.body)
}

/// The commands for containers.
pub(super) fn of_container() -> Result<String, String> {
    let text = text()?;
    let after = text.split_once(OF_CONTAINER).ok_or(format!("{PAGE} has no `{OF_CONTAINER}`"))?.1;
    Ok(markdown::blocks(after)
        .into_iter()
        .next()
        .ok_or(format!("{PAGE}: no code after `{OF_CONTAINER}`"))?
        .body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_run_with_their_output_and_those_of_containers_are_not() {
        let page = "```sh\none\n```\n\n```text\n1\n```\n<!-- run: container -->\n```sh\npodman\n```\n```ini\n[A]\n```\n```sh\ntwo\n```\n";
        let expected = [("one\n".to_owned(), Some("1\n".to_owned())), ("two\n".to_owned(), None)];
        assert_eq!(steps(page).unwrap(), expected);
    }

    #[test]
    fn a_block_that_would_not_be_run_is_named() {
        assert!(steps("1. a\n   ```sh\n   one\n   ```\n").unwrap_err().contains("is not found"));
        assert!(steps("```text\nnothing\n```\n").unwrap_err().contains("follows no command"));
    }

    #[test]
    fn the_page_has_commands_for_both_runs() {
        assert!(steps(&text().unwrap()).unwrap().len() > 5);
        assert!(of_container().unwrap().contains("podman run"));
    }
}
