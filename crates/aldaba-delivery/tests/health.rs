//! The endpoint's health: D4 and D5 for `public-api`, recovery for `standard`, and quiet times.

mod walk;

use aldaba_delivery::{
    Availability, Chance, Class, Condition, Delivery, FailureKind, Health, HealthStatus, Outcome, Policy,
    RetryAfter, Timestamp, Transition,
};
use walk::*;

const DAY: u64 = 24 * 3600;

fn at(seconds: u64) -> Timestamp {
    START + secs(seconds)
}

/// The endpoint's health after the n-th attempt of a delivery.
fn after(health: &Health, policy: &Policy, nth: u32, outcome: &Outcome, now: Timestamp) -> Health {
    let class = Class::of(policy, outcome);
    let delivery = Delivery { attempts: nth, clock_start: now };
    let transition = Transition::after_attempt(policy, &delivery, &class, now, Chance(1 << 63));
    health.after_attempt(policy, &class, &transition, now)
}

/// An endpoint under `public-api` that a delivery has just used up its retries on.
fn failed_public_api() -> Health {
    after(&Health::default(), &builtin("public-api"), 6, &answer(500), START)
}

/// An endpoint under `standard` that has just been failing for 5 days.
fn failed_standard() -> Health {
    let standard = builtin("standard");
    let failing = after(&Health::default(), &standard, 1, &answer(500), START);
    after(&failing, &standard, 1, &answer(500), at(5 * DAY))
}

#[test]
fn elapsed_time_fails_no_endpoint_on_a_clock_that_is_not_trusted() {
    let standard = builtin("standard");
    let failing = after(&Health::default(), &standard, 1, &answer(500), START);
    let leapt = after(&failing, &standard.on_untrusted_clock(), 1, &answer(500), at(400 * DAY));
    assert_eq!(leapt.status, HealthStatus::Active);
    assert_eq!(leapt.failing_since, Some(START), "the time is still counted");
    assert_eq!(after(&leapt, &standard, 1, &answer(500), at(5 * DAY)).status, HealthStatus::Failed);
    let used_up = builtin("public-api").on_untrusted_clock();
    assert_eq!(after(&failing, &used_up, 6, &answer(500), START).status, HealthStatus::Failed);
}

#[test]
fn d4_each_retriable_failure_with_retries_left_adds_one() {
    let policy = builtin("public-api");
    let mut health = Health::default();
    assert!(!health.degraded());
    for nth in 1..=5 {
        health = after(&health, &policy, nth, &answer(503), at(nth.into()));
        assert_eq!((health.failure_count, health.status), (nth, HealthStatus::Active));
        assert!(health.degraded());
        assert_eq!(health.availability(at(nth.into())), Availability::Open);
    }
}

#[test]
fn d4_any_success_sets_the_count_to_zero() {
    let policy = builtin("public-api");
    let degraded = after(&Health::default(), &policy, 1, &failure(FailureKind::Dns), START);
    assert_eq!(after(&degraded, &policy, 1, &answer(302), at(1)), Health::default());
}

#[test]
fn d4_a_failure_that_is_not_retriable_ends_its_delivery_only() {
    let policy = builtin("public-api");
    for outcome in [answer(404), failure(FailureKind::Malformed), failure(FailureKind::TargetForbidden)] {
        assert_eq!(after(&Health::default(), &policy, 1, &outcome, START), Health::default());
        let degraded = after(&Health::default(), &policy, 1, &answer(500), START);
        assert_eq!(after(&degraded, &policy, 6, &outcome, at(1)), degraded);
    }
}

#[test]
fn d4_a_delivery_that_used_up_its_retries_fails_the_endpoint() {
    let policy = builtin("public-api");
    let mut health = Health::default();
    for nth in 1..=6 {
        health = after(&health, &policy, nth, &answer(500), at(nth.into()));
    }
    assert_eq!((health.status, health.failure_count), (HealthStatus::Failed, 5));
    assert_eq!(health.changed_at, Some(at(6)));
    assert!(!health.degraded(), "failed is more than degraded");
}

