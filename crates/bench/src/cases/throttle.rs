//! A throttled endpoint gets exactly its rate, also with retries and restarts.

use crate::Result;
use crate::background::free_address;
use crate::clock::{self, Nanos, SECOND, seconds};
use crate::hole::Hole;
use crate::load::{Traffic, Until, all_accepted, closed};
use crate::numbers::{counted, largest, shown};
use crate::receiver::{Behaviour, Receiver, url};
use crate::report::{Bar, Report, Sheet};
use crate::suite::Suite;
use crate::tenants::{NewEndpoint, application};
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;

pub(super) const NAME: &str = "throttle";

const RATE: u16 = 50;
const SECONDS: f64 = 20.0;
/// Pending messages for each allowed request: enough in any case.
const WAITING: f64 = 3.0;
/// The allowed deviation from the rate, in either direction.
const TOLERANCE: f64 = 0.02;
/// Every third message fails once; `job-status` retries it after a second, without host control.
const BEHAVIOUR: Behaviour = Behaviour::Fails { every: 3, tries: 1 };
const POLICY: &str = "job-status";
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn run(suite: &Suite) -> Result<Report> {
    let length = suite.seconds(SECONDS, 6.0);
    let messages = (f64::from(RATE) * length * WAITING) as usize;
    let address = free_address()?;
    let prepared = prepare(suite, address, messages)?;
    let mut sheet = Sheet::default();
    for round in 0..suite.rounds() {
        let plain = Run::of(suite, &suite.copy(&prepared)?, address, length, &[])?;
        sheet.put("share of the rate", 3, plain.share());
        sheet.put("most in a second", 0, plain.most_in_a_second());
        let ends = [End::Terminate, End::Kill];
        let restarted = Run::of(suite, &suite.copy(&prepared)?, address, length, &ends)?;
        sheet.put("with restarts: share of the rate", 3, restarted.share());
        sheet.put("with restarts: most in a second", 0, restarted.most_in_a_second());
        sheet.put("with restarts: mean of a second up", 1, restarted.share() * f64::from(RATE));
        suite.progress(NAME, round, &sheet);
    }
    let bars = vec![
        within(&sheet, "share of the rate"),
        within(&sheet, "with restarts: share of the rate"),
        Bar::at_most(
            "with restarts: most in any second of any round",
            f64::from(RATE) * (1.0 + TOLERANCE),
            largest(sheet.values("with restarts: most in a second")),
            0,
        ),
    ];
    let about = format!(
        "{} messages wait for an endpoint with `throttleRate` {RATE}; every third fails once and is tried \
         again. Arrivals in {length} s; then the same with two restarts, one by SIGTERM and one by `kill -9`, counted \
         from the first arrival after each start to its end.",
        counted(messages)
    );
    Ok(Report { about, sheet, bars })
}

/// Every round must be close enough, so the worst one is shown.
fn within(sheet: &Sheet, row: &str) -> Bar {
    let farthest =
        sheet.values(row).iter().copied().max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs()));
    let farthest = farthest.unwrap_or(f64::NAN);
    Bar {
        claim: format!("{row}: within {} % in every round", shown(TOLERANCE * 100.0, 0)),
        found: shown(farthest, 3),
        reached: (farthest - 1.0).abs() <= TOLERANCE,
    }
}

fn prepare(suite: &Suite, address: SocketAddr, messages: usize) -> Result<TempDir> {
    let (folder, _silent) = (suite.empty_folder()?, Hole::start(address)?);
    suite.fill(&folder, async |api| {
        let endpoint = NewEndpoint::new(url(address, BEHAVIOUR, 0)).policy(POLICY);
        let path = application(api, vec![NewEndpoint { throttle_rate: Some(RATE), ..endpoint }]).await?;
        let traffic = Traffic { bytes: 128, ..Traffic::to(&path) };
        all_accepted(&closed(api, traffic, 16, Until::Count(messages as u64)).await?)
    })?;
    Ok(folder)
}

/// How a run of the server is interrupted.
#[derive(Clone, Copy, Debug)]
enum End {
    Terminate,
    Kill,
}

/// The arrivals, and the times in which the server was sending.
struct Run {
    arrivals: Vec<Nanos>,
    lives: Vec<(Nanos, Nanos)>,
}

impl Run {
    /// Runs for a time after the first arrival, divided evenly into runs of the server.
    fn of(suite: &Suite, folder: &TempDir, address: SocketAddr, length: f64, ends: &[End]) -> Result<Self> {
        let receiver = Receiver::start(address)?;
        let mut lives = Vec::new();
        let mut began = None;
        let parts = ends.len() + 1;
        for life in 0..parts {
            let (before, server) = (receiver.count(), suite.launch(folder).start()?);
            if !receiver.wait_for(before + 1, WAIT_TIMEOUT) {
                return Err("nothing arrived".into());
            }
            let first = receiver.arrivals()[before].at;
            let began = *began.get_or_insert(first);
            let share = length * (life + 1) as f64 / parts as f64;
            clock::sleep_until(began + clock::nanos(Duration::from_secs_f64(share)));
            lives.push((first, clock::now()));
            match ends.get(life) {
                Some(End::Terminate) => server.stop()?,
                Some(End::Kill) | None => server.kill(),
            }
        }
        Ok(Self { arrivals: receiver.arrivals().iter().map(|arrival| arrival.at).collect(), lives })
    }

    /// The arrivals during the runs, as a share of those that the rate allows.
    fn share(&self) -> f64 {
        let inside = |at: &Nanos| self.lives.iter().any(|(from, to)| (from..to).contains(&at));
        let allowed: f64 = self.lives.iter().map(|(from, to)| seconds(to - from) * f64::from(RATE)).sum();
        self.arrivals.iter().filter(|at| inside(at)).count() as f64 / allowed
    }

    /// The most arrivals in any second, at any offset.
    fn most_in_a_second(&self) -> f64 {
        let mut sorted = self.arrivals.clone();
        sorted.sort_unstable();
        let counts = sorted.iter().enumerate().map(|(index, from)| {
            let after = sorted[index..].partition_point(|at| *at < from + SECOND);
            after as f64
        });
        largest(&counts.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_second_is_found_at_any_offset() {
        let at = |tenths: u64| tenths * SECOND / 10;
        let run = Run { arrivals: [0, 8, 9, 12, 17, 18].map(at).into(), lives: vec![(0, 2 * SECOND)] };
        assert_eq!(run.most_in_a_second(), 4.0, "8, 9, 12 and 17");
        assert_eq!(run.share(), 6.0 / 100.0);
    }

    #[test]
    fn arrivals_after_the_end_are_not_counted() {
        let run =
            Run { arrivals: vec![0, SECOND, 2 * SECOND], lives: vec![(0, SECOND), (2 * SECOND, 3 * SECOND)] };
        assert_eq!(run.share(), 2.0 / 100.0);
    }
}
