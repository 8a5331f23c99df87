//! Instructions that the server executes for a message, counted by callgrind.
//!
//! Unlike times they do not depend on other load. The server runs under callgrind, with one connection and one message at
//! a time. Counters are reset after a warm-up and dumped after the messages, so that the start is not counted; the
//! server's background work in the same time is measured without messages and subtracted.
//!
//! First, messages are accepted for later, so that nothing is sent: *accept*. Then they are accepted and delivered: the
//! additional cost is *deliver*, or *record* on the thread that commits.

use crate::Result;
use crate::api::{Api, Post};
use crate::clock::{self, Nanos, seconds};
use crate::document::replace_between;
use crate::payload::Stamp;
use crate::receiver::{Behaviour, Receiver};
use crate::server::{Launch, Server};
use crate::suite::Suite;
use crate::tenants::{NewEndpoint, application};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const WARM_UP: u64 = 200;
const MESSAGES: u64 = 1000;
const PAYLOAD_BYTES: usize = 1024;
/// How long all messages may take to arrive.
const ARRIVE: Duration = Duration::from_secs(120);
/// How long the idle server is measured.
const IDLE: Duration = Duration::from_secs(10);
/// The time after the last arrival until its result is on disk. A commit takes some milliseconds under callgrind.
const SETTLES: Duration = Duration::from_secs(2);
/// A function of SQLite that writes the log: only the thread that commits executes it.
const COMMITS: &str = "pagerWalFrames";
const BEGIN: &str = "<!-- instructions:begin -->";
const END: &str = "<!-- instructions:end -->";

/// Instructions by thread.
#[derive(Clone, Copy, Debug, Default)]
struct InstructionCounts {
    /// The thread that commits.
    writer: f64,
    others: f64,
}

impl InstructionCounts {
    fn minus(self, other: Self) -> Self {
        Self { writer: self.writer - other.writer, others: self.others - other.others }
    }

    fn times(self, factor: f64) -> Self {
        Self { writer: self.writer * factor, others: self.others * factor }
    }

    fn sum(self) -> f64 {
        self.writer + self.others
    }
}

/// The cost of a message.
#[derive(Clone, Copy, Debug)]
struct Message {
    accept: InstructionCounts,
    deliver_and_record: InstructionCounts,
}

/// Counts in several rounds, and returns the section of the document.
pub(crate) fn run(suite: &Suite, rounds: usize) -> Result<String> {
    let mut messages = Vec::new();
    for round in 1..=rounds {
        let message =
            Message { accept: counted(suite, true)?, deliver_and_record: InstructionCounts::default() };
        let whole = counted(suite, false)?;
        let message = Message { deliver_and_record: whole.minus(message.accept), ..message };
        eprintln!("instructions: round {round}: {:.0} a message", whole.sum());
        messages.push(message);
    }
    Ok(table(&messages))
}

/// Replaces the section in the document.
pub(crate) fn write(document: &Path, section: &str) -> Result<()> {
    replace_between(document, BEGIN, END, section)
}

/// The cost of one message that is kept for later, or delivered at once.
fn counted(suite: &Suite, later: bool) -> Result<InstructionCounts> {
    let (folder, profiles, receiver) = (suite.empty_folder()?, suite.empty_folder()?, suite.receiver()?);
    let callgrind = Callgrind { profiles: profiles.path().join("callgrind.out") };
    let launch = callgrind.around(suite.launch(&folder));
    let server = launch.start()?;
    suite.load.block_on(async {
        let api = server.api()?;
        let endpoint = NewEndpoint::new(receiver.url(Behaviour::AtOnce, 0));
        let messages = Messages {
            path: application(api, vec![endpoint]).await?,
            deliver_at: later.then(|| rfc_3339(clock::unix_seconds() + 30 * 24 * 3600)),
            receiver: &receiver,
        };
        messages.post(api, 0..WARM_UP).await?;
        callgrind.zero(&server)?;
        let begun = clock::now();
        tokio::time::sleep(IDLE).await;
        let idle = callgrind.dump(&server)?.times(1.0 / seconds(since(begun)));
        let begun = clock::now();
        messages.post(api, WARM_UP..WARM_UP + MESSAGES).await?;
        let took = seconds(since(begun));
        let all = callgrind.dump(&server)?;
        if all.writer == 0.0 {
            return Err(format!("no thread has `{COMMITS}`: is the server built without symbols?").into());
        }
        Ok(all.minus(idle.times(took)).times(1.0 / MESSAGES as f64))
    })
}

struct Messages<'a> {
    path: String,
    /// `None`: at once.
    deliver_at: Option<String>,
    receiver: &'a Receiver,
}

