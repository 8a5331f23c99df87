//! `aldaba policy`: what the policies are, what each would do, and policies from a file. All but the last work
//! without a server, on its data folder or on the built-in policies alone.

mod import;
mod server;

use crate::api::nearest;
use crate::cli::installation;
use crate::cli::server_client::ServerError;
use crate::cli::server_options::{self, Backend, ServerOptions};
use crate::config::Config;
use aldaba_delivery::policy::{Preview, SeededChances};
use aldaba_delivery::{Ending, Policy, PolicyError, parse_duration};
use aldaba_engine::Policies;
use clap::Subcommand;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::time::Duration;

/// Attempts that are listed at the beginning and at the end of a long plan.
const SHOWN_FIRST: usize = 12;
const SHOWN_LAST: usize = 3;
/// Characters of the picture.
const PICTURE_WIDTH: usize = 72;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Name the policies that endpoints can use
    List {
        #[command(flatten)]
        server_options: ServerOptions,
    },
    /// Print a policy as JSON
    Show {
        /// As `policy list` names it
        name: String,
        #[command(flatten)]
        server_options: ServerOptions,
    },
    /// Show when a policy tries, and when a delivery arrives after an outage
    Preview {
        /// The name of a policy, or a file with one or a list of them as JSON: a name with a `/`, one that ends in `.json`,
        /// or `-` for standard input
        #[arg(value_name = "NAME|FILE")]
        policy: String,
        /// How long the receiver is down, such as 90s, 15m or 2h; without it, for good
        #[arg(long, value_name = "SPAN", value_parser = span)]
        outage: Option<Duration>,
        /// Draws the jitter; the same number, the same plan
        #[arg(long, default_value_t = 0)]
        seed: u64,
        #[command(flatten)]
        server_options: ServerOptions,
    },
    /// Create or replace policies on a running server, from a file with one or a list of them as JSON
    Import {
        /// The file; `-` reads standard input
        file: String,
        /// Only show what would change
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        server_options: ServerOptions,
    },
}

