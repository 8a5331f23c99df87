//! What becomes of events whose owners stand still, die, or lose their Redis. Owners are processes of their own, and
//! effects are lines in a file. `ALDABA_LEASE_TRIALS=n` runs each trial n times.

#![cfg(feature = "redis")]

mod owner;
mod sabotage;
#[path = "../leases/stores.rs"]
mod stores;
mod trial;

use owner::{Kind, Manner};
use sabotage::Sabotage;
use std::thread::sleep;
use std::time::{Duration, Instant};
use trial::{BEYOND, LIFE, Owner, Trial, rounds};

/// How many events are worked on at once.
const EVENTS: usize = 4;

const NO_TIME: Duration = Duration::ZERO;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Long enough to be hit in the middle.
const WORK: Duration = Duration::from_millis(150);

/// Where an owner is hit.
const POINTS: [&str; 2] = ["begun", "effect"];

const BOTH: [Kind; 2] = [Kind::Redis, Kind::KeyValue];

/// Each trial has its own server, and mostly waits.
fn side_by_side<C: Copy + Send>(cases: &[C], trial: impl Fn(C) + Sync) {
    std::thread::scope(|scope| {
        for case in cases {
            let (case, trial) = (*case, &trial);
            scope.spawn(move || trial(case));
        }
    });
}

/// Every ledger with every one of these.
fn both<C: Copy>(cases: &[C]) -> Vec<(Kind, C)> {
    BOTH.into_iter().flat_map(|ledger| cases.iter().map(move |case| (ledger, *case))).collect()
}

#[test]
fn the_owner_process_runs_the_requested_mode() {
    owner::run_if_told();
}

/// Two owners: the first has begun each event, or had its effect.
fn two_owners(trial: &mut Trial, name: &str, point: &str) -> (Owner, Owner, Vec<String>) {
    let (mut first, second) = (trial.owner(), trial.owner());
    let events = trial.events(name, EVENTS);
    for event in &events {
        first.take(event, WORK, WORK);
    }
    for event in &events {
        first.hears(&format!("{point} {event}"));
    }
    (first, second, events)
}

#[test]
fn an_owner_that_stood_still_too_long_has_lost_its_events_and_counts_them() {
    side_by_side(&both(&POINTS), |(ledger, point)| {
        let mut trial = Trial::set(ledger);
        for round in 0..rounds() {
            let (mut first, mut second, events) =
                two_owners(&mut trial, &format!("stood-still-{round}"), point);
            first.pause();
            for event in &events {
                second.take(event, NO_TIME, NO_TIME);
            }
            for event in &events {
                assert_eq!(second.end(event), "new");
            }
            first.resume();
            for event in &events {
                assert_eq!(first.end(event), "lost");
                assert_eq!(first.deliver(event), "duplicate");
            }
            let effects = trial.effects();
            assert!(events.iter().all(|event| effects[event] == 2), "{effects:?}");
            assert_eq!((first.expired(), second.expired()), (EVENTS, 0));
        }
        trial.report(&format!("{ledger:?}, owners that stood still at `{point}` while others came"));
    });
}

#[test]
fn an_owner_that_checks_its_lease_has_no_duplicate_effects() {
    let mut trial = Trial::set(Kind::Redis);
    for round in 0..rounds() {
        let (mut first, mut second) = (trial.owner(), trial.owner());
        let events = trial.events(&format!("careful-{round}"), EVENTS);
        for event in &events {
            first.take_in(event, BEYOND / 2, NO_TIME, Manner::Careful);
            first.hears(&format!("begun {event}"));
        }
        first.pause();
        for event in &events {
            assert_eq!(second.deliver(event), "new");
        }
        first.resume();
        for event in &events {
            assert_eq!(first.end(event), "failed");
        }
        assert_eq!((first.expired(), second.expired()), (EVENTS, 0));
    }
    assert!(trial.effects().values().all(|count| *count == 1), "{:?}", trial.effects());
}

