//! Host control: B2 for `persistent`, and the gate of `standard`.

mod walk;

use aldaba_delivery::policy::{GateRule, Schedule};
use aldaba_delivery::{
    AppId, Chance, Class, Delivery, FailureKind, Gate, GateAdmission, GateScope, Origin, Outcome, Policy,
    Timestamp, Transition,
};
use std::time::Duration;
use walk::*;

const HOST: GateScope = GateScope::Host;

const HOST_FAILURES: [FailureKind; 4] =
    [FailureKind::Dns, FailureKind::Connect, FailureKind::ConnectTimeout, FailureKind::Tls];

fn app(number: u8) -> GateScope {
    GateScope::Application(AppId::from_bytes([number; 20]))
}

fn at(seconds: u64) -> Timestamp {
    START + secs(seconds)
}

/// A lane's n-th attempt at a delivery, and what the gate makes of it.
struct Attempt<'a> {
    policy: &'a Policy,
    nth: u32,
    outcome: Outcome,
    probe: bool,
    now: Timestamp,
}

impl Attempt<'_> {
    fn at_gate(&self, gate: &Gate, scope: GateScope) -> Gate {
        let class = Class::of(self.policy, &self.outcome);
        let delivery = Delivery { attempts: self.nth, clock_start: START };
        let transition = Transition::after_attempt(self.policy, &delivery, &class, self.now, Chance(1 << 63));
        gate.after_attempt(scope, self.policy, &class, &transition, self.probe, self.now)
    }
}

fn attempt(policy: &Policy, nth: u32, outcome: Outcome, now: Timestamp) -> Attempt<'_> {
    Attempt { policy, nth, outcome, probe: false, now }
}

fn probe(policy: &Policy, nth: u32, outcome: Outcome, now: Timestamp) -> Attempt<'_> {
    Attempt { policy, nth, outcome, probe: true, now }
}

/// The engine's claim: of all lanes that ask at the end of a hold, one goes.
fn claimed(gate: &Gate) -> Gate {
    Gate { probing: true, ..gate.clone() }
}

/// A policy that obeys every hold of these tests to its end.
fn longest() -> Policy {
    builtin("persistent")
}

/// A host that `persistent` holds for 32 s from the start.
fn held_for_32_s() -> Gate {
    attempt(&builtin("persistent"), 5, failure(FailureKind::Connect), START).at_gate(&Gate::default(), HOST)
}

/// A host that `standard` holds for 1 s from the start.
fn held_for_1_s() -> Gate {
    let mut gate = Gate::default();
    for nth in 1..=5 {
        gate = attempt(&builtin("standard"), nth, failure(FailureKind::Dns), START).at_gate(&gate, HOST);
    }
    gate
}

#[test]
fn b2_a_delay_over_16_s_holds_the_host_until_the_next_attempt() {
    let persistent = builtin("persistent");
    let mut gate = Gate::default();
    for nth in 1..=4 {
        gate = attempt(&persistent, nth, failure(FailureKind::Connect), START).at_gate(&gate, HOST);
        assert_eq!(
            gate.admission(&longest(), START),
            GateAdmission::Open,
            "the delay of 16 s after the 4th is not over 16 s"
        );
    }
    gate = attempt(&persistent, 5, failure(FailureKind::Connect), START).at_gate(&gate, HOST);
    assert_eq!(gate.admission(&longest(), START), GateAdmission::Held(at(32)));
    assert_eq!(
        gate.admission(&longest(), START + Duration::from_millis(31_999)),
        GateAdmission::Held(at(32))
    );
}

