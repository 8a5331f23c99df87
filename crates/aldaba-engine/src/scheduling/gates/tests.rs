use super::*;
use crate::Options;
use crate::scheduling::HeldHost;
use crate::scheduling::lane::LaneClass;
use aldaba_delivery::policy::{GateRule, PolicySpec};
use aldaba_delivery::{AttemptFailure, Ending, FailureKind, MessageId, Outcome, Policy, ResponseHead};
use aldaba_store::PendingDelivery;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);
const MINUTE: Duration = Duration::from_secs(60);

impl Default for Gates {
    fn default() -> Self {
        Self::new(Options::default().gate_limits())
    }
}

impl Gates {
    /// Holds a gate from a failure on.
    pub(crate) fn close(&mut self, key: &GateKey, failed_at: Timestamp, hold: Duration) -> GateChanges {
        let (held_until, failed_at) = (Some(failed_at + hold), Some(failed_at));
        let gate = Gate { failures: 5, held_until, hold, failed_at, since: failed_at, probing: false };
        let mut news = GateChanges::default();
        self.set(key, gate, "refused", failed_at.unwrap_or(NOW), &mut news);
        news
    }
}

fn start(seq: i64) -> AttemptRequest {
    let message = MessageId::from_bytes([3; 20]);
    let waiting = PendingDelivery {
        seq: Seq(seq),
        message,
        due_at: NOW,
        attempts: 0,
        clock_start: NOW,
        replayed: false,
        sequence: Some(Seq(seq)),
    };
    AttemptRequest {
        endpoint: EndpointId::from_bytes([1; 20]),
        target: Arc::new(Target::sample("standard")),
        pending: waiting,
        content: None,
        lane_class: LaneClass::New,
    }
}

/// The same of another lane, whose endpoint is not as the others are.
fn start_of(lane: u8, change: impl FnOnce(&mut Target)) -> AttemptRequest {
    let mut target = Target::sample("standard");
    change(&mut target);
    let endpoint = EndpointId::from_bytes([lane; 20]);
    AttemptRequest { endpoint, target: Arc::new(target), ..start(i64::from(lane)) }
}

/// A policy that holds a host for an hour after one failure.
fn harsh() -> Policy {
    let gate = GateRule::HostFailures { in_a_row: 1, first: MINUTE * 60, longest: MINUTE * 60 };
    let standard = PolicySpec::clone(&Target::sample("standard").policy);
    Policy::new(PolicySpec { name: "harsh".into(), gate, ..standard }).expect("a valid policy")
}

fn enter(gates: &mut Gates, request: &AttemptRequest, now: Timestamp) -> Passage {
    gates.left(request.endpoint);
    let AttemptRequest { endpoint, target, pending, .. } = request;
    let request = GateRequest { endpoint: *endpoint, target, head: pending.seq, deliveries: 3 };
    gates.enter(&request, now)
}

/// An attempt that met no connection.
fn refused(gates: &mut Gates, request: &AttemptRequest, now: Timestamp) -> GateChanges {
    let failure = AttemptFailure { kind: FailureKind::Connect, detail: "refused".into() };
    let class = Class::of(&request.target.policy, &Outcome::Failed(failure));
    gates.after_attempt(request, &class, &Transition::Retry { due_at: now + MINUTE }, "refused", now)
}

/// The host's hold has just ended.
fn hold_ends(gates: &mut Gates) {
    gates.close(&key(), NOW.before(Duration::from_secs(1)), Duration::from_secs(1));
}

fn key() -> GateKey {
    keys(&Target::sample("standard"))[0].clone()
}

fn key_at(org: u8, host: &str) -> GateKey {
    GateKey { org: OrgId::from_bytes([org; 20]), origin: Origin::new("https", host, 443), ..key() }
}

#[test]
fn a_probe_from_before_the_gate_was_opened_does_not_end_a_newer_one() {
    let (mut gates, [old, new, next]) = (Gates::default(), [1, 2, 3].map(start));
    let enter = |gates: &mut Gates, request: &AttemptRequest| enter(gates, request, NOW);
    hold_ends(&mut gates);
    assert_eq!(enter(&mut gates, &old), Passage::Open);
    assert!(gates.still_open(&old, NOW));
    // Something else opens the gate; the host fails again; its next hold ends.
    gates = Gates::default();
    hold_ends(&mut gates);
    assert_eq!(enter(&mut gates, &new), Passage::Open);
    assert!(!gates.still_open(&old, NOW), "it has passed a gate that is gone");
    assert!(gates.probe_abandoned(&old, NOW).is_empty());
    assert_eq!(enter(&mut gates, &next), Passage::Waits, "the newer probe is still on its way");
    assert_eq!(gates.probe_abandoned(&new, NOW), [next.endpoint]);
    assert_eq!(enter(&mut gates, &next), Passage::Open);
}