#[test]
fn d4_nothing_is_sent_to_a_failed_endpoint_until_someone_resumes_it() {
    assert_eq!(failed_public_api().availability(Timestamp::MAX), Availability::Held(None));
}

#[test]
fn d4_a_failure_of_our_own_says_nothing_about_the_endpoint() {
    let policy = builtin("public-api");
    let internal = failure(FailureKind::Internal);
    for nth in [1, 6] {
        assert_eq!(after(&Health::default(), &policy, nth, &internal, START), Health::default());
    }
}

#[test]
fn d5_a_success_that_was_on_its_way_does_not_resume_a_failed_endpoint() {
    let late = after(&failed_public_api(), &builtin("public-api"), 1, &answer(200), at(1));
    assert_eq!((late.status, late.failure_count), (HealthStatus::Failed, 0));
    assert_eq!(late.changed_at, Some(START));
    assert_eq!(late.availability(at(1)), Availability::Held(None));
}

#[test]
fn the_beginning_of_an_outage_stays_until_the_endpoint_is_active_again() {
    let policy = builtin("public-api");
    let failing = after(&Health::default(), &policy, 1, &answer(500), at(1));
    assert_eq!(failing.outage_began(), None, "it is still active");
    let failed = after(&failing, &policy, 6, &answer(500), at(10));
    let late = after(&failed, &policy, 2, &answer(200), at(11));
    assert_eq!((late.status, late.failing_since), (HealthStatus::Failed, Some(at(1))));
    let later = after(&late, &policy, 2, &answer(500), at(12));
    for given_up in [&failed, &late, &later] {
        assert_eq!(given_up.outage_began(), Some(at(1)));
    }
    assert_eq!(later.resumed(at(13)).outage_began(), None);
    let again = after(&later.resumed(at(13)), &policy, 6, &answer(500), at(14));
    assert_eq!(again.outage_began(), Some(at(14)), "the next outage is another one");
}

#[test]
fn an_outage_begins_when_the_endpoint_was_given_up_if_nothing_had_failed_before() {
    let standard = builtin("standard");
    let gone = after(&Health::default(), &standard, 1, &answer(410), at(1));
    assert_eq!(gone.outage_began(), Some(at(1)));
    let late = after(&gone, &standard, 1, &answer(500), at(5));
    assert_eq!(late.outage_began(), Some(at(1)), "what was on its way failed later");
    assert_eq!(Health::default().blocked(at(2)).outage_began(), Some(at(2)));
    let recovered = after(&failed_standard(), &standard, 1, &answer(200), at(6 * DAY));
    assert_eq!((recovered.failing_since, recovered.outage_began()), (None, None));
}

#[test]
fn a_success_while_blocked_restarts_the_days_without_success() {
    let standard = builtin("standard");
    let blocked = after(&Health::default(), &standard, 1, &answer(500), START).blocked(at(1));
    let told = after(&blocked, &standard, 1, &answer(200), at(2));
    assert_eq!((told.failing_since, told.unblocked(at(6 * DAY)).failing_since), (Some(START), None));
    assert_eq!(blocked.unblocked(at(3)).failing_since, Some(START), "without one they go on");
}

#[test]
fn d5_resume_sets_active_and_the_count_to_zero_and_lets_deliveries_pass() {
    let resumed = failed_public_api().resumed(at(60));
    let now = Some(at(60));
    let released = Health { released_at: now, released_by_person: true, ..Health::default() };
    assert_eq!(resumed, Health { changed_at: now, epoch: 1, ..released });
    assert_eq!(resumed.availability(at(60)), Availability::Open);
    let asked = Health { quiet_until: Some(at(90)), ..failed_public_api() };
    assert_eq!(asked.resumed(at(60)).availability(at(60)), Availability::Held(Some(at(90))));
}

#[test]
fn d5_a_resumed_endpoint_can_fail_again() {
    let again = after(&failed_public_api().resumed(at(60)), &builtin("public-api"), 6, &answer(500), at(61));
    assert_eq!((again.status, again.changed_at), (HealthStatus::Failed, Some(at(61))));
}