#[test]
fn a_resumed_owner_completes_events_that_no_other_took() {
    side_by_side(&both(&POINTS), |(ledger, point)| {
        let mut trial = Trial::set(ledger);
        for round in 0..rounds() {
            let (mut first, mut second, events) = two_owners(&mut trial, &format!("nobody-{round}"), point);
            first.pause();
            // The lease expires meanwhile.
            sleep(BEYOND);
            first.resume();
            for event in &events {
                assert_eq!(first.end(event), "new");
                assert_eq!(second.deliver(event), "duplicate");
            }
            assert_eq!((trial.doubles(), second.expired()), (0, 0));
            let expired = first.expired();
            assert!(expired >= EVENTS, "{expired}");
        }
        trial.report(&format!("{ledger:?}, owners that stood still at `{point}` while nobody came"));
    });
}

/// How many effects there are when an owner was killed at this point: what it has done, and what another does for it.
#[test]
fn events_of_a_killed_owner_are_handled_after_the_lease() {
    let points = [("begun", "new", 1), ("effect", "new", 2), ("end", "duplicate", 1)];
    side_by_side(&both(&points), |(ledger, (point, end, effects))| {
        let mut trial = Trial::set(ledger);
        for round in 0..rounds() {
            let (first, mut second, events) = two_owners(&mut trial, &format!("killed-{round}"), point);
            first.kill();
            let since = now();
            for event in &events {
                second.take(event, NO_TIME, NO_TIME);
            }
            for event in &events {
                assert_eq!(second.until_accepted(event), end);
            }
            let took = now() - since;
            assert!(took < LIFE * 3, "{took:?}");
            let counted = trial.effects();
            assert!(events.iter().all(|event| counted[event] == effects), "{point}: {counted:?}");
            assert_eq!(second.expired(), 0);
        }
        trial.report(&format!("{ledger:?}, owners killed at `{point}`"));
    });
}

#[expect(clippy::disallowed_methods, reason = "a test of how long something takes")]
fn now() -> Instant {
    Instant::now()
}

/// Hits Redis while one owner works and another waits, shortly and for longer than a lease lives, and lets everything
/// come to an end.
fn redis_is_hit(what: &str, hit: impl Fn(&Trial, Duration) + Sync) {
    side_by_side(
        &both(&[("begun", false), ("begun", true), ("effect", false), ("effect", true)]),
        |(ledger, (point, beyond))| {
            let mut trial = Trial::set(ledger);
            let mut expired = 0;
            for round in 0..rounds() {
                let (mut first, mut second, events) = two_owners(&mut trial, &format!("hit-{round}"), point);
                for event in &events {
                    second.take(event, NO_TIME, NO_TIME);
                }
                hit(&trial, if beyond { BEYOND } else { millis(50 + round * 37 % 300) });
                for event in &events {
                    first.until_accepted(event);
                    second.until_accepted(event);
                    assert_eq!(first.deliver(event), "duplicate");
                }
                expired += first.expired() + second.expired();
                trial.account(expired);
            }
            let length = if beyond { "beyond a lease's life" } else { "for a moment" };
            trial
                .report(&format!("{ledger:?}, Redis {what} {length} at `{point}`; {expired} leases expired"));
        },
    );
}

#[test]
fn a_killed_and_restarted_redis_loses_nothing() {
    redis_is_hit("killed", |trial, time| {
        trial.redis.kill();
        sleep(time);
        trial.redis.restart();
    });
}

#[test]
fn a_redis_that_stands_still_loses_nothing() {
    redis_is_hit("paused", |trial, time| {
        trial.redis.pause();
        sleep(time);
        trial.redis.resume();
    });
}

#[test]
fn connections_that_are_cut_again_and_again_lose_nothing_and_double_nothing() {
    let mut trial = Trial::set_with(Kind::Redis, Duration::from_secs(30), None);
    let mut redis = redis::Client::open(trial.redis.url()).unwrap().get_connection().unwrap();
    let (mut first, mut second) = (trial.owner(), trial.owner());
    for round in 0..rounds() {
        let events = trial.events(&format!("cut-{round}"), 40);
        for event in &events {
            first.take(event, millis(20), millis(20));
            second.take(event, millis(20), millis(20));
        }
        for _ in 0..20 {
            redis::cmd("CLIENT").arg(&["KILL", "TYPE", "normal"]).exec(&mut redis).unwrap();
            // The pace of the faults.
            sleep(millis(7));
        }
        for event in &events {
            first.until_accepted(event);
            second.until_accepted(event);
        }
    }
    trial.account(0);
    assert_eq!(first.expired() + second.expired(), 0);
    trial.report("Redis, connections cut");
}

