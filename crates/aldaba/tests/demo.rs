//! `aldaba demo` as a process whose output is read by another program.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn demo(temporary: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_aldaba"))
        .arg("demo")
        .args(arguments)
        .env_clear()
        .env("TMPDIR", temporary)
        // A real server's settings are none of the demo's business.
        .env("ALDABA_DATA", temporary.join("precious"))
        .stdin(Stdio::null())
        .output()
        .expect("the demo runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// The number after a word.
fn number(text: &str, word: &str) -> u64 {
    let after = text.split_once(word).unwrap_or_else(|| panic!("no `{word}` in {text}")).1;
    let digits = after.split_whitespace().next().unwrap_or_default().replace(',', "");
    digits.parse().unwrap_or_else(|_| panic!("`{word}` without a number in {text}"))
}

#[test]
fn a_short_demo_delivers_loses_nothing_and_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().expect("a folder");
    let output = demo(temporary.path(), &["--seconds", "3", "--rate", "50"]);
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}");
    assert_eq!(complained, "");
    assert!(!said.contains('\x1b'), "no escape codes in a pipe: {said}");

    assert!(said.contains("http://127.0.0.1:") && said.contains("\nTOKEN=eyJ"), "{said}");
    let lines: Vec<_> = said.lines().filter(|line| line.contains(" s  accepted ")).collect();
    assert!((2..=5).contains(&lines.len()), "a line a second: {said}");
    assert!(number(lines[lines.len() - 1], "delivered") > 0, "{said}");

    let (_, summary) = said.split_once("\nAfter ").expect("a summary");
    assert!((100..=160).contains(&number(summary, "\n  accepted")), "{summary}");
    let [expected, delivered, waiting, dead, lost] =
        ["\n  deliveries", "\n  delivered", "\n  waiting", "\n  dead", "\nlost:"]
            .map(|word| number(summary, word));
    assert!(delivered > 200, "{summary}");
    assert_eq!((lost, delivered + waiting + dead), (0, expected), "{summary}");
    assert!(number(summary, "\n  attempts") >= delivered, "{summary}");
    assert!(!summary.contains("forged") && !summary.contains("refused"), "{summary}");
    assert!(summary.contains("aldaba serve\n") && summary.contains("aldaba token create\n"), "{summary}");

    let left: Vec<_> = fs::read_dir(temporary.path()).expect("it is there").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_given_folder_stays_and_one_with_data_in_it_is_refused() {
    let outer = tempfile::tempdir().expect("a folder");
    let data = outer.path().join("data");
    let arguments = ["--seconds", "1", "--data", data.to_str().expect("text")];
    let output = demo(outer.path(), &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("serve --data "), "{}", text(&output.stdout));
    assert!(fs::read_dir(&data).expect("it stays").count() > 1);

    let again = demo(outer.path(), &arguments);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("is not empty"), "{}", text(&again.stderr));
}
