//! The fate of every event at every endpoint, as the sender, the receiver and the store report it. Pure: every moment
//! is an argument.

use super::recent_events::RecentEvents;
use super::scenario::{ENDPOINT_COUNT, ENDPOINTS, EventKind};
use aldaba_delivery::MessageId;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Events without a known fate, after which the stream pauses.
const MAX_OPEN_EVENTS: usize = 200_000;
/// Arrivals of an endpoint in the percentiles.
const MAX_SAMPLES: usize = 1000;
/// The seconds that the bars show.
pub(super) const BARS: usize = 30;
/// Attempts whose message has no response yet; the oldest are dropped first.
const MAX_EARLY_RECORDS: usize = 256;
/// A backlog of this size is reported when it is worked off.
const CAUGHT_UP_MIN: u64 = 25;

/// The counters of the demo.
#[derive(Debug, Default)]
pub(super) struct DeliveryCounters {
    /// By the number of the event, until the receiver and the store agree on it.
    open: HashMap<u64, OpenEvent>,
    numbers: HashMap<MessageId, u64>,
    /// Attempts that the store had recorded before the sender had its answer: endpoint, message, success.
    early: VecDeque<(usize, MessageId, bool)>,
    accepted: u64,
    refused: u64,
    lanes: [EndpointCounters; ENDPOINT_COUNT],
    pub(super) recent_events: RecentEvents,
}

#[derive(Debug)]
struct OpenEvent {
    sent: Duration,
    /// Known once the server has accepted the event.
    message: Option<MessageId>,
    /// `None`: the endpoint does not subscribe to it.
    parts: [Option<OpenDelivery>; ENDPOINT_COUNT],
}

/// One delivery.
#[derive(Clone, Copy, Debug, Default)]
struct OpenDelivery {
    /// The receiver has accepted it.
    arrived: bool,
    /// The store has it as delivered.
    recorded: bool,
    dead: bool,
    attempts: u32,
}

impl OpenDelivery {
    fn settled(self) -> bool {
        self.dead || (self.arrived && self.recorded)
    }
}

/// The counters of one endpoint.
#[derive(Clone, Debug, Default)]
struct EndpointCounters {
    expected: u64,
    delivered: u64,
    dead: u64,
    attempts: u64,
    failed: u64,
    retries: u64,
    duplicates: u64,
    forged: u64,
    last: String,
    health: EndpointHealth,
    most_waiting: u64,
    samples: VecDeque<Duration>,
    /// Arrivals by the second of the demo, the newest last.
    seconds: VecDeque<(u64, u32)>,
}

/// The server's view of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum EndpointHealth {
    #[default]
    Healthy,
    /// Its last attempts failed.
    Degraded,
    /// It asked for a pause of this length.
    Quiet(Duration),
    /// Its host looks down, and its requests are held for this long.
    Held(Duration),
    /// Given up until someone, or a probe, says otherwise.
    Failed,
}

/// One attempt that the store has recorded.
#[derive(Clone, Debug)]
pub(super) struct RecordedAttempt {
    pub(super) message: MessageId,
    pub(super) success: bool,
    /// At most seven characters.
    pub(super) answer: String,
}

/// The state of a delivery in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredFate {
    Waiting,
    Delivered,
    Dead,
    /// It is not in the store.
    Unknown,
}

/// Sums over all endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Events.
    pub(super) accepted: u64,
    pub(super) refused: u64,
    /// The deliveries of the accepted events.
    pub(super) expected: u64,
    pub(super) delivered: u64,
    pub(super) waiting: u64,
    pub(super) dead: u64,
    pub(super) attempts: u64,
    pub(super) failed: u64,
    /// Arrived again after they were accepted.
    pub(super) duplicates: u64,
    /// Arrived with a wrong signature.
    pub(super) forged: u64,
}

/// One endpoint, ready to be shown.
#[derive(Clone, Debug, Default)]
pub(super) struct EndpointRow {
    pub(super) delivered: u64,
    pub(super) waiting: u64,
    pub(super) dead: u64,
    pub(super) retries: u64,
    pub(super) last: String,
    pub(super) p50: Option<Duration>,
    pub(super) p99: Option<Duration>,
    pub(super) health: EndpointHealth,
    /// Arrivals in each of the last seconds, the oldest first.
    pub(super) bars: [u32; BARS],
}

/// The result of the demo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FinalCounts {
    pub(super) totals: Totals,
    pub(super) lanes: [EndpointCounts; ENDPOINT_COUNT],
    /// Accepted, and neither arrived nor waiting nor in the dead letter.
    pub(super) lost: u64,
}

/// The deliveries of one endpoint by their ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EndpointCounts {
    pub(super) deliveries: u64,
    pub(super) delivered: u64,
    /// Confirmed by the store: they have a next attempt.
    pub(super) waiting: u64,
    pub(super) dead: u64,
}