#[test]
fn a_delivery_that_used_up_its_time_counts_as_one_that_used_up_its_retries() {
    let mut spec = (*builtin("public-api")).clone();
    spec.limit.attempts = None;
    spec.limit.stop_after = Some(secs(4));
    let policy = Policy::new(spec).unwrap();
    let health = after(&Health::default(), &policy, 1, &answer(500), START);
    assert_eq!((health.status, health.failure_count), (HealthStatus::Failed, 0));
}

#[test]
fn quick_persistent_and_job_status_never_fail_an_endpoint() {
    for name in ["quick", "persistent", "job-status"] {
        let policy = builtin(name);
        let mut health = Health::default();
        for nth in 1..=200 {
            health = after(&health, &policy, nth, &answer(500), at(u64::from(nth) * DAY));
        }
        assert_eq!(health.status, HealthStatus::Active, "{name}");
    }
}

#[test]
fn standard_fails_the_endpoint_at_a_failure_5_days_after_the_first() {
    let standard = builtin("standard");
    let failing = after(&Health::default(), &standard, 1, &answer(500), START);
    let almost = after(&failing, &standard, 8, &answer(500), at(5 * DAY - 1));
    assert_eq!((almost.status, almost.failing_since), (HealthStatus::Active, Some(START)));
    let failed = after(&almost, &standard, 1, &answer(500), at(5 * DAY));
    assert_eq!((failed.status, failed.changed_at), (HealthStatus::Failed, Some(at(5 * DAY))));
}

#[test]
fn standard_restarts_its_5_days_after_one_success() {
    let standard = builtin("standard");
    let failing = after(&Health::default(), &standard, 1, &answer(500), START);
    let well = after(&failing, &standard, 1, &answer(204), at(4 * DAY));
    assert_eq!(well, Health::default());
    let failing = after(&well, &standard, 1, &answer(500), at(5 * DAY));
    assert_eq!((failing.status, failing.failing_since), (HealthStatus::Active, Some(at(5 * DAY))));
}

#[test]
fn standard_turns_the_endpoint_off_at_410_for_good() {
    let standard = builtin("standard");
    for before in [Health::default(), failed_standard()] {
        let gone = after(&before, &standard, 1, &answer(410), at(6 * DAY));
        assert_eq!((gone.status, gone.changed_at), (HealthStatus::Gone, Some(at(6 * DAY))));
        assert_eq!(gone.availability(Timestamp::MAX), Availability::Held(None));
        assert_eq!(gone.next_probe_at, None);
        for outcome in [answer(200), answer(410), answer(500)] {
            let late = after(&gone, &standard, 1, &outcome, at(7 * DAY));
            assert_eq!((late.status, late.changed_at), (HealthStatus::Gone, Some(at(6 * DAY))));
        }
        assert_eq!(gone.resumed(at(8 * DAY)).availability(at(8 * DAY)), Availability::Open);
    }
}

#[test]
fn standard_probes_a_failed_endpoint_with_gaps_from_15_min_doubling_to_12_h() {
    let standard = builtin("standard");
    let mut health = failed_standard();
    let mut gaps = vec![health.probe_gap];
    for _ in 0..7 {
        let due = health.next_probe_at.unwrap();
        let just_before = Timestamp::from_millis(due.millis() - 1);
        assert_eq!(health.availability(just_before), Availability::Held(Some(due)));
        assert_eq!(health.availability(due), Availability::Probe);
        health = after(&health, &standard, 1, &answer(500), due);
        assert_eq!(health.next_probe_at, Some(due + health.probe_gap));
        gaps.push(health.probe_gap);
    }
    assert_eq!(gaps, all_secs([15, 30, 60, 120, 240, 480, 720, 720].map(|minutes| minutes * 60)));
}

#[test]
fn standard_recovers_with_the_first_success() {
    let due = failed_standard().next_probe_at.unwrap();
    let recovered = after(&failed_standard(), &builtin("standard"), 3, &answer(200), due);
    assert_eq!(recovered, Health { changed_at: Some(due), released_at: Some(due), ..Health::default() });
}

