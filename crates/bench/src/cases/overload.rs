//! Twice as many messages as the server can handle: how many it accepts, how it refuses, and how soon it recovers.

use crate::Result;
use crate::clock::{self, Nanos, SECOND, millis, nanos, seconds};
use crate::cores::{Apart, FIRST};
use crate::load::{Schedule, SendResult, SentMessage, Traffic, Until, closed, open};
use crate::numbers::percentile;
use crate::receiver::{Arrival, Behaviour, Receiver};
use crate::report::{Bar, Report, Sheet};
use crate::server::Launch;
use crate::suite::{Side, Suite, alternating};
use crate::tenants::{NewEndpoint, application};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tempfile::TempDir;

pub(super) const NAME: &str = "overload";

const CLOSED_CONNECTIONS: usize = 64;
const CONNECTIONS: usize = 8192;
const FAN_OUT: usize = 4;
const TIMES_CAPACITY: f64 = 2.0;
const SLOW_MILLIS: u64 = 2_000;
/// The numbers of probes begin here, after those of all messages. Even ones go to the loaded endpoint, odd ones to an
/// endpoint of another application.
const FIRST_PROBE: u64 = 1_000_000_000;
const PROBES_A_SECOND: f64 = 40.0;
const PROBE_SECONDS: f64 = 10.0;
/// A probe within this time is on time.
const ON_TIME_MS: f64 = 20.0;
/// The server has recovered after this many probes on time in a row.
const IN_A_ROW: usize = 5;
const WAIT_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) fn run(suite: &Suite) -> Result<Report> {
    let (finding, loading) = (suite.seconds(5.0, 1.0), suite.seconds(15.0, 2.0));
    let mut sheet = Sheet::default();
    let _apart = Apart::new()?;
    for round in 0..suite.rounds() {
        let few = capacity(suite, CLOSED_CONNECTIONS, finding)?;
        // Concurrent requests share commits: more connections may have a higher throughput.
        let capacity = capacity(suite, CONNECTIONS, finding)?.max(few);
        sheet.put("accepted/s, 64 connections", 0, few);
        sheet.put("capacity, accepted/s", 0, capacity);
        for side in alternating(round) {
            let behaviour = if side == Side::A { Behaviour::AtOnce } else { Behaviour::After(SLOW_MILLIS) };
            let storm = Storm::of(suite, behaviour, capacity * TIMES_CAPACITY, loading)?;
            match side {
                Side::A => storm.put(&mut sheet, capacity),
                Side::B => sheet.put("slow receiver: accepted/s", 0, storm.accepted_a_second()),
            }
        }
        let last = |row| sheet.values(row).last().copied().unwrap_or(f64::NAN);
        let share = last("slow receiver: accepted/s") / last("accepted/s");
        sheet.put("slow receiver: share of the quick one's", 2, share);
        suite.progress(NAME, round, &sheet);
    }
    let median = |row| sheet.median(row);
    let bars = vec![
        Bar::none(&sheet, &["missing", "refused without `Retry-After`"]),
        Bar::at_most("answer to an accepted POST, p99, median, ms", 1000.0, median("accepted, p99 ms"), 1),
        Bar::at_least("offered, times the capacity, median", 1.9, median("offered, times the capacity"), 2),
        Bar::at_most("refusal, p99, median, ms", 1000.0, median("refused, p99 ms"), 1),
        Bar::at_most("recovery, median, s", 1.0, median("recovery, s"), 2),
        Bar::at_least("accepted, share of the capacity, median", 0.25, median("share of the capacity"), 2),
        Bar::at_least(
            "accepted with a slow receiver, share of the quick one's, median",
            0.8,
            median("slow receiver: share of the quick one's"),
            2,
        ),
    ];
    let about = format!(
        "The server has one core, the load and the receiver the others: what the load waits for on a core that it \
         shares would count as the server's. A message goes to {FAN_OUT} endpoints. The capacity is what a closed loop of \
         {CLOSED_CONNECTIONS} or {CONNECTIONS} connections gets accepted. Then, on a new server, {TIMES_CAPACITY} times \
         that for {loading} s over up to {CONNECTIONS} connections, twice as many as there are places, whatever is \
         answered. Recovery: from the end of the load until {IN_A_ROW} messages in a row, by turns to a loaded endpoint and to \
         another, each every 50 ms, arrive within {ON_TIME_MS} ms. The slow receiver answers after 2 s."
    );
    Ok(Report { about, sheet, bars })
}

