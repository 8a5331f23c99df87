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

/// Every account that the demo has printed agrees in itself: each line, the summary, and its endpoints.
fn assert_sums(said: &str) {
    let lines = said.lines().filter(|line| line.contains(" s  events "));
    let mut counted = 0;
    for line in lines {
        let [deliveries, delivered, waiting, dead] =
            ["deliveries", "delivered", "waiting", "dead"].map(|word| number(line, &format!(" {word} ")));
        assert_eq!(deliveries, delivered + waiting + dead, "{line}");
        assert!(number(line, " attempts ") >= delivered, "{line}");
        counted += 1;
    }
    assert!(counted > 0, "{said}");
    let (_, summary) = said.split_once("\nAfter ").expect("a summary");
    let totals =
        ["\n  deliveries", "\n  delivered", "\n  waiting", "\n  dead"].map(|word| number(summary, word));
    let (_, table) = summary.split_once("\n  endpoint ").expect("a table of endpoints");
    let rows: Vec<Vec<u64>> = table
        .lines()
        .skip(1)
        .map_while(|line| line.strip_prefix("  "))
        .map(|line| {
            let cells = line.split_whitespace().skip(1).map(|cell| cell.replace(',', "").parse());
            cells.collect::<Result<_, _>>().expect("numbers")
        })
        .collect();
    assert_eq!(rows.len(), 6, "{table}");
    for row in &rows {
        assert_eq!(row[0], row[1] + row[2] + row[3], "{table}");
    }
    let sums: [u64; 4] = std::array::from_fn(|column| rows.iter().map(|row| row[column]).sum());
    assert_eq!(sums, totals, "{summary}");
    assert_eq!(totals[0], totals[1] + totals[2] + totals[3], "{summary}");
    // The last line is the same account.
    let last = said.lines().rfind(|line| line.contains(" s  events ")).expect("a line");
    assert_eq!(number(last, " dead "), totals[3], "{last}\n{summary}");
}

#[test]
fn sums_agree_while_deliveries_die() {
    let temporary = tempfile::tempdir().expect("a folder");
    // Long enough for an endpoint that hangs up on three attempts in a row.
    let output = demo(temporary.path(), &["--seconds", "9", "--rate", "40"]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", text(&output.stderr));
    assert_sums(said);
    let legacy = said.lines().find(|line| line.starts_with("  legacy ")).expect("its line");
    let dead: u64 =
        legacy.split_whitespace().last().expect("a number").replace(',', "").parse().expect("a number");
    assert!(dead > 0, "{said}");
}

#[test]
fn a_short_demo_delivers_everything_and_cleans_up() {
    let temporary = tempfile::tempdir().expect("a folder");
    let output = demo(temporary.path(), &["--seconds", "3", "--rate", "50"]);
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}");
    assert_eq!(complained, "");
    assert!(!said.contains('\x1b'), "no escape codes in a pipe: {said}");

    assert!(said.contains("http://127.0.0.1:") && said.contains("\nTOKEN=eyJ"), "{said}");
    let lines: Vec<_> = said.lines().filter(|line| line.contains(" s  events ")).collect();
    assert!((2..=5).contains(&lines.len()), "a line a second: {said}");
    assert!(number(lines[lines.len() - 1], "delivered") > 0, "{said}");
    assert_sums(said);
    for word in ["deliveries = delivered + waiting + dead", "waiting on disk", "attempts with retries"] {
        assert!(said.contains(word), "the lines are explained: {said}");
    }
    assert!(!said.contains("p50") && !said.contains("last 30 s"), "and nothing else is: {said}");

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