impl PolicyCommand {
    pub(crate) fn server_options(&self) -> &ServerOptions {
        match self {
            Self::List { server_options }
            | Self::Show { server_options, .. }
            | Self::Preview { server_options, .. }
            | Self::Import { server_options, .. } => server_options,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Unknown(String),
    #[error("cannot read {file}: {source}")]
    File { file: String, source: std::io::Error },
    /// The file is invalid. Nothing was changed.
    #[error("{file} cannot be {wanted}:\n{problems}")]
    Data { file: String, wanted: &'static str, problems: String },
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Options(#[from] server_options::Error),
    #[error("the store cannot do it: {0}")]
    Store(#[from] aldaba_store::Error),
    #[error("a setting makes a built-in policy impossible: {0}")]
    Policy(#[from] PolicyError),
    #[error("{0}")]
    System(#[from] std::io::Error),
}

fn span(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a duration such as 500ms, 90s, 15m, 2h or 7d".into())
}

pub(crate) fn run(
    command: PolicyCommand,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<(), Error> {
    match command {
        PolicyCommand::List { server_options } => print(&list(&choose(server_options, config, variables)?)),
        PolicyCommand::Show { name, server_options } => {
            print(&show(find(&choose(server_options, config, variables)?, &name)?))
        }
        PolicyCommand::Preview { policy, outage, seed, server_options } => {
            let policies = match is_file(&policy) {
                true => from_file(&policy, "previewed")?,
                false => vec![find(&choose(server_options, config, variables)?, &policy)?.clone()],
            };
            let previews = policies.iter().map(|policy| preview(policy, outage, seed));
            print(&previews.collect::<Vec<_>>().join("\n"))
        }
        PolicyCommand::Import { file, dry_run, server_options } => {
            // The file first: its problems show without a server.
            let wanted = from_file(&file, "imported")?;
            let server = server_options.server(variables, config)?;
            wait(async {
                let steps = import::plan(wanted, &server::policies(&server).await?);
                let mut broken = Ok(());
                let mut tell = |line: &str| broken = print(&format!("{line}\n"));
                import::apply(&steps, &server, dry_run, &mut tell).await?;
                broken
            })?
        }
    }
}

/// The policies of the server or the data folder that the options name, or of a usable default folder; else those
/// that come with this program, with its settings.
fn choose(
    server_options: ServerOptions,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<Vec<Policy>, Error> {
    let is_asked_for = server_options.is_given(variables) || server_options.names_folder(variables, config);
    let is_usable =
        || installation::check_database(config).and_then(|()| installation::check_secret(config)).is_ok();
    if !is_asked_for && !is_usable() {
        return builtin(config);
    }
    wait(async {
        let backend = Backend::open(server_options, variables, config)?;
        let policies = match &backend {
            Backend::Server(server) => server::policies(server).await?,
            Backend::Store(store, org) => {
                let own = store.policies().await?.into_iter().filter(|own| own.org == *org);
                let mut all = builtin(config)?;
                all.extend(own.map(|own| own.policy));
                all.sort_by(|a, b| a.name.cmp(&b.name));
                all
            }
        };
        backend.close().await;
        Ok(policies)
    })?
}

fn builtin(config: &Config) -> Result<Vec<Policy>, Error> {
    let policies = Policies::new(&config.overrides)?;
    Ok(policies.builtin_names().filter_map(|name| policies.builtin(name)).cloned().collect())
}

/// Whether the text means a file, not the name of a policy.
fn is_file(given: &str) -> bool {
    given == "-" || given.contains('/') || given.ends_with(".json")
}

fn from_file(file: &str, wanted: &'static str) -> Result<Vec<Policy>, Error> {
    import::read(&read(file)?).map_err(|problems| Error::Data { file: file.into(), wanted, problems })
}

fn wait<T>(future: impl Future<Output = T>) -> Result<T, Error> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future))
}

fn read(file: &str) -> Result<String, Error> {
    let mut text = String::new();
    let read = match file {
        "-" => std::io::stdin().read_to_string(&mut text).map(drop),
        file => std::fs::read_to_string(file).map(|read| text = read),
    };
    read.map(|()| text).map_err(|source| Error::File { file: file.into(), source })
}

fn print(text: &str) -> Result<(), Error> {
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

fn find<'a>(policies: &'a [Policy], name: &str) -> Result<&'a Policy, Error> {
    let found = policies.iter().find(|policy| policy.name == name);
    found.ok_or_else(|| {
        let names: Vec<_> = policies.iter().map(|policy| policy.name.as_str()).collect();
        let meant = match nearest(name, &names) {
            Some(near) => format!("did you mean `{near}`? There are {}", names.join(", ")),
            None => format!("there are {}", names.join(", ")),
        };
        let more = "--url names a running server and --data a data folder, whose own policies are known then; \
                    `policy preview` takes a file too (./FILE)";
        Error::Unknown(format!("there is no policy `{name}`; {meant}. {more}"))
    })
}

fn show(policy: &Policy) -> String {
    format!("{:#}\n", policy.to_json())
}

fn list(policies: &[Policy]) -> String {
    let width = policies.iter().map(|policy| policy.name.len()).max().unwrap_or(0).max(12);
    let mut text = format!("{:<width$} {:>8} {:>12} {:>12}\n", "NAME", "ATTEMPTS", "LAST AFTER", "TIMEOUT");
    for policy in policies {
        let (attempts, last) = extent(policy);
        let (last, timeout) = (words(last), words(policy.timeouts.total));
        let _ = writeln!(text, "{:<width$} {attempts:>8} {last:>12} {timeout:>12}", policy.name);
    }
    text
}

/// The number of attempts, and the time from the first to the last one.
fn extent(policy: &Policy) -> (usize, Duration) {
    let plan = Preview::of(policy, None, middle());
    (plan.attempts.len(), plan.attempts.last().copied().unwrap_or_default())
}

/// A policy in short.
fn brief(policy: &Policy) -> String {
    match extent(policy) {
        (1, _) => "1 attempt".into(),
        (attempts, last) => format!("{attempts} attempts, the last after {}", words(last)),
    }
}

/// Jitter at its mean.
fn middle() -> impl FnMut() -> aldaba_delivery::Chance {
    || aldaba_delivery::Chance(u64::MAX / 2)
}

fn preview(policy: &Policy, outage: Option<Duration>, seed: u64) -> String {
    let mut chances = SeededChances::seeded(seed);
    let plan = Preview::of(policy, outage, || chances.draw());
    let down = outage.map_or_else(|| "and stays down".into(), |outage| format!("for {}", words(outage)));
    let mut text = format!("{}: the receiver goes down {down} (seed {seed})\n\n", policy.name);
    let count = plan.attempts.len();
    let left_out = SHOWN_FIRST..count.saturating_sub(SHOWN_LAST);
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

/// Draws the plan on a logarithmic axis, which shows both seconds and days.
fn picture(plan: &Preview, outage: Option<Duration>) -> String {
    let last = plan.attempts.last().copied().unwrap_or_default();
    let end = outage.unwrap_or(last).max(last).max(Duration::from_secs(1));
    let scale = (1.0 + end.as_secs_f64()).ln();
    let place = |at: Duration| {
        let share = (1.0 + at.as_secs_f64()).ln() / scale;
        (share * (PICTURE_WIDTH - 1) as f64).round() as usize
    };
    let mut line = vec!['─'; PICTURE_WIDTH];
    for at in &plan.attempts {
        line[place(*at).min(PICTURE_WIDTH - 1)] = '×';
    }
    if let Some(at) = plan.arrival() {
        line[place(at).min(PICTURE_WIDTH - 1)] = '✓';
    }
    let mut text: String = line.into_iter().collect();
    if let Some(outage) = outage {
        text.push('\n');
        text.extend(std::iter::repeat_n('▒', place(outage).clamp(1, PICTURE_WIDTH)));
        text.push_str(" down");
    }
    let _ = write!(text, "\n{}\n{AXIS}\n", axis(end, place));
    text
}

/// The caption of the axis.
const AXIS: &str = "time since the event was accepted, on a logarithmic scale   × fails   ✓ delivered";

/// The moments that the axis may name between its ends.
const TICKS: [u64; 11] = [1, 5, 15, 60, 300, 1800, 7200, 21_600, 86_400, 259_200, 604_800];

/// The numbers below the axis: each begins at its moment, but the last one ends with the axis.
fn axis(end: Duration, place: impl Fn(Duration) -> usize) -> String {
    let last = words(end);
    let last_at = PICTURE_WIDTH.saturating_sub(last.len());
    let mut text = String::from("0s");
    for tick in TICKS.map(Duration::from_secs).into_iter().filter(|tick| *tick < end) {
        let (at, label) = (place(tick), words(tick));
        if at >= text.len() + 2 && at + label.len() + 2 <= last_at {
            let _ = write!(text, "{:width$}{label}", "", width = at - text.len());
        }
    }
    let _ = write!(text, "{:width$}{last}", "", width = last_at.saturating_sub(text.len()).max(1));
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
mod tests;