#[test]
fn b4_a_delivery_that_ends_by_its_stop_date_sets_the_hold_that_its_next_delay_would_have_set() {
    let persistent = builtin("persistent");
    let last_minute = at(7 * 24 * 3600 - 60);
    for scope in [HOST, app(1)] {
        let outcome = || if scope == HOST { failure(FailureKind::Connect) } else { answer(500) };
        let ended = attempt(&persistent, 150, outcome(), last_minute).at_gate(&Gate::default(), scope);
        assert_eq!(ended.admission(&longest(), last_minute), GateAdmission::Held(last_minute + secs(4096)));
        // One whose delay would have been short says nothing of the host.
        let short = attempt(&persistent, 3, outcome(), at(7 * 24 * 3600)).at_gate(&Gate::default(), scope);
        assert_eq!(short.admission(&longest(), at(7 * 24 * 3600)), GateAdmission::Open);
        let probed = Gate { failures: 9, held_until: Some(at(32)), hold: secs(32), ..Gate::default() };
        let probed = probe(&persistent, 150, outcome(), last_minute).at_gate(&claimed(&probed), scope);
        assert_eq!(probed.admission(&longest(), last_minute), GateAdmission::Held(last_minute + secs(4096)));
    }
}

#[test]
fn b2_when_the_hold_ends_one_probe_goes_first() {
    let gate = held_for_32_s();
    assert_eq!(gate.admission(&longest(), at(32)), GateAdmission::Probe);
    assert_eq!(claimed(&gate).admission(&longest(), at(32)), GateAdmission::Probing);
    assert_eq!(claimed(&gate).admission(&longest(), at(10_000)), GateAdmission::Probing);
}

#[test]
fn b2_a_probe_that_succeeds_opens_the_gate_for_all() {
    let gate = claimed(&held_for_32_s());
    let opened = probe(&builtin("persistent"), 6, answer(200), at(32)).at_gate(&gate, HOST);
    assert_eq!(opened.admission(&longest(), at(32)), GateAdmission::Open);
    assert!(opened.is_clear());
}

#[test]
fn b2_a_probe_that_fails_holds_again_until_its_own_next_attempt() {
    let gate = claimed(&held_for_32_s());
    let held = probe(&builtin("persistent"), 6, failure(FailureKind::Connect), at(32)).at_gate(&gate, HOST);
    assert_eq!(held.admission(&longest(), at(32)), GateAdmission::Held(at(32 + 64)));
    assert!(!held.probing);
}

#[test]
fn b2_a_fresh_delivery_that_fails_as_probe_doubles_the_hold_up_to_4096_s() {
    let persistent = builtin("persistent");
    let mut gate = held_for_32_s();
    let mut holds = Vec::new();
    for _ in 0..9 {
        let now = gate.held_until.unwrap();
        gate = probe(&persistent, 1, failure(FailureKind::Dns), now).at_gate(&claimed(&gate), HOST);
        holds.push(gate.hold);
        assert_eq!(gate.admission(&longest(), now), GateAdmission::Held(now + gate.hold));
    }
    assert_eq!(holds, all_secs([64, 128, 256, 512, 1024, 2048, 4096, 4096, 4096]));
}

#[test]
fn b2_a_probe_whose_delivery_ends_with_it_holds_again_too() {
    let gate = claimed(&held_for_32_s());
    let week_later = at(7 * 24 * 3600);
    let held = probe(&builtin("persistent"), 157, failure(FailureKind::Tls), week_later).at_gate(&gate, HOST);
    assert_eq!(
        held.admission(&longest(), week_later),
        GateAdmission::Held(week_later + secs(4096)),
        "its own next delay counts"
    );
}

#[test]
fn a_delay_beyond_the_longest_hold_holds_no_longer_than_that() {
    let mut spec = (*builtin("persistent")).clone();
    spec.schedule = Schedule::List(vec![secs(10 * 3600)]);
    let patient = Policy::new(spec).unwrap();
    let held = attempt(&patient, 1, failure(FailureKind::Dns), START).at_gate(&Gate::default(), HOST);
    assert_eq!(
        held.admission(&longest(), START),
        GateAdmission::Held(at(4096)),
        "a probe goes out long before its own retry"
    );
}