impl DeliveryCounters {
    /// Whether the stream may continue: each event is remembered until its fate is known.
    pub(super) fn has_capacity(&self) -> bool {
        self.open.len() < MAX_OPEN_EVENTS
    }

    /// An event is about to be sent. Before it is accepted, because it may arrive before the answer
    /// does.
    pub(super) fn begin(&mut self, number: u64, now: Duration) {
        let parts = EventKind::of(number).wanted_by().map(|wanted| wanted.then(OpenDelivery::default));
        self.open.insert(number, OpenEvent { sent: now, message: None, parts });
    }

    pub(super) fn accepted(&mut self, number: u64, message: MessageId) {
        let Some(open) = self.open.get_mut(&number) else { return };
        open.message = Some(message);
        self.accepted += 1;
        self.numbers.insert(message, number);
        for (lane, part) in self.lanes.iter_mut().zip(open.parts) {
            lane.expected += u64::from(part.is_some());
            lane.delivered += u64::from(part.is_some_and(|part| part.arrived));
            lane.most_waiting = lane.most_waiting.max(lane.waiting());
        }
        let (known, others) = std::mem::take(&mut self.early)
            .into_iter()
            .partition::<VecDeque<_>, _>(|(_, of, _)| *of == message);
        self.early = others;
        for (lane, _, success) in known {
            self.note(lane, number, success);
        }
        self.forget_if_settled(number);
    }

    /// The server refused it.
    pub(super) fn refused(&mut self, number: u64) {
        if self.open.remove(&number).is_some() {
            self.refused += 1;
        }
    }

    /// The stream has ended: events without a response will get none.
    pub(super) fn refuse_unanswered(&mut self) {
        let unanswered = self.open.iter().filter(|(_, open)| open.message.is_none());
        let numbers: Vec<_> = unanswered.map(|(number, _)| *number).collect();
        for number in numbers {
            self.refused(number);
        }
    }

    /// The receiver accepts an event, and is about to respond.
    pub(super) fn arrived(&mut self, lane: usize, number: u64, now: Duration) {
        let open = self.open.get_mut(&number);
        let part =
            open.and_then(|open| Some((open.sent, open.message.is_some(), open.parts[lane].as_mut()?)));
        let Some((sent, accepted, part)) = part.filter(|(_, _, part)| !part.arrived) else {
            self.lanes[lane].duplicates += 1;
            return;
        };
        part.arrived = true;
        let account = &mut self.lanes[lane];
        // A delivery that was replayed is no longer in the dead letter.
        account.dead -= u64::from(std::mem::take(&mut part.dead));
        // An arrival before the sender's response counts with that response.
        account.delivered += u64::from(accepted);
        account.arrival(now.saturating_sub(sent), now);
        if account.waiting() == 0 && account.most_waiting >= CAUGHT_UP_MIN {
            let caught_up = format!("has caught up: {} had been waiting", account.most_waiting);
            self.recent_events.note(now, ENDPOINTS[lane].name, caught_up, None);
        }
        if account.waiting() == 0 {
            account.most_waiting = 0;
        }
        self.forget_if_settled(number);
    }

    pub(super) fn forged(&mut self, lane: usize) {
        self.lanes[lane].forged += 1;
    }

    /// The store has recorded an attempt. Each attempt is reported once.
    pub(super) fn recorded(&mut self, lane: usize, attempt: RecordedAttempt) {
        let account = &mut self.lanes[lane];
        account.attempts += 1;
        account.failed += u64::from(!attempt.success);
        account.last = attempt.answer;
        let Some(&number) = self.numbers.get(&attempt.message) else {
            // It arrived before the sender's response, or another client has sent it to the demo's application.
            if self.early.len() == MAX_EARLY_RECORDS {
                self.early.pop_front();
            }
            self.early.push_back((lane, attempt.message, attempt.success));
            return;
        };
        self.note(lane, number, attempt.success);
        self.forget_if_settled(number);
    }

    /// Counts a recorded attempt for its delivery.
    fn note(&mut self, lane: usize, number: u64, success: bool) {
        if let Some(part) = self.open.get_mut(&number).and_then(|open| open.parts[lane].as_mut()) {
            part.attempts += 1;
            part.recorded |= success;
            self.lanes[lane].retries += u64::from(part.attempts > 1);
        }
    }

    /// The store has it in the dead letter.
    pub(super) fn dead_lettered(&mut self, lane: usize, message: MessageId) {
        let Some(&number) = self.numbers.get(&message) else { return };
        let part = self.open.get_mut(&number).and_then(|open| open.parts[lane].as_mut());
        if let Some(part) = part.filter(|part| !part.dead && !part.arrived) {
            part.dead = true;
            self.lanes[lane].dead += 1;
        }
        self.forget_if_settled(number);
    }