fn class_of(status: u16) -> (Class, Transition) {
    let outcome = Outcome::Response(ResponseHead { status, phrase: "".into(), retry_after: None });
    let class = Class::of(&start(0).target.policy, &outcome);
    (class, Transition::Settle(Ending::Delivered))
}

#[test]
fn what_waited_at_a_gate_passes_on_a_ramp_once_it_is_open() {
    let mut gates = Gates::default();
    hold_ends(&mut gates);
    let enter = |gates: &mut Gates, seq, now| enter(gates, &start(seq), now);
    assert_eq!(enter(&mut gates, 1, NOW), Passage::Open, "the probe");
    let (class, transition) = class_of(200);
    let news = gates.after_attempt(&start(1), &class, &transition, "", NOW);
    assert!(news.changed[0].gate.is_clear());
    assert_eq!(enter(&mut gates, 2, NOW), Passage::Open);
    let Passage::At(later) = enter(&mut gates, 3, NOW) else { panic!("all at once") };
    assert_eq!(later.since(NOW), Duration::from_millis(125));
    assert_eq!(enter(&mut gates, 3, later), Passage::Open);
    assert_eq!(enter(&mut gates, 4, NOW + Duration::from_secs(10)), Passage::Open);
    assert_eq!(enter(&mut gates, 5, NOW + Duration::from_secs(10)), Passage::Open, "no limit any more");
    gates.forget_idle(NOW + Duration::from_secs(10));
    gates.forget_idle(NOW + Duration::from_secs(11));
    assert!(gates.table.is_empty());
}

#[test]
fn a_hold_that_was_recorded_after_an_operator_had_opened_the_gate_is_taken_back() {
    let mut gates = Gates::default();
    hold_ends(&mut gates);
    gates.release(&key(), NOW);
    assert_eq!(gates.held().of(key().org, None), []);
    // Nothing about the gate changes with this; the disk may still hold what was decided before.
    let (class, transition) = class_of(200);
    let news = gates.after_attempt(&start(1), &class, &transition, "", NOW);
    assert_eq!(news.changed.len(), 1);
    assert!(news.changed[0].gate.is_clear());
    assert!(gates.after_attempt(&start(2), &class, &transition, "", NOW).changed.is_empty(), "once");
}

#[test]
fn a_hold_of_one_organization_does_not_bind_another() {
    let mut gates = Gates::default();
    let ours = start_of(1, |target| target.policy = harsh());
    let theirs = start_of(2, |target| target.org = OrgId::from_bytes([8; 20]));
    let neighbour = start_of(3, |target| target.app = AppId::from_bytes([7; 20]));
    let news = refused(&mut gates, &ours, NOW);
    assert_eq!(news.changed.len(), 1);
    assert_eq!(news.changed[0].key, key(), "it belongs to the organization whose attempt failed");
    assert_eq!(enter(&mut gates, &theirs, NOW), Passage::Open);
    assert!(gates.still_open(&theirs, NOW));
    assert_eq!(enter(&mut gates, &neighbour, NOW), Passage::At(NOW + MINUTE), "another application of ours");
    assert_eq!(gates.held().of(theirs.target.org, None), []);
    assert_eq!(gates.held().of(ours.target.org, None).len(), 1);
    assert!(gates.release(&GateKey { org: theirs.target.org, ..key() }, NOW).is_empty());
    assert_eq!(gates.held().of(ours.target.org, None).len(), 1, "nor does it open for them");
}

#[test]
fn lanes_whose_own_hold_is_over_probe_a_longer_one_one_at_a_time() {
    let mut gates = Gates::default();
    let [harsh, first, second] = [1, 2, 3].map(|lane| {
        start_of(lane, |target| {
            if lane == 1 {
                target.policy = harsh();
            }
        })
    });
    refused(&mut gates, &harsh, NOW);
    let mut now = NOW + MINUTE;
    assert_eq!(enter(&mut gates, &harsh, now), Passage::At(NOW + MINUTE * 60), "it obeys its own policy");
    assert_eq!(enter(&mut gates, &first, now), Passage::Open, "the probe");
    assert!(gates.still_open(&first, now));
    assert_eq!(enter(&mut gates, &second, now), Passage::Waits);
    let news = refused(&mut gates, &first, now);
    assert_eq!(news.woken, [second.endpoint]);
    assert_eq!(news.changed[0].gate.failed_at, Some(now), "that is kept");
    assert_eq!(enter(&mut gates, &second, now), Passage::At(now + MINUTE), "no flood of probes");
    now = now + MINUTE;
    assert_eq!(enter(&mut gates, &second, now), Passage::Open);
    let (class, transition) = class_of(200);
    let news = gates.after_attempt(&second, &class, &transition, "", now);
    assert_eq!(news.woken, [harsh.endpoint], "who was told of a later end looks again");
    assert_eq!(enter(&mut gates, &harsh, now), Passage::Open);
}

