//! Leases in memory: owners, expiry and renewal. The clock is paused.

use aldaba_receiver::inbound::{Inspector, Recipe};
use aldaba_receiver::lease::{MemoryLease, MemoryLeases};
use aldaba_receiver::{Claim, Cleanup, CleanupReport, Event, Ledger, LedgerError, Receiver, Work};
use http::HeaderMap;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(30);
const NO_TIME: Duration = Duration::ZERO;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn event(id: &str) -> Event {
    Event::new(id, "payment.success", "{}", HeaderMap::new())
}

async fn claimed(leases: &MemoryLeases, id: &str) -> MemoryLease {
    match leases.claim(&event(id), NO_TIME).await.unwrap() {
        Claim::New(lease) => lease,
        other => panic!("it should be new: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_for_as_long_as_it_lives() {
    let leases = MemoryLeases::with_lease(LEASE);
    let lease = claimed(&leases, "a").await;
    tokio::time::sleep(LEASE * 10).await;
    assert!(matches!(leases.claim(&event("a"), NO_TIME).await.unwrap(), Claim::InProgress));
    assert!(lease.is_held());
    lease.complete().await.unwrap();
    assert!(matches!(leases.claim(&event("a"), NO_TIME).await.unwrap(), Claim::Duplicate));
    assert_eq!(leases.expired_leases(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_owner_cannot_complete_an_event_that_another_took() {
    let leases = MemoryLeases::with_lease(LEASE);
    let first = claimed(&leases, "a").await;
    first.stop_renewing();
    // A waiting claim gets the event when the lease expires, before the wait timeout.
    let second = match leases.claim(&event("a"), LEASE * 2).await.unwrap() {
        Claim::New(lease) => lease,
        other => panic!("it should have expired: {other:?}"),
    };
    assert_eq!(leases.expired_leases(), 1);
    assert!(!first.is_held() && second.is_held());
    assert!(matches!(first.complete().await, Err(LedgerError::Lost(_))));
    assert!(second.is_held(), "the drop of a lost lease releases what is somebody else's");
    assert!(!leases.is_marked("a"));
    second.complete().await.unwrap();
    assert!(leases.is_marked("a"));
}

#[tokio::test(start_paused = true)]
async fn a_stalled_owner_completes_an_event_that_nobody_took() {
    let leases = MemoryLeases::with_lease(LEASE);
    let lease = claimed(&leases, "a").await;
    lease.stop_renewing();
    tokio::time::sleep(LEASE * 2).await;
    lease.complete().await.unwrap();
    assert!(leases.is_marked("a"));
}

#[tokio::test(start_paused = true)]
async fn a_drop_wakes_waiting_claims_at_once() {
    let leases = MemoryLeases::with_lease(LEASE);
    let lease = claimed(&leases, "a").await;
    let waiting = tokio::spawn({
        let leases = leases.clone();
        async move { leases.claim(&event("a"), LEASE / 2).await.map(|claim| matches!(claim, Claim::New(_))) }
    });
    tokio::time::sleep(LEASE / 10).await;
    drop(lease);
    assert!(waiting.await.unwrap().unwrap());
    assert_eq!(leases.expired_leases(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_dropped_while_it_waits_leaves_nothing_claimed() {
    let leases = MemoryLeases::with_lease(LEASE);
    let lease = claimed(&leases, "a").await;
    assert!(tokio::time::timeout(LEASE, leases.claim(&event("a"), LEASE * 2)).await.is_err());
    lease.abandon().await;
    claimed(&leases, "a").await.complete().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn marks_are_cleaned_by_age_and_leases_never() {
    let leases = MemoryLeases::with_lease(LEASE);
    claimed(&leases, "old").await.complete().await.unwrap();
    let _held = claimed(&leases, "held").await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    claimed(&leases, "young").await.complete().await.unwrap();
    assert_eq!(leases.clean(Duration::from_secs(50)).await.unwrap(), 1);
    assert!(!leases.is_marked("old") && leases.is_marked("young"));
    assert!(matches!(leases.claim(&event("held"), NO_TIME).await.unwrap(), Claim::InProgress));
}

#[tokio::test(start_paused = true)]
async fn e6_by_default_marks_of_30_days_are_removed_daily_and_the_number_is_reported() {
    let leases = MemoryLeases::new();
    let inspector = Inspector::new(Recipe::unsigned(), []).unwrap();
    let receiver = Receiver::new(inspector, leases.clone());
    claimed(&leases, "old").await.complete().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (reports, mut reported) = tokio::sync::mpsc::unbounded_channel();
    let report = move |report: &CleanupReport| reports.send(*report.removed.as_ref().unwrap()).unwrap();
    let cleanup = Cleanup::of(&receiver).report(report).start();
    tokio::time::sleep(DAY * 29 + DAY / 2).await;
    claimed(&leases, "young").await.complete().await.unwrap();
    assert!(leases.is_marked("old"));
    tokio::time::sleep(DAY).await;
    assert!(!leases.is_marked("old") && leases.is_marked("young"));
    cleanup.stop().await;
    let mut days = Vec::new();
    while let Some(removed) = reported.recv().await {
        days.push(removed);
    }
    assert_eq!(days, [vec![0; 30], vec![1]].concat(), "one at the start, and one a day");
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_is_down_does_nothing() {
    let leases = MemoryLeases::with_lease(LEASE);
    let lease = claimed(&leases, "a").await;
    leases.set_down(true);
    assert!(matches!(leases.claim(&event("b"), NO_TIME).await, Err(LedgerError::Unavailable(_))));
    assert!(matches!(leases.clean(NO_TIME).await, Err(LedgerError::Unavailable(_))));
    assert!(matches!(lease.complete().await, Err(LedgerError::Unavailable(_))));
    assert!(!leases.is_marked("a"));
}