#[test]
fn b2_a_failure_already_on_its_way_can_lengthen_a_hold_but_never_shorten_it() {
    let gate = held_for_32_s();
    let persistent = builtin("persistent");
    let longer = attempt(&persistent, 6, failure(FailureKind::Connect), at(10)).at_gate(&gate, HOST);
    assert_eq!(longer.admission(&longest(), at(10)), GateAdmission::Held(at(10 + 64)));
    let shorter = attempt(&persistent, 5, failure(FailureKind::Connect), at(10)).at_gate(&longer, HOST);
    assert_eq!(shorter.admission(&longest(), at(10)), GateAdmission::Held(at(10 + 64)));
}

#[test]
fn a_hold_from_before_the_clock_was_set_back_does_not_bind() {
    let gate = held_for_32_s();
    let hour_before = Timestamp::from_millis(START.millis() - 3_600_000);
    assert_eq!(gate.admission(&longest(), Timestamp::from_millis(START.millis() - 1)), GateAdmission::Probe);
    assert_eq!(gate.admission(&longest(), hour_before), GateAdmission::Probe);
    assert_eq!(claimed(&gate).admission(&longest(), hour_before), GateAdmission::Probing);
    let failed = failure(FailureKind::Connect);
    let again = probe(&builtin("persistent"), 1, failed, hour_before).at_gate(&claimed(&gate), HOST);
    assert_eq!(
        again.admission(&longest(), hour_before),
        GateAdmission::Held(hour_before + secs(64)),
        "its probe counts"
    );
    let success = probe(&builtin("persistent"), 1, answer(200), hour_before).at_gate(&claimed(&gate), HOST);
    assert_eq!(success.admission(&longest(), hour_before), GateAdmission::Open);
}

#[test]
fn b2_an_answer_or_a_timeout_holds_only_the_same_applications_lanes() {
    let persistent = builtin("persistent");
    let kinds = [FailureKind::Timeout, FailureKind::Broken, FailureKind::Malformed].map(failure);
    for outcome in kinds.into_iter().chain([answer(500), answer(404), answer(302)]) {
        let failed = attempt(&persistent, 5, outcome, START);
        assert_eq!(
            failed.at_gate(&Gate::default(), app(1)).admission(&longest(), START),
            GateAdmission::Held(at(32))
        );
        assert!(failed.at_gate(&Gate::default(), HOST).is_clear(), "{:?}", failed.outcome);
    }
}

#[test]
fn b2_a_failure_of_the_host_itself_holds_every_lane_that_takes_part() {
    let persistent = builtin("persistent");
    for kind in HOST_FAILURES {
        let failed = attempt(&persistent, 5, failure(kind), START);
        assert_eq!(
            failed.at_gate(&Gate::default(), HOST).admission(&longest(), START),
            GateAdmission::Held(at(32))
        );
        assert!(failed.at_gate(&Gate::default(), app(1)).is_clear(), "one hold for one failure: {kind:?}");
    }
}

#[test]
fn b2_persistent_and_standard_take_part_and_the_others_do_not() {
    let parts = ["persistent", "standard", "quick", "job-status", "public-api"]
        .map(builtin)
        .map(|policy| (policy.uses_gate(HOST), policy.uses_gate(app(1))));
    assert_eq!(
        parts,
        [(true, true), (true, false), (false, false), (false, false), (false, false)],
        "standard listens to the host itself only"
    );
    assert!(builtin("standard").uses_gates());
    assert!(!builtin("quick").uses_gates());
}

#[test]
fn b2_a_lane_that_takes_no_part_neither_sets_nor_opens_a_hold() {
    for name in ["quick", "job-status", "public-api"] {
        let policy = builtin(name);
        for outcome in [answer(200), answer(500), failure(FailureKind::Connect)] {
            for gate in [Gate::default(), held_for_32_s()] {
                let lane = attempt(&policy, 3, outcome.clone(), at(5));
                assert_eq!(lane.at_gate(&gate, HOST), gate, "{name}");
                assert_eq!(lane.at_gate(&gate, app(1)), gate, "{name}");
            }
        }
    }
}