#[test]
fn lanes_behind_a_gate_are_counted_as_they_come_and_go() {
    let mut gates = Gates::default();
    gates.close(&key(), NOW, MINUTE);
    let lanes: Vec<_> = (0..200)
        .map(|lane| start_of(lane, |target| target.app = AppId::from_bytes([lane % 2; 20])))
        .collect();
    for lane in &lanes {
        assert_eq!(enter(&mut gates, lane, NOW), Passage::At(NOW + MINUTE));
    }
    // A second look counts nothing twice.
    enter(&mut gates, &lanes[0], NOW);
    let behind = |gates: &Gates, app| gates.held().of(key().org, app)[0].backlog;
    assert_eq!(behind(&gates, None), GateBacklog { lanes: 200, deliveries: 600 });
    let [even, odd, none] = [0, 1, 2].map(|app| Some(AppId::from_bytes([app; 20])));
    assert_eq!(behind(&gates, even), GateBacklog { lanes: 100, deliveries: 300 });
    assert_eq!(behind(&gates, none), GateBacklog::default());
    gates.left(lanes[0].endpoint);
    gates.left(lanes[0].endpoint);
    assert_eq!(behind(&gates, even), GateBacklog { lanes: 99, deliveries: 297 });
    assert_eq!(behind(&gates, odd), GateBacklog { lanes: 100, deliveries: 300 });
    let woken = gates.release(&key(), NOW);
    assert_eq!(woken, lanes[1..].iter().map(|lane| lane.endpoint).collect::<Vec<_>>());
    for lane in &lanes {
        gates.left(lane.endpoint);
    }
    assert!(gates.held_by.is_empty());
    assert!(gates.table.get(&key()).is_some_and(|gate| gate.held.is_empty()));
}

#[test]
fn held_hosts_are_read_without_the_gates_and_as_they_are_now() {
    let mut gates = Gates::default();
    let list = gates.held();
    let read = |app| {
        let list = list.clone();
        // Not on the thread that has the gates, and while they are in use: nothing walks over their lanes.
        std::thread::spawn(move || list.of(key().org, app)).join().unwrap()
    };
    assert_eq!(read(None), []);
    gates.close(&key(), NOW, MINUTE);
    let lane = start_of(1, |_| {});
    enter(&mut gates, &lane, NOW);
    let [held] = &read(None)[..] else { panic!() };
    assert_eq!((&held.key, held.why.as_str(), held.gate.probing), (&key(), "refused", false));
    assert_eq!(held.backlog, GateBacklog { lanes: 1, deliveries: 3 });
    assert_eq!(read(Some(AppId::from_bytes([9; 20])))[0].backlog, GateBacklog::default());
    gates.left(lane.endpoint);
    assert_eq!(read(None)[0].backlog, GateBacklog::default());
    enter(&mut gates, &lane, NOW + MINUTE);
    assert!(read(None)[0].gate.probing);
    gates.release(&key(), NOW + MINUTE);
    assert_eq!(read(None), []);
}

fn limited(per_organization: usize, overall: usize) -> Gates {
    Gates::new(GateLimits { per_organization, overall })
}

fn hosts(gates: &Gates, org: u8) -> Vec<String> {
    let held = gates.held().of(OrgId::from_bytes([org; 20]), None);
    let name = |host: &HeldHost| host.key.origin.as_str().replace("https://", "").replace(":443", "");
    let mut names: Vec<_> = held.iter().map(name).collect();
    names.sort();
    names
}