#[test]
fn an_inconclusive_probe_is_followed_by_another() {
    let due = failed_standard().next_probe_at.unwrap();
    for kind in [FailureKind::Internal, FailureKind::TargetForbidden] {
        let health = after(&failed_standard(), &builtin("standard"), 1, &failure(kind), due);
        assert_eq!(health.next_probe_at, Some(due + secs(30 * 60)), "{kind:?}");
    }
}

#[test]
fn a_failure_in_flight_does_not_move_the_probe() {
    let failed = failed_standard();
    let late = after(&failed, &builtin("standard"), 1, &answer(500), at(5 * DAY + 10));
    assert_eq!((late.next_probe_at, late.probe_gap), (failed.next_probe_at, failed.probe_gap));
}

#[test]
fn an_endpoint_moved_to_a_policy_without_probes_waits_for_its_owner() {
    let due = failed_standard().next_probe_at.unwrap();
    let health = after(&failed_standard(), &builtin("quick"), 1, &answer(500), due);
    assert_eq!(health.availability(Timestamp::MAX), Availability::Held(None));
}

#[test]
fn a_retry_after_keeps_the_endpoint_quiet_for_as_long_as_the_receiver_asked() {
    let asks = answer_with(429, RetryAfter::Seconds(60));
    let health = after(&Health::default(), &builtin("standard"), 1, &asks, START);
    assert_eq!(health.availability(at(59)), Availability::Held(Some(at(60))));
    assert_eq!(health.availability(at(60)), Availability::Open);
}

#[test]
fn one_deliverys_long_backoff_does_not_keep_its_endpoint_quiet() {
    // After the 7th attempt this delivery waits for 10 h; the receiver asked for a minute only.
    let asks = answer_with(503, RetryAfter::Seconds(60));
    let health = after(&Health::default(), &builtin("standard"), 7, &asks, START);
    assert_eq!(health.availability(at(59)), Availability::Held(Some(at(60))));
    assert_eq!(health.availability(at(60)), Availability::Open);
}

#[test]
fn a_retry_after_is_heard_on_the_last_attempt_too() {
    let asks = answer_with(429, RetryAfter::Seconds(60));
    for (name, last) in [("quick", 6), ("standard", 8)] {
        let health = after(&Health::default(), &builtin(name), last, &asks, START);
        assert_eq!(health.availability(START), Availability::Held(Some(at(60))), "{name}");
    }
}

#[test]
fn a_quiet_time_is_bounded_and_outlasts_later_answers() {
    let standard = builtin("standard");
    let forever = answer_with(429, RetryAfter::Seconds(u64::MAX));
    let quiet = after(&Health::default(), &standard, 1, &forever, START);
    assert_eq!(quiet.quiet_until, Some(at(DAY)));
    for late in [answer(200), answer(500), answer_with(429, RetryAfter::Seconds(5))] {
        assert_eq!(after(&quiet, &standard, 1, &late, at(10)).quiet_until, Some(at(DAY)));
    }
    assert_eq!(after(&quiet, &standard, 1, &answer(200), at(DAY)), Health::default());
}

#[test]
fn a_probe_waits_for_the_end_of_a_quiet_time() {
    let quiet = Health { quiet_until: Some(at(6 * DAY)), ..failed_standard() };
    assert_eq!(quiet.availability(at(6 * DAY - 1)), Availability::Held(Some(at(6 * DAY))));
    assert_eq!(quiet.availability(at(6 * DAY)), Availability::Probe);
}

#[test]
fn policies_that_do_not_listen_to_retry_after_keep_no_quiet_time() {
    let asks = answer_with(429, RetryAfter::Seconds(60));
    for name in ["persistent", "job-status"] {
        assert_eq!(after(&Health::default(), &builtin(name), 1, &asks, START).quiet_until, None, "{name}");
    }
}

#[test]
fn a_quiet_time_from_before_the_clock_was_set_back_does_not_bind() {
    let standard = builtin("standard");
    let asks = |seconds| answer_with(429, RetryAfter::Seconds(seconds));
    let quiet = after(&Health::default(), &standard, 1, &asks(u64::MAX), at(3600));
    assert_eq!(quiet.availability(at(3600)), Availability::Held(Some(at(DAY + 3600))));
    assert_eq!(quiet.availability(START), Availability::Open, "an hour earlier");
    let asked_again = after(&quiet, &standard, 1, &asks(60), START);
    assert_eq!(asked_again.availability(START), Availability::Held(Some(at(60))), "a new wish counts");
    assert_eq!(after(&quiet, &standard, 1, &answer(200), START), Health::default());
}