#[test]
fn b2_a_host_that_answers_at_all_is_not_held_for_others() {
    let persistent = builtin("persistent");
    for outcome in [answer(500), answer(404), failure(FailureKind::Timeout), failure(FailureKind::Broken)] {
        let gate = claimed(&held_for_32_s());
        let after = probe(&persistent, 6, outcome, at(32)).at_gate(&gate, HOST);
        assert_eq!(after.admission(&longest(), at(32)), GateAdmission::Open);
    }
}

#[test]
fn b2_an_applications_hold_ends_only_with_a_delivery() {
    let persistent = builtin("persistent");
    let gate = attempt(&persistent, 5, answer(500), START).at_gate(&Gate::default(), app(1));
    let failed = probe(&persistent, 6, answer(404), at(32)).at_gate(&claimed(&gate), app(1));
    assert_eq!(failed.admission(&longest(), at(32)), GateAdmission::Held(at(32 + 64)));
    let delivered = probe(&persistent, 6, answer(200), at(32)).at_gate(&claimed(&gate), app(1));
    assert!(delivered.is_clear());
}

#[test]
fn b2_a_probe_that_never_reached_the_host_holds_its_application_again() {
    let persistent = builtin("persistent");
    let gate = attempt(&persistent, 5, answer(500), START).at_gate(&Gate::default(), app(1));
    let unreachable = probe(&persistent, 1, failure(FailureKind::Connect), at(32));
    assert_eq!(
        unreachable.at_gate(&claimed(&gate), app(1)).admission(&longest(), at(32)),
        GateAdmission::Held(at(32 + 64))
    );
}

#[test]
fn a_probe_that_failed_locally_leaves_the_gate_to_the_next() {
    for name in ["persistent", "standard"] {
        for kind in [FailureKind::Internal, FailureKind::TargetForbidden] {
            let gate = held_for_32_s();
            let after = probe(&builtin(name), 6, failure(kind), at(32)).at_gate(&claimed(&gate), HOST);
            assert_eq!(after, gate, "{name}: {kind:?}");
            assert_eq!(after.admission(&longest(), at(32)), GateAdmission::Probe);
        }
    }
}

#[test]
fn standard_closes_after_5_host_failures_in_a_row() {
    let standard = builtin("standard");
    let mut gate = Gate::default();
    for nth in 1..=4 {
        gate = attempt(&standard, nth, failure(FailureKind::Dns), START).at_gate(&gate, HOST);
        assert_eq!(gate.admission(&longest(), START), GateAdmission::Open);
    }
    gate = attempt(&standard, 1, failure(FailureKind::Tls), START).at_gate(&gate, HOST);
    assert_eq!(gate.admission(&longest(), START), GateAdmission::Held(at(1)));
}

#[test]
fn standard_counts_from_zero_again_after_a_sign_of_life() {
    let standard = builtin("standard");
    for alive in [answer(200), answer(500), failure(FailureKind::Timeout)] {
        let mut gate = Gate::default();
        for _ in 0..4 {
            gate = attempt(&standard, 1, failure(FailureKind::Connect), START).at_gate(&gate, HOST);
        }
        gate = attempt(&standard, 1, alive, START).at_gate(&gate, HOST);
        assert!(gate.is_clear());
        gate = attempt(&standard, 1, failure(FailureKind::Connect), START).at_gate(&gate, HOST);
        assert_eq!((gate.failures, gate.admission(&longest(), START)), (1, GateAdmission::Open));
    }
}

