//! Half of the runs have sources: others send webhooks to them, repeat them, get their ids wrong, and some only pretend
//! to be the sender. They have dice of their own.

use super::make::{self, EVENT_TYPES, FILTER};
use super::{Order, Scenario, What};
use crate::entropy::Dice;
use crate::store::Span;
use aldaba_delivery::{OnExhausted, Ordering, Timestamp};
use aldaba_signature::SigningKey;
use std::time::Duration;

/// Keys that the sender of a source has, one after the other.
const KEYS: usize = 2;
const HOUR: Duration = Duration::from_secs(3600);

/// A source to be, and its sender.
#[derive(Clone, Debug)]
pub struct SourcePlan {
    pub naming: Naming,
    pub keys: Vec<SigningKey>,
    /// What its owner makes of it: first the first, the others when an order says so.
    pub versions: Vec<Version>,
    pub window_days: u16,
}

/// What its events are known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Ids that their sender gives: Standard Webhooks.
    ById,
    /// The bytes of their bodies: `x-webhook-signature`.
    ByBody,
    /// Nothing: of Microsoft Graph, each that comes is another event.
    ByNothing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The numbers of the keys that it knows.
    pub keys: Vec<usize>,
    /// Empty: all.
    pub filter_types: Vec<&'static str>,
    pub other_body_is_duplicate: bool,
}

/// Something that is sent to a source, until it is heard.
#[derive(Clone, Debug)]
pub struct Webhook {
    pub source: usize,
    /// What has the same number is the same event.
    pub event: usize,
    /// Where it is not 0, the sender has used the id of an event for something else.
    pub variant: usize,
    /// It is not the sender who sends it.
    pub forgery: Option<Forgery>,
    /// The sender waits no longer than this for an answer, and sends it again then.
    pub timeout: Option<Duration>,
    /// The sender has not heard of another URL.
    pub old_url: bool,
    /// The sender sends it once more though it was answered.
    pub again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// No signature at all.
    Unsigned,
    /// With a key that the source does not know.
    OtherKey,
    /// It was signed long ago. Where no time is signed, with another key.
    OldTime,
    /// Another body was signed.
    OtherBytes,
}

impl Version {
    pub fn wants(&self, event_type: &str) -> bool {
        self.filter_types.is_empty() || self.filter_types.contains(&event_type)
    }
}

/// The last to be added: nothing else happens to these doors, and all else is as it was before there were sources.
pub(super) fn add(scenario: &mut Scenario) {
    let mut dice = Dice::of(scenario.seed, "sources");
    if dice.percent(50) {
        return;
    }
    let moments: Vec<_> = scenario.orders.iter().map(|order| order.at).collect();
    for number in 0..usize::try_from(dice.pick(&[1_u64, 1, 2, 3])).unwrap_or(1) {
        let plan = plan(&mut dice);
        add_doors(scenario, number, &moments, &mut dice);
        // Together, or each for itself.
        let burst = dice.percent(40).then(|| dice.pick(&moments));
        let moments = burst.map_or_else(|| moments.clone(), |burst| vec![burst]);
        add_webhooks(scenario, number, &moments, &mut dice);
        let changes = (1..plan.versions.len()).map(|version| What::ChangeSource { source: number, version });
        let mut changes: Vec<_> = changes.collect();
        changes.extend(dice.percent(40).then_some(What::RotateToken { source: number }));
        changes.extend(dice.percent(15).then_some(What::DeleteSource { source: number }));
        // In vain.
        let tenant = scenario.tenant_of(number);
        changes.extend(dice.percent(15).then_some(What::DeleteApplication { tenant }));
        for what in changes {
            let at = dice.pick(&moments) + dice.millis(0, 5000);
            scenario.orders.push(Order { at, what });
        }
        scenario.sources.push(plan);
    }
    // Ids outlive their messages, if those do not live long.
    if dice.percent(70) && scenario.faults_end.since(scenario.start) > HOUR * 24 {
        scenario.options.retention.interval = HOUR * 2;
        scenario.options.retention.defaults.delivered = Some(HOUR);
    }
    // A life must not end before all is made.
    let made = (scenario.sources.len() + scenario.doors.len()) as u64;
    for plan in &mut scenario.lives {
        plan.crash.iter_mut().for_each(|crash| crash.commit += made);
    }
}

fn plan(dice: &mut Dice) -> SourcePlan {
    let naming = dice.pick(&[Naming::ById, Naming::ById, Naming::ById, Naming::ByBody, Naming::ByNothing]);
    let mut key = || {
        let mut secret = [0; 24];
        secret.fill_with(|| dice.throw().to_le_bytes()[0]);
        SigningKey::generate_hmac(secret)
    };
    let keys = (0..KEYS).map(|_| key()).collect();
    let tolerant = dice.percent(15);
    let versions = 1 + dice.pick(&[0, 0, 1, 3]);
    let version = |number: usize| Version {
        keys: if number == 0 { vec![0] } else { dice.pick(&[vec![0], vec![0, 1], vec![1, 0], vec![1]]) },
        filter_types: if dice.percent(70) { Vec::new() } else { vec![dice.pick(&EVENT_TYPES)] },
        other_body_is_duplicate: tolerant ^ dice.percent(10),
    };
    let versions = (0..versions).map(version).collect();
    SourcePlan { naming, keys, versions, window_days: dice.pick(&[1, 2, 30, 30]) }
}

