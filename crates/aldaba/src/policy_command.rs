//! `aldaba policy`: what the policies are, and what each would do. Works without a server.

use aldaba_delivery::policy::{Chances, Preview};
use aldaba_delivery::{Ending, Policy, parse_span};
use aldaba_engine::Policies;
use clap::Subcommand;
use std::fmt::Write as _;
use std::time::Duration;

/// Attempts that are listed at the beginning and at the end of a long plan.
const FIRST: usize = 12;
const LAST: usize = 3;
/// Characters of the picture.
const WIDTH: usize = 72;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Name the policies that endpoints can use
    List,
    /// Print a policy as JSON
    Show { name: String },
    /// Show when a policy tries, and when a delivery arrives after an outage
    Preview {
        name: String,
        /// How long the receiver is down, such as 90s, 15m or 2h; without it, for good
        #[arg(long, value_name = "SPAN", value_parser = span)]
        outage: Option<Duration>,
        /// Draws the jitter; the same number, the same plan
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
}

fn span(text: &str) -> Result<Duration, String> {
    parse_span(text).ok_or_else(|| "expected a span such as 500ms, 90s, 15m, 2h or 7d".into())
}

/// What the command prints. `Err`: what is wrong, and what would be right.
pub(crate) fn output(command: &PolicyCommand, policies: &Policies) -> Result<String, String> {
    match command {
        PolicyCommand::List => Ok(list(policies)),
        PolicyCommand::Show { name } => {
            let shown = serde_json::to_string_pretty(&find(policies, name)?.to_json());
            shown.map(|text| format!("{text}\n")).map_err(|error| error.to_string())
        }
        PolicyCommand::Preview { name, outage, seed } => Ok(preview(find(policies, name)?, *outage, *seed)),
    }
}

fn find<'a>(policies: &'a Policies, name: &str) -> Result<&'a Policy, String> {
    let names = || policies.builtin_names().collect::<Vec<_>>().join(", ");
    policies.builtin(name).ok_or_else(|| format!("there is no policy `{name}`; there are {}", names()))
}

fn list(policies: &Policies) -> String {
    let mut text = format!("{:<12} {:>8} {:>12} {:>12}\n", "NAME", "ATTEMPTS", "LAST AFTER", "TIMEOUT");
    for policy in policies.builtin_names().filter_map(|name| policies.builtin(name)) {
        let plan = Preview::of(policy, None, middle());
        let last = plan.attempts.last().copied().unwrap_or_default();
        let (attempts, timeout) = (plan.attempts.len(), policy.timeouts.total);
        let _ =
            writeln!(text, "{:<12} {attempts:>8} {:>12} {:>12}", policy.name, words(last), words(timeout));
    }
    text
}

/// Chances without surprise: jitter in its middle.
fn middle() -> impl FnMut() -> aldaba_delivery::Chance {
    || aldaba_delivery::Chance(u64::MAX / 2)
}

fn preview(policy: &Policy, outage: Option<Duration>, seed: u64) -> String {
    let mut chances = Chances::seeded(seed);
    let plan = Preview::of(policy, outage, || chances.draw());
    let down = outage.map_or_else(|| "and stays down".into(), |outage| format!("for {}", words(outage)));
    let mut text = format!("{}: the receiver goes down {down} (seed {seed})\n\n", policy.name);
    let count = plan.attempts.len();
    let left_out = FIRST..count.saturating_sub(LAST);
    for (number, at) in plan.attempts.iter().enumerate() {
        if left_out.len() > 1 && left_out.contains(&number) {
            if number == left_out.start {
                let _ = writeln!(text, "   …  {} more", left_out.len());
            }
            continue;
        }
        let gap = match number.checked_sub(1).and_then(|before| plan.attempts.get(before)) {
            Some(before) => format!("+{}", words(at.saturating_sub(*before))),
            None => String::new(),
        };
        let arrives = number + 1 == count && plan.ending == Ending::Delivered;
        let fate = if arrives { "delivered" } else { "fails" };
        let _ = writeln!(text, "{:>4}  {:>10}  {gap:>10}  {fate}", number + 1, words(*at));
    }
    let _ = writeln!(text, "\n{}", picture(&plan, outage));
    let _ = match (plan.ending, plan.arrival()) {
        (Ending::Delivered, Some(at)) => {
            let late = at.saturating_sub(outage.unwrap_or_default());
            writeln!(text, "Arrives after {}, {} after the receiver is back.", words(at), words(late))
        }
        (Ending::Dead(reason), _) => {
            let attempts = if count == 1 { "attempt" } else { "attempts" };
            writeln!(text, "Ends in the dead letter after {count} {attempts} ({}).", reason.name())
        }
        (Ending::Delivered, None) => Ok(()),
    };
    text
}