#[test]
fn standard_holds_for_1_2_4_and_so_on_up_to_60_s() {
    let standard = builtin("standard");
    let mut gate = held_for_1_s();
    let mut holds = vec![gate.hold];
    for _ in 0..7 {
        let now = gate.held_until.unwrap();
        assert_eq!(gate.admission(&longest(), now), GateAdmission::Probe);
        gate = probe(&standard, 1, failure(FailureKind::Connect), now).at_gate(&claimed(&gate), HOST);
        assert_eq!(gate.admission(&longest(), now), GateAdmission::Held(now + gate.hold));
        holds.push(gate.hold);
    }
    assert_eq!(holds, all_secs([1, 2, 4, 8, 16, 32, 60, 60]));
}

#[test]
fn standard_is_not_held_longer_by_failures_that_were_on_their_way_when_the_gate_closed() {
    let standard = builtin("standard");
    let gate = held_for_1_s();
    for seconds in [0, 1, 5] {
        let late = attempt(&standard, 1, failure(FailureKind::ConnectTimeout), at(seconds));
        let after = late.at_gate(&gate, HOST);
        assert_eq!((after.held_until, after.hold), (gate.held_until, gate.hold), "{seconds} s");
    }
}

#[test]
fn a_late_failure_does_not_end_the_wait_for_the_probe() {
    let gate = claimed(&held_for_1_s());
    let late = attempt(&builtin("standard"), 1, failure(FailureKind::Dns), at(2)).at_gate(&gate, HOST);
    assert_eq!(late.admission(&longest(), at(2)), GateAdmission::Probing);
}

#[test]
fn standard_sets_and_opens_no_hold_of_an_application() {
    let persistent = builtin("persistent");
    let standard = builtin("standard");
    let held = attempt(&persistent, 5, answer(500), START).at_gate(&Gate::default(), app(1));
    for outcome in [answer(200), answer(500), failure(FailureKind::Timeout)] {
        let lane = attempt(&standard, 8, outcome, at(5));
        assert_eq!(lane.at_gate(&held, app(1)), held);
        assert_eq!(lane.at_gate(&Gate::default(), app(1)), Gate::default());
    }
}

#[test]
fn a_success_between_makes_the_probe_an_attempt_like_any_other() {
    for name in ["standard", "persistent"] {
        let policy = builtin(name);
        let opened = attempt(&policy, 1, answer(200), at(1)).at_gate(&claimed(&held_for_1_s()), HOST);
        let after = probe(&policy, 1, failure(FailureKind::Connect), at(2)).at_gate(&opened, HOST);
        assert_eq!((after.failures, after.admission(&longest(), at(2))), (1, GateAdmission::Open), "{name}");
    }
}

#[test]
fn a_probe_holds_again_whichever_policy_closed_the_gate() {
    // `persistent` probes a hold of 1 s with a fresh delivery, whose own delay is below its threshold.
    let after =
        probe(&builtin("persistent"), 1, failure(FailureKind::Dns), at(1)).at_gate(&held_for_1_s(), HOST);
    assert_eq!(after.admission(&longest(), at(1)), GateAdmission::Held(at(1 + 2)));
    // `standard` probes a hold of 32 s, and keeps to its own bounds.
    let after =
        probe(&builtin("standard"), 1, failure(FailureKind::Dns), at(32)).at_gate(&held_for_32_s(), HOST);
    assert_eq!(after.admission(&longest(), at(32)), GateAdmission::Held(at(32 + 60)));
}

/// A host that somebody's own policy holds for 4,096 s from the start, with one failure.
fn held_for_4096_s() -> Gate {
    let mut spec = (*builtin("standard")).clone();
    spec.gate = GateRule::HostFailures { in_a_row: 1, first: secs(4096), longest: secs(4096) };
    let harsh = Policy::new(spec).unwrap();
    attempt(&harsh, 1, failure(FailureKind::Connect), START).at_gate(&Gate::default(), HOST)
}