fn capacity(suite: &Suite, connections: usize, finding: f64) -> Result<f64> {
    let (folder, receiver) = (suite.empty_folder()?, suite.receiver()?);
    let server = launch(suite, &folder).start()?;
    let sent = suite.load.block_on(async {
        let api = server.api()?;
        let path = application(api, fan_out(&receiver, Behaviour::AtOnce)).await?;
        let until = clock::now() + nanos(Duration::from_secs_f64(finding));
        closed(api, Traffic::to(&path), connections, Until::Moment(until)).await
    })?;
    Ok(sent.iter().filter(|sent| sent.accepted()).count() as f64 / finding)
}

/// All clients have one address.
fn launch(suite: &Suite, folder: &TempDir) -> Launch {
    suite.launch(folder).on(FIRST).with("ALDABA_CONNECTIONS_PER_ADDRESS", 0)
}

fn fan_out(receiver: &Receiver, behaviour: Behaviour) -> Vec<NewEndpoint> {
    (0..FAN_OUT).map(|number| NewEndpoint::new(receiver.url(behaviour, number))).collect()
}

/// The results of the load.
struct Storm {
    sent: Vec<SentMessage>,
    probes: Vec<SentMessage>,
    schedule: Schedule,
    arrivals: Vec<Arrival>,
}

impl Storm {
    fn of(suite: &Suite, behaviour: Behaviour, a_second: f64, seconds: f64) -> Result<Self> {
        let (folder, receiver) = (suite.empty_folder()?, suite.receiver()?);
        let server = launch(suite, &folder).start()?;
        let api = server.api()?;
        let (sent, probes, schedule) = suite.load.block_on(async {
            let other = NewEndpoint::new(receiver.url(behaviour, FAN_OUT));
            let loaded = application(api, fan_out(&receiver, behaviour)).await?;
            let paths = vec![loaded.clone(), application(api, vec![other]).await?];
            let begin = clock::now() + SECOND / 10;
            let schedule =
                Schedule { begin, a_second, seconds, connections: CONNECTIONS, ends_sharply: true };
            let probing = Schedule {
                begin: schedule.end(),
                a_second: PROBES_A_SECOND,
                seconds: PROBE_SECONDS,
                ends_sharply: false,
                ..schedule
            };
            let probes = Traffic { paths, bytes: 256, keys: false, first: FIRST_PROBE };
            let (load, probing) =
                tokio::join!(open(api, Traffic::to(&loaded), schedule), open(api, probes, probing));
            Ok::<_, crate::Error>((load?, probing?, schedule))
        })?;
        if behaviour == Behaviour::AtOnce {
            let accepted = sent.iter().chain(&probes).filter(|sent| sent.accepted()).count();
            receiver.wait_for_different(accepted, WAIT_TIMEOUT);
        }
        Ok(Self { sent, probes, schedule, arrivals: arrivals(&receiver) })
    }

    fn accepted(&self) -> impl Iterator<Item = &SentMessage> {
        self.sent.iter().filter(|sent| sent.accepted())
    }

    /// Accepted messages per second during the load; answers after its end are not counted.
    fn accepted_a_second(&self) -> f64 {
        let in_time = self.accepted().filter(|sent| sent.ended <= self.schedule.end()).count();
        in_time as f64 / self.schedule.seconds
    }