/// The plan on a line of time that is logarithmic, so that seconds and days both show.
fn picture(plan: &Preview, outage: Option<Duration>) -> String {
    let last = plan.attempts.last().copied().unwrap_or_default();
    let end = outage.unwrap_or(last).max(last).max(Duration::from_secs(1));
    let scale = (1.0 + end.as_secs_f64()).ln();
    let place = |at: Duration| {
        let share = (1.0 + at.as_secs_f64()).ln() / scale;
        (share * (WIDTH - 1) as f64).round() as usize
    };
    let mut line = vec!['─'; WIDTH];
    for at in &plan.attempts {
        line[place(*at).min(WIDTH - 1)] = '×';
    }
    if let Some(at) = plan.arrival() {
        line[place(at).min(WIDTH - 1)] = '✓';
    }
    let mut text: String = line.into_iter().collect();
    if let Some(outage) = outage {
        text.push('\n');
        text.extend(std::iter::repeat_n('▒', place(outage).clamp(1, WIDTH)));
        text.push_str(" down");
    }
    let _ = write!(text, "\n0s{:>width$}\n", words(end), width = WIDTH - 2);
    text
}

/// A span in at most two units, for reading.
fn words(span: Duration) -> String {
    let seconds = span.as_secs();
    if seconds < 60 {
        let millis = span.subsec_millis();
        return if millis == 0 { format!("{seconds}s") } else { format!("{seconds}.{:01}s", millis / 100) };
    }
    let units = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];
    let first = units.iter().position(|(_, size)| seconds >= *size).unwrap_or(units.len() - 1);
    let (name, size) = units[first];
    let mut text = format!("{}{name}", seconds / size);
    if let Some((next, smaller)) = units.get(first + 1)
        && seconds % size / smaller > 0
    {
        let _ = write!(text, " {}{next}", seconds % size / smaller);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_delivery::policy::Overrides;

    fn policies() -> Policies {
        Policies::new(&Overrides::default()).expect("the built-in policies are valid")
    }

    #[test]
    fn a_preview_lists_attempts_and_draws_them() {
        let command = PolicyCommand::Preview {
            name: "persistent".into(),
            outage: Some(Duration::from_secs(90)),
            seed: 0,
        };
        let expected = "\
persistent: the receiver goes down for 1m 30s (seed 0)

   1          0s              fails
   2          2s         +2s  fails
   3          6s         +4s  fails
   4         14s         +8s  fails
   5         30s        +16s  fails
   6      1m 2s        +32s  fails
   7      2m 6s      +1m 4s  delivered
";
        let shown = output(&command, &policies()).expect("a preview");
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeezed(&shown).starts_with(&squeezed(expected)), "{shown}");
        assert!(shown.contains("Arrives after 2m 6s, 36s after the receiver is back."), "{shown}");
        let line = shown.lines().find(|line| line.contains('✓')).expect("a picture");
        assert_eq!((line.chars().count(), line.matches('×').count()), (WIDTH, 6), "{shown}");
    }

    #[test]
    fn a_long_plan_is_cut_in_the_middle() {
        let command = PolicyCommand::Preview { name: "persistent".into(), outage: None, seed: 0 };
        let shown = output(&command, &policies()).expect("a preview");
        assert!(shown.contains("…  143 more"), "{shown}");
        assert!(shown.contains(" 158 "), "{shown}");
        assert!(shown.contains("Ends in the dead letter after 158 attempts (stop_date)."), "{shown}");
    }

    #[test]
    fn an_unknown_name_says_which_there_are() {
        let command = PolicyCommand::Show { name: "eager".into() };
        let error = output(&command, &policies()).expect_err("no such policy");
        assert_eq!(
            error,
            "there is no policy `eager`; there are job-status, persistent, public-api, quick, standard"
        );
    }

    #[test]
    fn the_list_has_a_line_for_each() {
        let shown = output(&PolicyCommand::List, &policies()).expect("a list");
        assert_eq!(shown.lines().count(), 6);
        let line = shown.lines().find(|line| line.starts_with("public-api")).expect("a line");
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["public-api", "6", "1h", "8m", "15s"]);
    }
}