    pub(super) fn set_health(&mut self, lane: usize, health: EndpointHealth) {
        self.lanes[lane].health = health;
    }

    fn forget_if_settled(&mut self, number: u64) {
        let Some(open) = self.open.get(&number) else { return };
        if let Some(message) = open.message
            && open.parts.iter().flatten().all(|part| part.settled())
        {
            self.open.remove(&number);
            self.numbers.remove(&message);
        }
    }

    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals { accepted: self.accepted, refused: self.refused, ..Totals::default() };
        for lane in &self.lanes {
            totals.expected += lane.expected;
            totals.delivered += lane.delivered;
            totals.waiting += lane.waiting();
            totals.dead += lane.dead;
            totals.attempts += lane.attempts;
            totals.failed += lane.failed;
            totals.duplicates += lane.duplicates;
            totals.forged += lane.forged;
        }
        totals.attempts += self.unrecorded();
        totals
    }

    /// Delivered deliveries without an attempt from the store yet: the poller reads the store from time to time.
    fn unrecorded(&self) -> u64 {
        let accepted = self.open.values().filter(|open| open.message.is_some());
        let parts = accepted.flat_map(|open| open.parts.iter().flatten());
        parts.map(|part| u64::from(part.arrived && part.attempts == 0)).sum()
    }

    pub(super) fn rows(&self, now: Duration) -> [EndpointRow; ENDPOINT_COUNT] {
        self.lanes.each_ref().map(|lane| lane.row(now))
    }

    /// The accepted messages that the receiver and the store do not agree on yet.
    pub(super) fn open_messages(&self) -> Vec<MessageId> {
        let still_missing = |open: &&OpenEvent| open.parts.iter().flatten().any(|part| !part.settled());
        self.open.values().filter(still_missing).filter_map(|open| open.message).collect()
    }

    /// Closes the account with the store's states of [`open_messages`](Self::open_messages). A delivery that neither
    /// side confirms is lost.
    pub(super) fn close(&mut self, store: &HashMap<MessageId, [StoredFate; ENDPOINT_COUNT]>) -> FinalCounts {
        // The poller has not seen every end while the demo ran.
        for (message, fates) in store {
            for (lane, _) in fates.iter().enumerate().filter(|(_, fate)| **fate == StoredFate::Dead) {
                self.dead_lettered(lane, *message);
            }
        }
        let mut waiting = [0; ENDPOINT_COUNT];
        for open in self.open.values() {
            let Some(fates) = open.message.and_then(|message| store.get(&message)) else { continue };
            for (lane, (part, fate)) in open.parts.iter().zip(fates).enumerate() {
                let waits =
                    part.is_some_and(|part| !part.arrived && !part.dead) && *fate == StoredFate::Waiting;
                waiting[lane] += u64::from(waits);
            }
        }
        let lanes = std::array::from_fn(|lane| {
            let EndpointCounters { expected, delivered, dead, .. } = self.lanes[lane];
            EndpointCounts { deliveries: expected, delivered, waiting: waiting[lane], dead }
        });
        let confirmed: u64 =
            lanes.iter().map(|lane: &EndpointCounts| lane.delivered + lane.waiting + lane.dead).sum();
        let totals = Totals { waiting: waiting.iter().sum(), ..self.totals() };
        FinalCounts { lost: totals.expected.saturating_sub(confirmed), totals, lanes }
    }
}

impl EndpointCounters {
    fn waiting(&self) -> u64 {
        self.expected.saturating_sub(self.delivered + self.dead)
    }

    fn arrival(&mut self, took: Duration, now: Duration) {
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(took);
        let second = now.as_secs();
        match self.seconds.back_mut() {
            Some((last, count)) if *last == second => *count += 1,
            _ => self.seconds.push_back((second, 1)),
        }
        while self.seconds.front().is_some_and(|(first, _)| first + BARS as u64 <= second) {
            self.seconds.pop_front();
        }
    }

    fn row(&self, now: Duration) -> EndpointRow {
        let mut sorted: Vec<_> = self.samples.iter().copied().collect();
        sorted.sort_unstable();
        let mut bars = [0; BARS];
        // The current second is not over: it would always look like a slump.
        let over = now.as_secs();
        for (second, count) in &self.seconds {
            let ago = over.checked_sub(*second).and_then(|ago| usize::try_from(ago).ok());
            if let Some(place) = ago.and_then(|ago| BARS.checked_sub(ago))
                && let Some(bar) = bars.get_mut(place)
            {
                *bar = *count;
            }
        }
        EndpointRow {
            delivered: self.delivered,
            waiting: self.waiting(),
            dead: self.dead,
            retries: self.retries,
            last: self.last.clone(),
            p50: percentile(&sorted, 50),
            p99: percentile(&sorted, 99),
            health: self.health.clone(),
            bars,
        }
    }
}

/// The value that `percent` of the sorted ones are at or below.
fn percentile(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests;
