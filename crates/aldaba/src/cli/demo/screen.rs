//! Renders the display as text: a picture for a terminal, a line for a pipe, and the summary at the end. Pure.

use super::SHOWN_EVENTS;
use super::counters::{BARS, EndpointCounts, EndpointHealth, EndpointRow, FinalCounts, Totals};
use super::recent_events::RecentEvent;
use super::scenario::{Behaviour, ENDPOINT_COUNT, ENDPOINTS};
use std::fmt::Write;
use std::time::Duration;

/// The size of the terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TerminalSize {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// What the terminal can display.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub(super) colour: bool,
    /// Blocks for the bars, and signs beyond ASCII; else only what every terminal has.
    pub(super) blocks: bool,
}

/// Everything that one picture shows.
#[derive(Clone, Debug)]
pub(super) struct Picture {
    pub(super) address: String,
    pub(super) elapsed: Duration,
    pub(super) rate: u64,
    pub(super) totals: Totals,
    pub(super) behaviours: [(Behaviour, Duration); ENDPOINT_COUNT],
    pub(super) rows: [EndpointRow; ENDPOINT_COUNT],
    pub(super) recent_events: Vec<RecentEvent>,
    /// The hint in the last line.
    pub(super) hint: String,
    /// The stream has stopped, and the wait for due deliveries lasts at most this long.
    pub(super) ending: Option<Duration>,
}

/// The meaning of a text, which becomes a colour where there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Plain,
    Strong,
    Faint,
    Good,
    Warning,
    Bad,
}

/// The width at which the table has room for the policies.
const WITH_POLICY: usize = 92;
const POLICY_WIDTH: usize = 12;
/// The table without policies and bars.
const TABLE_WIDTH: usize = 75;
/// The number of bars, by the width.
const BAR_COUNTS: [usize; 3] = [BARS, 10, 5];
/// Title, totals, heads, endpoints, hint, the empty lines between them, and one that stays free.
const FIXED_ROWS: usize = 10 + ENDPOINT_COUNT;
/// The legend of the columns, if it fits.
pub(super) const LEGEND: [&str; 4] = [
    "deliveries = delivered + waiting + dead: one for each event and endpoint that wants it",
    "now what it does   deliv delivered   wait on disk for the next attempt   dead given up",
    "retry attempts after the first   last newest answer   p50, p99 from sending to answer",
    "health what the server makes of it   last 30 s arrivals in each second, the newest right",
];
/// The legend of a line without a terminal.
pub(super) const LINE_LEGEND: [&str; 3] = [
    LEGEND[0],
    "waiting on disk for the next attempt   dead given up   attempts with retries, failed of these",
    "in brackets: the endpoints that misbehave at the moment",
];
/// The minimum width; the terminal cuts off the rest.
const MIN_COLUMNS: usize = 80;

impl Style {
    fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Strong => "1",
            Tone::Faint => "2",
            Tone::Good => "32",
            Tone::Warning => "33",
            Tone::Bad => "31",
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

impl Picture {
    /// The lines of the picture; none is wider than the terminal, and one row stays free.
    pub(super) fn lines(&self, size: TerminalSize, style: Style) -> Vec<String> {
        let width = size.columns.max(MIN_COLUMNS);
        let mut lines = vec![self.title(width, style), String::new()];
        lines.extend(self.totals(style));
        lines.push(String::new());
        lines.push(style.paint(Tone::Faint, &heads(width)));
        for lane in 0..ENDPOINT_COUNT {
            lines.push(self.row(lane, width, style));
        }
        lines.push(String::new());
        let room = size.rows.saturating_sub(FIXED_ROWS);
        let legend = if room > SHOWN_EVENTS + LEGEND.len() { &LEGEND[..] } else { &[] };
        let room = room.min(SHOWN_EVENTS);
        let told = &self.recent_events[self.recent_events.len().saturating_sub(room)..];
        lines.extend(told.iter().map(|line| news(line, width, style)));
        // A constant height, so that nothing jumps.
        lines.resize(lines.len() + room - told.len(), String::new());
        lines.push(String::new());
        lines.extend(legend.iter().map(|line| style.paint(Tone::Faint, &cut(line, width))));
        lines.push(style.paint(Tone::Faint, &cut(&self.hint, width)));
        lines.truncate(size.rows.saturating_sub(1).max(1));
        if !style.blocks {
            lines.iter_mut().for_each(|line| *line = line.replace('×', "x").replace('…', "."));
        }
        lines
    }

    fn title(&self, width: usize, style: Style) -> String {
        let minutes = self.elapsed.as_secs() / 60;
        let seconds = self.elapsed.as_secs() % 60;
        let doing = match self.ending {
            None => format!("{} events/s   Ctrl-C ends it", self.rate),
            Some(Duration::ZERO) => "ended".into(),
            Some(left) => format!("ends in {} s at most", left.as_millis().div_ceil(1000)),
        };
        let rest = format!("   {}   {minutes}:{seconds:02}   {doing}", self.address);
        let name = "Aldaba demo";
        style.paint(Tone::Strong, name) + &cut(&rest, width - name.len())
    }