impl Messages<'_> {
    /// Posts messages one after another, and waits until they have arrived and are recorded.
    async fn post(&self, api: &Api, numbers: Range<u64>) -> Result<()> {
        let (mut connection, all) = (api.connect().await?, usize::try_from(numbers.end)?);
        for number in numbers {
            connection.post(&self.message(number)).await?.id()?;
        }
        if self.deliver_at.is_none() && !self.receiver.wait_for(all, ARRIVE) {
            return Err("not all messages arrived".into());
        }
        tokio::time::sleep(SETTLES).await;
        Ok(())
    }

    fn message(&self, number: u64) -> Post {
        let payload = Stamp { sent_at: 0, number }.payload(PAYLOAD_BYTES);
        let more = self.deliver_at.as_ref().map(|at| format!(r#","deliverAt":"{at}""#)).unwrap_or_default();
        let body = format!(r#"{{"eventType":"bench.event","payload":{payload}{more}}}"#);
        Post { path: self.path.clone(), key: Some(format!("bench-{number}")), body }
    }
}

fn since(begun: Nanos) -> Nanos {
    clock::now().saturating_sub(begun)
}

/// A server under callgrind.
struct Callgrind {
    /// The common prefix of all dumps.
    profiles: PathBuf,
}

impl Callgrind {
    fn around(&self, launch: Launch) -> Launch {
        let out = format!("--callgrind-out-file={}", self.profiles.display());
        let words = ["valgrind", "--tool=callgrind", "--separate-threads=yes", "--quiet", &out];
        // It is many times slower: what it would refuse for being slow is not what is counted.
        launch.under(&words).with("ALDABA_QUEUE_MILLISECONDS", 60_000)
    }

    fn zero(&self, server: &Server) -> Result<()> {
        self.control(server, "zero")
    }

    /// The instructions since the last call of this or of `zero`.
    fn dump(&self, server: &Server) -> Result<InstructionCounts> {
        for old in self.files()? {
            fs::remove_file(old)?;
        }
        self.control(server, "dump")?;
        let mut counts = InstructionCounts::default();
        for file in self.files()? {
            let text = fs::read_to_string(&file)?;
            let total: f64 = text
                .lines()
                .find_map(|line| line.strip_prefix("totals: "))
                .ok_or_else(|| format!("{} has no total", file.display()))?
                .trim()
                .parse()?;
            *(if text.contains(COMMITS) { &mut counts.writer } else { &mut counts.others }) += total;
        }
        Ok(counts)
    }

    /// The dumps, one for each thread.
    fn files(&self) -> Result<Vec<PathBuf>> {
        let folder = self.profiles.parent().ok_or("dumps have a folder")?;
        let files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
        files.collect()
    }

    fn control(&self, server: &Server, command: &str) -> Result<()> {
        let pid = format!("--pid={}", server.pid());
        let output = Command::new("vgdb").args([&pid, command]).output()?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("vgdb {command}: {}", String::from_utf8_lossy(&output.stderr)).into())
    }
}

/// A part of the cost, and its share of a message.
type Row = (&'static str, fn(&Message) -> f64);

fn table(messages: &[Message]) -> String {
    let rows: [Row; 6] = [
        ("accept: request, token, body, checks, answer", |message| message.accept.others),
        ("accept: commit", |message| message.accept.writer),
        ("deliver: turn, signature, request, answer, decision", |message| message.deliver_and_record.others),
        ("record: commit", |message| message.deliver_and_record.writer),
        ("in all", |message| message.accept.sum() + message.deliver_and_record.sum()),
        ("of that commits", |message| message.accept.writer + message.deliver_and_record.writer),
    ];
    let mut text = String::from("| instructions a message |");
    (1..=messages.len()).for_each(|round| text.push_str(&format!(" round {round} |")));
    text.push_str(" mean | spread |\n| --- |");
    (0..messages.len() + 2).for_each(|_| text.push_str(" --- |"));
    text.push('\n');
    for (name, of) in rows {
        let values: Vec<f64> = messages.iter().map(of).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let (low, high) = values
            .iter()
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
        text.push_str(&format!("| {name} |"));
        values.iter().chain([&mean]).for_each(|value| text.push_str(&format!(" {} |", thousands(*value))));
        text.push_str(&format!(" {:.1} % |\n", (high - low) / mean * 100.0));
    }
    text
}

/// Rounds to hundreds: smaller differences vary between runs.
fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", (value / 100.0).round() * 100.0);
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time in the format of the API.
fn rfc_3339(unix_seconds: i64) -> String {
    let (days, seconds) = (unix_seconds.div_euclid(86_400), unix_seconds.rem_euclid(86_400));
    // Years begin in March here, so that a leap day is the last day of its year.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_the_api_reads_them() {
        assert_eq!(rfc_3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc_3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc_3339(1_767_225_599), "2025-12-31T23:59:59Z");
    }

    #[test]
    fn the_table_has_a_row_for_each_part_and_the_spread_of_rounds() {
        let counts = |writer, others| InstructionCounts { writer, others };
        let message = |factor: f64| Message {
            accept: counts(60_000.0, 90_000.0).times(factor),
            deliver_and_record: counts(70_000.0, 80_000.0),
        };
        let table = table(&[message(1.0), message(1.1)]);
        assert!(
            table.starts_with("| instructions a message | round 1 | round 2 | mean | spread |\n"),
            "{table}"
        );
        assert!(table.contains("| accept: commit | 60,000 | 66,000 | 63,000 | 9.5 % |"), "{table}");
        assert!(table.contains("| record: commit | 70,000 | 70,000 | 70,000 | 0.0 % |"), "{table}");
        assert!(table.contains("| in all | 300,000 | 315,000 | 307,500 | 4.9 % |"), "{table}");
    }

    #[test]
    fn only_the_section_changes() {
        let folder = tempfile::tempdir().unwrap();
        let document = folder.path().join("a.md");
        fs::write(&document, format!("before\n{BEGIN}\nold\n{END}\nafter\n")).unwrap();
        write(&document, "new\n").unwrap();
        let text = fs::read_to_string(&document).unwrap();
        assert_eq!(text, format!("before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"));
        fs::write(&document, "no marks").unwrap();
        write(&document, "new").unwrap_err();
    }
}