    fn put(&self, sheet: &mut Sheet, capacity: f64) {
        let arrived: HashMap<u64, Nanos> =
            self.arrivals.iter().map(|arrival| (arrival.stamp.number, arrival.at)).collect();
        let refused: Vec<&SentMessage> =
            self.sent.iter().filter(|sent| matches!(sent.result, SendResult::Refused { .. })).collect();
        let rude = refused.iter().filter(|sent| !polite(sent.result)).count();
        let lost = self.sent.iter().filter(|sent| matches!(sent.result, SendResult::Lost(_))).count();
        let took = |sent: &SentMessage| millis(sent.took());
        let accepted: Vec<f64> = self.accepted().map(took).collect();
        let refusals: Vec<f64> = refused.into_iter().map(took).collect();
        let arrivals = self.accepted().filter_map(|sent| Some((arrived.get(&sent.number)?, sent.began)));
        let arrivals: Vec<f64> = arrivals.map(|(at, began)| millis(at.saturating_sub(began))).collect();
        let offered = self.sent.len() as f64 / self.schedule.seconds;
        sheet.put("offered/s", 0, offered);
        sheet.put("offered, times the capacity", 2, offered / capacity);
        sheet.put("accepted/s", 0, self.accepted_a_second());
        sheet.put("share of the capacity", 2, self.accepted_a_second() / capacity);
        sheet.put("accepted, p50 ms", 1, percentile(&accepted, 50.0));
        sheet.put("accepted, p99 ms", 1, percentile(&accepted, 99.0));
        sheet.put("POST to arrival, p50 ms", 1, percentile(&arrivals, 50.0));
        sheet.put("POST to arrival, p99 ms", 1, percentile(&arrivals, 99.0));
        sheet.put("refused", 0, refusals.len() as f64);
        sheet.put("refused, p50 ms", 1, percentile(&refusals, 50.0));
        sheet.put("refused, p99 ms", 1, percentile(&refusals, 99.0));
        sheet.put("refused without `Retry-After`", 0, rude as f64);
        sheet.put("without an answer", 0, lost as f64);
        sheet.put("missing", 0, self.missing() as f64);
        sheet.put("recovery, s", 2, self.recovery(&arrived, |_| true));
        sheet.put("recovery of the other endpoint, s", 2, self.recovery(&arrived, |number| number % 2 == 1));
    }

    /// Messages that were accepted and did not arrive.
    fn missing(&self) -> usize {
        let arrived: HashSet<u64> = self.arrivals.iter().map(|arrival| arrival.stamp.number).collect();
        self.accepted().filter(|sent| !arrived.contains(&sent.number)).count()
    }

    /// Seconds from the end of the load until the selected probes are on time again.
    fn recovery(&self, arrived: &HashMap<u64, Nanos>, counts: impl Fn(u64) -> bool) -> f64 {
        let mut probes: Vec<&SentMessage> = self.probes.iter().filter(|probe| counts(probe.number)).collect();
        probes.sort_unstable_by_key(|probe| probe.number);
        let on_time = |probe: &&SentMessage| {
            arrived.get(&probe.number).is_some_and(|at| millis(at.saturating_sub(probe.due)) < ON_TIME_MS)
        };
        let well = probes.windows(IN_A_ROW).find(|row| row.iter().all(on_time));
        well.map_or(f64::INFINITY, |row| seconds(row[0].due.saturating_sub(self.schedule.end())))
    }
}

/// The first arrival of each message.
fn arrivals(receiver: &Receiver) -> Vec<Arrival> {
    let mut seen = HashSet::new();
    receiver.arrivals().into_iter().filter(|arrival| seen.insert(arrival.stamp.number)).collect()
}

/// A refusal with `Retry-After`.
fn polite(result: SendResult) -> bool {
    matches!(result, SendResult::Refused { status: 429 | 503, retry_after: true })
}
