use super::*;
use crate::{SteppedClock, SystemClock};
use aldaba_delivery::policy::{Overrides, builtin};
use aldaba_delivery::{Chance, Decision, Delivery, FailureKind, Health, HealthStatus, Ordering, Outcome};

const HOUR_MILLIS: i64 = 3_600_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The machine's clock, and the one that the engine makes of it.
fn stepped() -> (Arc<SteppedClock>, ClockTrust, TrustedClock) {
    let machine = Arc::new(SteppedClock::new(Arc::new(SystemClock::new()), 0));
    let trust = ClockTrust::starting(machine.clone(), None, None, DAY);
    (machine.clone(), trust.clone(), TrustedClock(trust, machine))
}

#[test]
fn nothing_ends_by_time_while_sending_is_paused_and_the_clock_stays_trusted() {
    let (_, trust, _) = stepped();
    assert!(trust.may_end_by_time());
    trust.pause(true);
    assert!(!trust.may_end_by_time() && trust.is_trusted());
    trust.clone().pause(false);
    assert!(trust.may_end_by_time());
}

#[test]
fn a_leap_while_it_runs_is_noticed_by_the_next_question() {
    for hours in [1, -1, 23] {
        let (machine, trust, _) = stepped();
        assert!(trust.may_end_by_time());
        machine.set_offset(hours * HOUR_MILLIS);
        assert!(trust.may_end_by_time(), "{hours} h may be");
        machine.set_offset(0);
        assert!(trust.may_end_by_time());
    }
    for hours in [25, 400 * 24, 20 * 365 * 24, -2, -23, -25, -400 * 24] {
        let (machine, trust, clock) = stepped();
        let start = clock.now();
        machine.set_offset(hours * HOUR_MILLIS);
        assert!(!trust.may_end_by_time(), "{hours} h");
        assert!(trust.believed(clock.now()).since(start) < DAY);
        machine.set_offset(0);
        assert!(trust.may_end_by_time(), "mended");
    }
}

#[test]
fn a_clock_that_was_ahead_at_the_start_is_followed_when_it_is_corrected() {
    for hours in [2, 20, 24] {
        let (machine, trust, clock) = stepped();
        let (start, record) = (clock.now(), trust.look());
        machine.set_offset(hours * HOUR_MILLIS);
        let trust = ClockTrust::starting(machine.clone(), record, None, DAY);
        let clock = TrustedClock(trust.clone(), machine.clone());
        assert!(clock.now().since(start) > DAY / 24);
        machine.set_offset(0);
        assert!(clock.now().since(start) < DAY / 24, "{hours} h");
        assert!(trust.state().unwrap().trusted, "{hours} h: a right clock");
        let next = ClockTrust::starting(machine, trust.look(), None, DAY);
        assert!(next.may_end_by_time(), "{hours} h: nor is the next start distrusted");
    }
}

#[test]
fn an_endpoint_is_not_failed_by_the_days_that_a_clock_has_leapt() {
    let (machine, trust, _) = stepped();
    let status = || {
        let now = machine.now();
        let failing = Health { failing_since: Some(now.before(DAY * 6)), ..Health::default() };
        let (delivery, outcome) =
            (Delivery { attempts: 1, clock_start: now }, Outcome::failed(FailureKind::Timeout, ""));
        let policy = builtin("standard", &Overrides::default()).unwrap().unwrap();
        let trusted = trust.may_end_by_time();
        let decision = Decision::of(&policy, &delivery, &outcome, trusted, now, Chance(0));
        decision.health(&failing, Ordering::None, now).status
    };
    assert_eq!(status(), HealthStatus::Failed);
    machine.set_offset(25 * HOUR_MILLIS);
    assert_eq!(status(), HealthStatus::Active);
}

#[test]
fn the_engine_never_goes_by_a_clock_that_is_behind_a_trusted_one() {
    let (machine, trust, clock) = stepped();
    let start = clock.now();
    for hours in [-2, -25, -400 * 24] {
        machine.set_offset(hours * HOUR_MILLIS);
        let now = clock.now();
        assert!(now >= start && now.since(start) < DAY, "{hours}: time goes on as if there had been no step");
        assert!(clock.wall() < start, "what is signed is what the machine shows");
    }
    machine.set_offset(400 * 24 * HOUR_MILLIS);
    assert!(clock.now().since(start) > 399 * DAY, "a server may have been off for so long");
    machine.set_offset(0);
    assert!(clock.now().since(start) < DAY, "mended");
    // It starts in the past, too.
    let record = trust.look();
    machine.set_offset(-400 * 24 * HOUR_MILLIS);
    let trust = ClockTrust::starting(machine.clone(), record, None, DAY);
    assert!(TrustedClock(trust, machine).now() >= start);
}

#[test]
fn the_operator_can_trust_a_clock_that_has_leapt() {
    let (machine, trust, clock) = stepped();
    for hours in [400 * 24, -400 * 24] {
        machine.set_offset(hours * HOUR_MILLIS);
        let state = trust.state().unwrap();
        assert!(!state.trusted && state.trusted_in == DAY, "{state:?}");
        trust.trust();
        assert!(trust.may_end_by_time() && trust.state().unwrap().trusted);
        assert_eq!(clock.now().since(clock.wall()).as_secs(), 0);
    }
    machine.set_offset(0);
    assert!(!trust.may_end_by_time(), "the reference has moved with it");
}

#[test]
fn a_store_without_a_record_is_compared_with_its_newest_row() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let start = |newest: Option<Timestamp>| ClockTrust::starting(clock.clone(), None, newest, DAY);
    let now = clock.now();
    assert!(start(None).may_end_by_time(), "there is nothing to lose");
    assert!(start(Some(now.before(DAY / 2))).may_end_by_time());
    assert!(!start(Some(now.before(400 * DAY))).may_end_by_time());
    assert!(!start(Some(now + 2 * DAY)).may_end_by_time());
}