#[test]
fn b2_a_lane_obeys_a_hold_no_longer_than_its_own_policys_longest_one() {
    let (gate, standard) = (held_for_4096_s(), builtin("standard"));
    assert_eq!(standard.longest_hold(), secs(60));
    assert_eq!(builtin("persistent").longest_hold(), secs(4096));
    assert_eq!(gate.admission(&standard, START), GateAdmission::Held(at(60)), "counted from the failure");
    assert_eq!(gate.admission(&standard, at(59)), GateAdmission::Held(at(60)));
    assert_eq!(gate.admission(&standard, at(60)), GateAdmission::Probe);
    assert_eq!(gate.admission(&builtin("persistent"), at(60)), GateAdmission::Held(at(4096)));
    assert_eq!(gate.admission(&builtin("persistent"), at(4096)), GateAdmission::Probe);
    assert_eq!(
        held_for_32_s().admission(&standard, START),
        GateAdmission::Held(at(32)),
        "a shorter hold ends for all"
    );
}

#[test]
fn b2_a_lane_whose_own_hold_is_over_goes_as_the_one_probe() {
    let (gate, standard) = (claimed(&held_for_4096_s()), builtin("standard"));
    assert_eq!(gate.admission(&standard, at(60)), GateAdmission::Probing, "one at a time");
    assert_eq!(gate.admission(&longest(), at(60)), GateAdmission::Held(at(4096)), "the others' hold goes on");
    assert_eq!(gate.admission(&longest(), at(4096)), GateAdmission::Probing);
    let success = probe(&standard, 1, answer(200), at(60)).at_gate(&gate, HOST);
    assert!(success.is_clear(), "it opens the gate for all");
}

#[test]
fn b2_a_probe_that_fails_during_a_longer_hold_restarts_the_hold_of_its_policy() {
    let (gate, standard) = (claimed(&held_for_4096_s()), builtin("standard"));
    let after = probe(&standard, 1, failure(FailureKind::Connect), at(61)).at_gate(&gate, HOST);
    assert_eq!(
        (after.held_until, after.hold),
        (gate.held_until, gate.hold),
        "nobody else waits longer or less"
    );
    assert_eq!(after.admission(&standard, at(61)), GateAdmission::Held(at(61 + 60)), "no flood of probes");
    assert_eq!(after.admission(&standard, at(61 + 60)), GateAdmission::Probe);
    assert_eq!(after.admission(&longest(), at(61)), GateAdmission::Held(at(4096)));
    // The last one before the end of the longer hold.
    let late = probe(&standard, 1, failure(FailureKind::Connect), at(4090)).at_gate(&claimed(&after), HOST);
    assert_eq!(late.admission(&standard, at(4090)), GateAdmission::Held(at(4150)));
    assert_eq!(late.admission(&longest(), at(4090)), GateAdmission::Held(at(4150)));
}

#[test]
fn a_failure_that_was_on_its_way_does_not_count_as_a_failed_probe_of_a_longer_hold() {
    let (gate, standard) = (held_for_4096_s(), builtin("standard"));
    let late = attempt(&standard, 1, failure(FailureKind::ConnectTimeout), at(30)).at_gate(&gate, HOST);
    assert_eq!(late.admission(&standard, at(30)), GateAdmission::Held(at(60)));
}

#[test]
fn an_attempt_can_concern_the_gate_of_the_host_and_that_of_its_application() {
    let id = AppId::from_bytes([7; 20]);
    assert_eq!(Gate::scopes(id), [GateScope::Host, GateScope::Application(id)]);
}

#[test]
fn an_origin_is_scheme_host_and_port() {
    let origin = Origin::new("https", "example.com", 443);
    assert_eq!(origin.as_str(), "https://example.com:443");
    assert_eq!(Origin::from_stored(origin.as_str()), origin);
    assert_ne!(Origin::new("http", "example.com", 443), origin);
    assert_ne!(Origin::new("https", "example.com", 8443), origin);
}