#[test]
fn a_probe_planned_before_the_clock_was_set_back_goes_at_once_and_the_next_after_its_gap() {
    let failed = failed_standard();
    let day_before = at(4 * DAY);
    assert_eq!(failed.availability(day_before), Availability::Probe);
    let probed = after(&failed, &builtin("standard"), 1, &answer(500), day_before);
    let next = day_before + secs(30 * 60);
    assert_eq!(probed.availability(day_before), Availability::Held(Some(next)));
    assert_eq!(probed.availability(next), Availability::Probe);
}

#[test]
fn an_endpoint_waits_for_its_owner_where_no_probe_will_come() {
    let gone = after(&Health::default(), &builtin("standard"), 1, &answer(410), START);
    for (health, waits) in
        [(Health::default(), false), (failed_standard(), false), (failed_public_api(), true), (gone, true)]
    {
        assert_eq!(health.needs_resume(), waits, "{health:?}");
    }
}

#[test]
fn a_block_holds_until_the_owner_has_it_go_on() {
    let standard = builtin("standard");
    for health in [Health::default(), failed_standard()] {
        let blocked = health.blocked(at(6 * DAY));
        assert_eq!((blocked.status, blocked.changed_at), (HealthStatus::Blocked, Some(at(6 * DAY))));
        assert_eq!(blocked.availability(at(30 * DAY)), Availability::Held(None), "no probe goes out either");
        assert!(blocked.needs_resume());
        let told = after(&blocked, &standard, 1, &answer(200), at(7 * DAY));
        assert_eq!(told.status, HealthStatus::Blocked, "a success of another request does not lift it");
        for free in [blocked.unblocked(at(8 * DAY)), blocked.resumed(at(8 * DAY))] {
            assert_eq!(free.availability(at(8 * DAY)), Availability::Open);
            assert_eq!(free.changed_at, Some(at(8 * DAY)));
        }
    }
}

#[test]
fn an_endpoint_that_waits_for_its_owner_already_is_not_blocked_as_well() {
    let gone = after(&Health::default(), &builtin("standard"), 1, &answer(410), START);
    for health in [gone, failed_public_api()] {
        assert_eq!(health.blocked(at(1)), health);
        assert_eq!(health.unblocked(at(1)), health, "and another ordering does not resume it");
    }
}

#[test]
fn d4_the_condition_is_shown_in_the_words_of_the_document() {
    let failing = after(&Health::default(), &builtin("public-api"), 1, &answer(500), at(0));
    assert_eq!((failing.condition(false), failing.failure_count), (Condition::Degraded, 1));
    assert_eq!(failing.text(false), "Recent delivery failures (retrying)");
    let failed = failed_public_api();
    assert_eq!(failed.condition(false), Condition::Failed);
    assert_eq!(failed.text(false), "Webhook failed (requires manual intervention)");
    assert_eq!(failed_standard().text(false), "Webhook failed (waiting for a probe to succeed)");
    assert_eq!((failed.condition(true), failed.text(true)), (Condition::Disabled, "Turned off"));
    assert_eq!(
        (Health::default().condition(false), Health::default().text(false)),
        (Condition::Active, "Active")
    );
}

#[test]
fn a_delivery_is_held_from_its_due_time_or_from_when_the_endpoint_stopped() {
    let month = secs(30 * DAY);
    let off = Health::default().turned_off(at(100));
    assert_eq!((off.epoch, off.changed_at), (1, Some(at(100))));
    assert_eq!(off.hold_expires_at(true, at(7), month), Some(at(100) + month));
    assert_eq!(off.hold_expires_at(true, at(700), month), Some(at(700) + month));
    assert_eq!(off.hold_expires_at(false, at(7), month), None);
    assert!(failed_public_api().hold_expires_at(false, at(7), month).is_some());
}