    /// A line of names and one of numbers.
    fn totals(&self, style: Style) -> [String; 2] {
        let totals = &self.totals;
        let shown = [
            ("events", totals.accepted, Tone::Strong),
            ("deliveries", totals.expected, Tone::Strong),
            ("delivered", totals.delivered, Tone::Good),
            ("waiting", totals.waiting, Tone::Warning),
            ("dead", totals.dead, Tone::Bad),
            ("attempts", totals.attempts, Tone::Plain),
            ("failed", totals.failed, Tone::Plain),
        ];
        let names = shown.map(|(name, ..)| format!("{name:>11}")).concat();
        let numbers = shown.map(|(_, number, tone)| {
            let tone = if number == 0 { Tone::Plain } else { tone };
            style.paint(tone, &format!("{:>11}", grouped(number)))
        });
        [style.paint(Tone::Faint, &names), numbers.concat()]
    }

    fn row(&self, lane: usize, width: usize, style: Style) -> String {
        let (script, row) = (&ENDPOINTS[lane], &self.rows[lane]);
        let (behaviour, until) = self.behaviours[lane];
        let behaviour_words = match behaviour {
            Behaviour::Down => {
                let left = until.saturating_sub(self.elapsed).as_millis().div_ceil(1000);
                format!("down {left} s")
            }
            behaviour => behaviour.words(),
        };
        let behaviour_tone = match behaviour {
            Behaviour::Healthy => Tone::Good,
            Behaviour::Slow => Tone::Warning,
            _ => Tone::Bad,
        };
        let (health, health_tone) = health(&row.health);
        let mut line = format!("{:<9} ", script.name);
        if width >= WITH_POLICY {
            let _ = write!(line, "{} ", style.paint(Tone::Faint, &format!("{:<11}", script.policy)));
        }
        line += &style.paint(behaviour_tone, &format!("{behaviour_words:<11}"));
        let _ = write!(line, " {:>5} ", short(row.delivered));
        let waiting_tone = if row.waiting >= 10 { Tone::Warning } else { Tone::Plain };
        line += &style.paint(waiting_tone, &format!("{:>5}", short(row.waiting)));
        let dead_tone = if row.dead > 0 { Tone::Bad } else { Tone::Plain };
        let _ = write!(line, " {}", style.paint(dead_tone, &format!("{:>5}", short(row.dead))));
        let _ = write!(line, " {:>5} {:>7}", short(row.retries), row.last);
        let _ = write!(line, " {:>5} {:>5} ", time(row.p50), time(row.p99));
        line += &style.paint(health_tone, &format!("{health:<8}"));
        let _ =
            write!(line, " {}", style.paint(Tone::Good, &bars(&row.bars, bar_count(width), style.blocks)));
        line
    }
}

fn heads(width: usize) -> String {
    let policy = if width >= WITH_POLICY { format!("{:<11} ", "policy") } else { String::new() };
    let bars = match bar_count(width) {
        BARS => "arrivals of the last 30 s",
        10 => "last 30 s",
        _ => "30 s",
    };
    format!(
        "{:<9} {policy}{:<11} {:>5} {:>5} {:>5} {:>5} {:>7} {:>5} {:>5} {:<8} {bars}",
        "endpoint", "now", "deliv", "wait", "dead", "retry", "last", "p50", "p99", "health"
    )
}

/// The bars that fit beside the rest of the table.
fn bar_count(width: usize) -> usize {
    let table = if width >= WITH_POLICY { TABLE_WIDTH + POLICY_WIDTH } else { TABLE_WIDTH };
    let fits = |count: &usize| table + count <= width;
    BAR_COUNTS.into_iter().find(fits).unwrap_or(BAR_COUNTS[BAR_COUNTS.len() - 1])
}

fn news(line: &RecentEvent, width: usize, style: Style) -> String {
    let (minutes, seconds) = (line.begun.as_secs() / 60, line.begun.as_secs() % 60);
    let moment = format!("{minutes:>2}:{seconds:02} ");
    let rest = cut(&format!("{:<9} {}", line.who(), line.text()), width - moment.len());
    style.paint(Tone::Faint, &moment) + &rest
}

fn health(health: &EndpointHealth) -> (String, Tone) {
    let seconds = |left: &Duration| left.as_millis().div_ceil(1000);
    match health {
        EndpointHealth::Healthy => ("active".into(), Tone::Good),
        EndpointHealth::Degraded => ("degraded".into(), Tone::Warning),
        EndpointHealth::Quiet(left) => (format!("quiet {}s", seconds(left)), Tone::Warning),
        EndpointHealth::Held(left) => (format!("held {}s", seconds(left)), Tone::Warning),
        EndpointHealth::Failed => ("failed".into(), Tone::Bad),
    }
}

/// The seconds in this many cells; the fullest cell is the highest.
fn bars(seconds: &[u32; BARS], cells: usize, blocks: bool) -> String {
    let levels = if blocks {
        [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
    } else {
        [' ', '.', ':', '-', '=', '+', 'o', '*', '#']
    };
    let sums: Vec<u64> =
        seconds.chunks(BARS / cells).map(|cell| cell.iter().copied().map(u64::from).sum()).collect();
    let most = sums.iter().copied().max().unwrap_or(0).max(1);
    // Anything at all is at least the lowest bar.
    let level = |sum: u64| usize::try_from((sum * 8).div_ceil(most)).unwrap_or(8).min(8);
    sums.into_iter().map(|sum| levels[level(sum)]).collect()
}

/// At most five characters.
fn time(time: Option<Duration>) -> String {
    let Some(time) = time else { return "-".into() };
    match time.as_millis() {
        millis @ 0..1000 => format!("{millis}ms"),
        millis @ 1000..10_000 => format!("{}.{}s", millis / 1000, millis % 1000 / 100),
        millis => format!("{}s", millis / 1000),
    }
}

/// At most five characters up to a billion.
fn short(number: u64) -> String {
    match number {
        0..10_000 => grouped(number),
        10_000..1_000_000 => format!("{}k", number / 1000),
        _ => format!("{}M", number / 1_000_000),
    }
}

/// With a comma between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

impl Picture {
    /// One line, for a pipe.
    pub(super) fn plain(&self) -> String {
        let totals = &self.totals;
        let mut line = format!(
            "{:>4} s  events {}  deliveries {} = delivered {} + waiting {} + dead {}  attempts {}, failed {}",
            self.elapsed.as_secs(),
            totals.accepted,
            totals.expected,
            totals.delivered,
            totals.waiting,
            totals.dead,
            totals.attempts,
            totals.failed,
        );
        let behaviours = self
            .behaviours
            .iter()
            .zip(&ENDPOINTS)
            .filter(|((behaviour, _), _)| *behaviour != Behaviour::Healthy);
        let behaviours: Vec<_> = behaviours
            .map(|((behaviour, _), script)| format!("{} {}", script.name, behaviour.words()))
            .collect();
        if !behaviours.is_empty() {
            let _ = write!(line, "  ({})", behaviours.join(", "));
        }
        line
    }
}

impl FinalCounts {
    /// The summary. `ran`: how long events were sent. `waited`: how long it then waited for due deliveries.
    /// `first_due`: the time until the first pending delivery is due.
    pub(super) fn summary(&self, ran: Duration, waited: Duration, first_due: Option<Duration>) -> String {
        let Self { totals, lost, .. } = self;
        let mut text = String::new();
        let mut line = |name: &str, number: u64, words: &str| {
            let line = format!("  {name:<11}{:>9}   {words}", grouped(number));
            text.push_str(line.trim_end());
            text.push('\n');
        };
        line("accepted", totals.accepted, "events, each on disk before its 202");
        line("deliveries", totals.expected, "one for every endpoint that wanted the event, namely");
        line("delivered", totals.delivered, "taken by the receiver, signature verified");
        let next = match first_due.filter(|_| totals.waiting > 0).map(|due| due.as_millis().div_ceil(1000)) {
            None => String::new(),
            Some(0) => ", the first now".into(),
            Some(seconds) => format!(", the first in {seconds} s"),
        };
        line("waiting", totals.waiting, &format!("on disk, for their next attempt{next}"));
        line("dead", totals.dead, "in the dead letter, with every attempt");
        line("attempts", totals.attempts, &format!("of which {} failed", grouped(totals.failed)));
        for (name, number, words) in [
            ("refused", totals.refused, "events that the server did not accept"),
            ("twice", totals.duplicates, "arrivals of what had been taken before"),
            ("forged", totals.forged, "arrivals with a wrong signature"),
        ] {
            if number > 0 {
                line(name, number, words);
            }
        }
        let seconds = ran.as_secs();
        let waited = match waited.as_secs() {
            0 => String::new(),
            waited => format!(" of events, and {waited} s for what was due"),
        };
        format!(
            "After {seconds} s{waited}:\n\n{text}\n{}\nlost: {lost}   (deliveries, less what the receiver and the store \
             have of them)\n",
            self.table()
        )
    }

    /// The summary of each endpoint.
    fn table(&self) -> String {
        let mut text = format!(
            "  {:<9} {:>10} {:>10} {:>10} {:>10}\n",
            "endpoint", "deliveries", "delivered", "waiting", "dead"
        );
        for (script, ended) in ENDPOINTS.iter().zip(&self.lanes) {
            let EndpointCounts { deliveries, delivered, waiting, dead } = ended;
            let [deliveries, delivered, waiting, dead] =
                [deliveries, delivered, waiting, dead].map(|n| grouped(*n));
            let name = script.name;
            let _ = writeln!(text, "  {name:<9} {deliveries:>10} {delivered:>10} {waiting:>10} {dead:>10}");
        }
        text
    }
}

#[cfg(test)]
mod tests;