/// Its endpoints. They are turned off and on, made late, deleted; what waits for them is sent manually, cancelled and
/// deleted, what has ended is replayed.
fn add_doors(scenario: &mut Scenario, source: usize, moments: &[Timestamp], dice: &mut Dice) {
    let length = scenario.faults_end.since(scenario.start);
    let tenant = scenario.tenant_of(source);
    for _ in 0..dice.pick(&[1, 1, 2, 4]) {
        let number = scenario.doors.len();
        let mut door = make::door(dice, 1, scenario.hosts.len(), length);
        (door.tenant, door.holds) = (tenant, dice.percent(50));
        door.channels.clear();
        door.filter = dice.percent(15).then_some(FILTER);
        if dice.percent(20) {
            door.ordering = dice.pick(&[
                Ordering::Fifo(OnExhausted::Skip),
                Ordering::Fifo(OnExhausted::Skip),
                Ordering::Fifo(OnExhausted::Block),
            ]);
        }
        let mut at = || dice.pick(moments) + dice.millis(0, 5000);
        let mut orders = Vec::new();
        if door.late {
            orders.push((at(), What::CreateEndpoint { door: number }));
        }
        let off = at();
        for (at, what) in [
            (at(), What::DeleteEndpoint { door: number }),
            (at(), What::Replay { door: number }),
            (at(), What::Resend { door: number }),
            (at(), What::Cancel { tenant }),
            (at(), What::Expunge { tenant }),
        ] {
            if dice.percent(15) {
                orders.push((at, what));
            }
        }
        if dice.percent(25) {
            let on_again = off + dice.span(Duration::from_secs(1), HOUR * 4);
            orders.push((off, What::Disable { door: number }));
            orders.push((on_again, What::Enable { door: number }));
        }
        scenario.orders.extend(orders.into_iter().map(|(at, what)| Order { at, what }));
        scenario.doors.push(door);
    }
}

/// Each event comes once at least; most of them more often, some at the same moment.
fn add_webhooks(scenario: &mut Scenario, source: usize, moments: &[Timestamp], dice: &mut Dice) {
    // What would come after the end comes with it.
    let latest = scenario.faults_end + HOUR;
    let events = dice.pick(&[3, 10, 20, 30]);
    for event in 0..events {
        let first = dice.pick(moments) + dice.millis(0, 2000);
        let mut send = |dice: &mut Dice, at: Timestamp, variant: usize, forgery: Option<Forgery>| {
            let webhook = Webhook {
                source,
                event,
                variant,
                forgery,
                timeout: dice.percent(20).then(|| dice.millis(5, 3000)),
                old_url: dice.percent(20),
                again: dice.percent(10),
            };
            scenario.orders.push(Order { at: at.min(latest), what: What::SendWebhook(webhook) });
        };
        send(dice, first, 0, None);
        for _ in 0..dice.pick(&[0, 0, 1, 2, 5]) {
            let at = after(dice, first);
            send(dice, at, 0, None);
        }
        if dice.percent(30) {
            let at = late(dice, first);
            send(dice, at, 0, None);
        }
        if dice.percent(25) {
            let at = after(dice, first);
            send(dice, at, 1, None);
        }
        if dice.percent(15) {
            let forgery = [Forgery::Unsigned, Forgery::OtherKey, Forgery::OldTime, Forgery::OtherBytes];
            let (at, forgery, variant) = (after(dice, first), dice.pick(&forgery), dice.index(2));
            // Sometimes before the event itself, with what that will be.
            let at = if dice.percent(50) { first.before(dice.millis(0, 50)) } else { at };
            send(dice, at, variant, Some(forgery));
        }
        if dice.percent(10) {
            let from = first + dice.millis(0, 20);
            let to = (from + dice.millis(5, 2000)).min(scenario.faults_end);
            scenario.faults.full.push(Span { from, to });
        }
    }
}

/// At the same moment, soon, or late.
fn after(dice: &mut Dice, first: Timestamp) -> Timestamp {
    match dice.between(0, 5) {
        0 => first,
        1 | 2 => first + dice.millis(0, 20),
        3 => first + dice.millis(0, 10_000),
        4 => first + dice.millis(0, 4 * 3_600_000),
        _ => late(dice, first),
    }
}

/// So late that the message may be gone, and its id forgotten.
fn late(dice: &mut Dice, first: Timestamp) -> Timestamp {
    first + dice.span(HOUR * 23, HOUR * 52)
}