#[test]
fn past_its_limit_an_organization_forgets_the_gate_that_matters_least() {
    let mut gates = limited(3, 100);
    let before = |minutes: u32| NOW.before(MINUTE * minutes);
    gates.close(&key_at(1, "ended-long-ago"), before(60), MINUTE);
    gates.close(&key_at(1, "ended"), before(2), MINUTE);
    gates.close(&key_at(1, "ends-soon"), NOW, MINUTE);
    assert_eq!(hosts(&gates, 1), ["ended", "ended-long-ago", "ends-soon"]);
    let news = gates.close(&key_at(1, "ends-late"), NOW, MINUTE * 9);
    assert_eq!(hosts(&gates, 1), ["ended", "ends-late", "ends-soon"]);
    let [held, forgotten] = &news.changed[..] else { panic!("{:?}", news.changed) };
    assert_eq!((&held.key, held.gate.is_clear()), (&key_at(1, "ends-late"), false));
    assert_eq!(
        (&forgotten.key, forgotten.gate.is_clear()),
        (&key_at(1, "ended-long-ago"), true),
        "on disk too"
    );
    gates.close(&key_at(1, "ends-later"), NOW, MINUTE * 10);
    assert_eq!(hosts(&gates, 1), ["ends-late", "ends-later", "ends-soon"]);
    // All of these still hold: now it is the one that ends soonest, even if that is the new one.
    let news = gates.close(&key_at(1, "ends-first"), NOW, MINUTE / 2);
    assert_eq!(hosts(&gates, 1), ["ends-late", "ends-later", "ends-soon"]);
    assert!(news.changed.iter().all(|record| record.gate.is_clear()));
    gates.close(&key_at(2, "elsewhere"), NOW, MINUTE);
    assert_eq!((hosts(&gates, 1).len(), hosts(&gates, 2).len()), (3, 1), "each has its own");
}

#[test]
fn a_lane_behind_a_gate_that_is_dropped_is_woken() {
    let mut gates = limited(1, 100);
    gates.close(&key(), NOW, MINUTE);
    let lane = start_of(5, |_| {});
    assert_eq!(enter(&mut gates, &lane, NOW), Passage::At(NOW + MINUTE));
    let news = gates.close(&GateKey { origin: Origin::new("https", "other", 443), ..key() }, NOW, MINUTE * 2);
    assert_eq!(news.woken, [lane.endpoint]);
    assert_eq!(enter(&mut gates, &lane, NOW), Passage::Open);
    assert_eq!(gates.held_by.len(), 0);
}

#[test]
fn past_the_overall_limit_the_organization_with_the_most_gates_forgets_one() {
    let mut gates = limited(100, 10);
    for host in 0..9 {
        gates.close(&key_at(1, &format!("host-{host}")), NOW, MINUTE * (host + 2));
    }
    for host in 0..4 {
        // They matter less than all of those.
        gates.close(&key_at(2, &format!("host-{host}")), NOW, MINUTE);
    }
    assert_eq!((hosts(&gates, 1).len(), hosts(&gates, 2).len()), (6, 4));
    assert_eq!(hosts(&gates, 1)[0], "host-3", "those went that ended soonest");
    assert_eq!(gates.table.len(), 10);
}

#[test]
fn failures_that_led_to_no_hold_are_forgotten_within_the_limits_too() {
    let mut gates = limited(10, 100);
    for lane in 0..50 {
        let start = start_of(lane, |target| {
            target.origin = Origin::new("https", &format!("host-{lane}"), 443);
        });
        let news = refused(&mut gates, &start, NOW + Duration::from_secs(u64::from(lane)));
        assert!(news.changed.is_empty(), "nothing of it was on disk");
    }
    assert_eq!(gates.table.len(), 10);
    // The youngest of them still counts, and closes the gate in the end.
    let last = start_of(49, |target| target.origin = Origin::new("https", "host-49", 443));
    for _ in 0..4 {
        refused(&mut gates, &last, NOW + MINUTE);
    }
    assert_eq!(gates.held().of(last.target.org, None).len(), 1);
}

#[test]
fn a_restart_keeps_to_the_limits_and_names_what_it_left_out() {
    let record = |host: u32| GateRecord {
        key: key_at(1, &format!("host-{host}")),
        gate: Gate { held_until: Some(NOW + MINUTE * host), probing: true, ..Gate::default() },
        why: "refused".into(),
    };
    let limits = GateLimits { per_organization: 3, overall: 100 };
    let (gates, surplus) = Gates::restore(limits, [4, 1, 5, 2, 3].map(record).to_vec());
    assert_eq!(hosts(&gates, 1), ["host-3", "host-4", "host-5"]);
    let surplus: Vec<_> = surplus.iter().map(|record| record.key.clone()).collect();
    assert_eq!(surplus, [key_at(1, "host-1"), key_at(1, "host-2")]);
    assert!(gates.held().of(OrgId::from_bytes([1; 20]), None).iter().all(|host| !host.gate.probing));
}

#[test]
fn a_gate_is_forgotten_a_day_after_its_hold_has_ended() {
    let mut gates = Gates::default();
    gates.close(&key(), NOW, MINUTE);
    gates.forget_idle(NOW);
    gates.forget_idle(NOW + GATE_RETENTION);
    assert_eq!(gates.table.len(), 1);
    gates.forget_idle(NOW + GATE_RETENTION + MINUTE);
    assert!(gates.table.is_empty());
    assert_eq!(gates.table.surplus(key().org), None);
}