/// How many copies of each event there are, among how many owners.
const COPIES: usize = 64;
const OWNERS: usize = 4;

/// Effects of each of a few events of which all copies come at once.
fn copies_at_once(trial: &mut Trial, name: &str) -> Vec<usize> {
    let mut owners: Vec<_> = (0..OWNERS).map(|_| trial.owner()).collect();
    let events = trial.events(name, 10);
    for event in &events {
        for copy in 0..COPIES {
            owners[copy % OWNERS].take(event, millis(5), NO_TIME);
        }
        let mut new = 0;
        for copy in 0..COPIES {
            new += usize::from(owners[copy % OWNERS].until_accepted(event) == "new");
        }
        assert!(new >= 1);
    }
    let effects = trial.effects();
    let expired: usize = owners.iter_mut().map(Owner::expired).sum();
    assert!(expired == 0 || trial.is_sabotaged(), "{expired} leases have expired, and nothing failed");
    events.iter().map(|event| effects[event]).collect()
}

#[test]
fn of_64_copies_at_once_one_has_its_effect_when_nothing_fails() {
    for ledger in BOTH {
        let mut trial = Trial::set_with(ledger, Duration::from_secs(30), None);
        for round in 0..rounds() {
            let effects = copies_at_once(&mut trial, &format!("copies-{round}"));
            assert!(effects.iter().all(|count| *count == 1), "{effects:?}");
        }
        trial.report(&format!("{ledger:?}, {COPIES} copies at once"));
    }
}

/// Effects of an event whose handler works for longer than a lease lives, while a copy waits.
fn slow_handler(trial: &mut Trial, name: &str) -> usize {
    let (mut first, mut second) = (trial.owner(), trial.owner());
    let event = trial.events(name, 1).remove(0);
    first.take(&event, BEYOND, BEYOND);
    first.hears(&format!("begun {event}"));
    second.take(&event, NO_TIME, NO_TIME);
    first.until_accepted(&event);
    second.until_accepted(&event);
    trial.effects()[&event]
}

#[test]
fn a_handler_may_work_for_longer_than_a_lease_lives() {
    side_by_side(&BOTH, |ledger| {
        let mut trial = Trial::set(ledger);
        for round in 0..rounds() {
            assert_eq!(slow_handler(&mut trial, &format!("slow-{round}")), 1);
        }
    });
}

/// Effects of an event that its first owner fails at when its lease is over and the next one is at it, while a copy waits.
fn late_failure(trial: &mut Trial, name: &str) -> usize {
    let (mut first, mut second, mut third) = (trial.owner(), trial.owner(), trial.owner());
    let event = trial.events(name, 1).remove(0);
    first.take_in(&event, WORK, NO_TIME, Manner::Failing);
    first.hears(&format!("begun {event}"));
    first.pause();
    second.take(&event, NO_TIME, LIFE);
    second.hears(&format!("effect {event}"));
    third.take(&event, NO_TIME, NO_TIME);
    first.resume();
    assert_eq!(first.end(&event), "failed");
    second.until_accepted(&event);
    third.until_accepted(&event);
    trial.effects()[&event]
}

#[test]
fn a_former_owner_that_fails_takes_nothing_from_the_next_one() {
    side_by_side(&BOTH, |ledger| {
        let mut trial = Trial::set(ledger);
        for round in 0..rounds() {
            assert_eq!(late_failure(&mut trial, &format!("late-failure-{round}")), 1);
        }
    });
}

fn sabotaged(life: Duration, sabotage: Sabotage) -> Trial {
    Trial::set_with(Kind::Redis, life, Some(sabotage))
}

#[test]
fn a_lock_that_is_deleted_without_looking_is_caught() {
    assert!(late_failure(&mut sabotaged(LIFE, Sabotage::PlainDelete), "planted") > 1);
}

#[test]
fn a_lease_that_is_not_renewed_is_caught() {
    assert!(slow_handler(&mut sabotaged(LIFE, Sabotage::NoRenewal), "planted") > 1);
}

#[test]
fn a_check_before_the_lock_is_detected() {
    let mut trial = sabotaged(Duration::from_secs(30), Sabotage::CheckThenSet);
    assert!(copies_at_once(&mut trial, "planted").iter().any(|count| *count > 1));
}
