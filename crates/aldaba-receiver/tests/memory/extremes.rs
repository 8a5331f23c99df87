//! Extreme settings and callers, which must do no harm.

use crate::suite::polling::still_waits;
use aldaba_receiver::inbound::{Inspector, Place, Recipe};
use aldaba_receiver::lease::MemoryLeases;
use aldaba_receiver::{Claim, Cleanup, Event, Ledger, Opening, Receiver, Work};
use bytes::Bytes;
use http::{HeaderMap, Method};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

fn inspector() -> Inspector {
    let recipe = Recipe::unsigned().with_id(Place::parse("header:webhook-id").unwrap());
    Inspector::new(recipe, []).unwrap()
}

fn event(body: &'static str) -> Event {
    Event::new("a", "payment.success", body, HeaderMap::new())
}

#[tokio::test]
async fn an_endless_wait_timeout_is_accepted() {
    let leases = MemoryLeases::new();
    let receiver = Receiver::builder(inspector(), leases.clone()).wait_timeout(Duration::MAX).build();
    let headers: HeaderMap = [("webhook-id", "a")]
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .into_iter()
        .collect();
    let open = || receiver.open(&Method::POST, &headers, Bytes::from_static(b"{}"));
    let Opening::Begun(begun) = open().await else { panic!("it is new") };
    let waiting = tokio::spawn({
        let leases = leases.clone();
        async move { matches!(leases.claim(&event("{}"), Duration::MAX).await, Ok(Claim::Duplicate)) }
    });
    still_waits(&waiting).await;
    begun.end(Ok(())).await;
    assert!(waiting.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_has_expired_keeps_no_other_body_away() {
    let leases = MemoryLeases::with_lease(Duration::from_secs(30));
    let Ok(Claim::New(lost)) = leases.claim(&event("{}"), Duration::ZERO).await else { panic!("it is new") };
    lost.stop_renewing();
    assert!(matches!(leases.claim(&event("[]"), Duration::ZERO).await, Ok(Claim::OtherBody)));
    tokio::time::sleep(Duration::from_secs(31)).await;
    let Ok(Claim::New(next)) = leases.claim(&event("[]"), Duration::ZERO).await else {
        panic!("it has expired")
    };
    next.complete().await.unwrap();
    assert_eq!(leases.expired_leases(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_continues_after_a_panic_in_its_callback() {
    let receiver = Receiver::new(inspector(), MemoryLeases::new());
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let report = move |_: &_| {
        counted.fetch_add(1, Relaxed);
        panic!("a panic that the test has ordered");
    };
    let _cleanup = Cleanup::of(&receiver).every(Duration::from_secs(60)).report(report).start();
    tokio::time::sleep(Duration::from_secs(150)).await;
    assert_eq!(calls.load(Relaxed), 3);
}

#[tokio::test]
async fn a_cleanup_with_a_zero_period_pauses() {
    let receiver = Receiver::new(inspector(), MemoryLeases::new());
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let report = move |_: &_| {
        counted.fetch_add(1, Relaxed);
    };
    let _cleanup = Cleanup::of(&receiver).every(Duration::ZERO).report(report).start();
    // The time in which the calls are counted.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let calls = calls.load(Relaxed);
    assert!(calls <= 100, "{calls} in 300 ms");
}

#[tokio::test]
async fn a_lease_without_end_is_a_long_one() {
    let leases = MemoryLeases::with_lease(Duration::MAX);
    let Ok(Claim::New(lease)) = leases.claim(&event("{}"), Duration::ZERO).await else { panic!("it is new") };
    lease.complete().await.unwrap();
    assert!(leases.is_marked("a"));
}
