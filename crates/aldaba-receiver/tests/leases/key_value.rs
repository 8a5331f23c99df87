//! Leases in a key-value store: records, owners, expiry. The clock is paused.

use crate::scene::*;
use crate::stores::{Distant, Edge, Shelf};
use aldaba_receiver::lease::{
    Atomicity, KeyValueLeases, KeyValueOptions, KeyValueStore, LeaseTimes, NotAtomic, OwnedLease,
    PutIfAbsentOnly,
};
use aldaba_receiver::{Claim, Guarantee, Ledger, LedgerError, Work};
use serde_json::Value;
use std::time::Duration;

const KEY: &str = "event:a";
const LIFE: Duration = LeaseTimes::LIFE;

fn set() -> (Shelf, KeyValueLeases<Shelf>) {
    let shelf = Shelf::default();
    let leases = KeyValueLeases::new(shelf.clone(), KeyValueOptions::default()).unwrap();
    (shelf, leases)
}

fn record(shelf: &Shelf) -> Value {
    serde_json::from_str(&shelf.peek(KEY).expect("there is a record")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn e3_records_and_their_lives_are_those_of_the_document() {
    let (shelf, leases) = set();
    let lease = claimed(&leases, "a").await;
    let processing = record(&shelf);
    assert_eq!(
        (&processing["status"], &processing["type"]),
        (&"processing".into(), &"payment.success".into())
    );
    assert!(processing["receivedAt"].as_str().unwrap().ends_with('Z'));
    assert_eq!(shelf.life(KEY), LIFE);

    lease.complete().await.unwrap();
    let processed = record(&shelf);
    assert_eq!(
        (&processed["status"], &processed["receivedAt"]),
        (&"processed".into(), &processing["receivedAt"])
    );
    assert!(processed["processedAt"].as_str().unwrap().ends_with('Z'));
    assert_eq!(shelf.life(KEY), LeaseTimes::MARKS);
    assert_eq!(leases.clean(NO_TIME).await.unwrap(), 0);
    assert_eq!(KeyValueLeases::<Shelf>::GUARANTEE, Guarantee::AtLeastOnce);

    tokio::time::sleep(LeaseTimes::MARKS).await;
    assert_eq!(verdict(&leases, &event("a")).await, Verdict::New);
}

#[tokio::test(start_paused = true)]
async fn a_failed_event_keeps_its_error_and_can_be_claimed_again() {
    let (shelf, leases) = set();
    claimed(&leases, "a").await.abandon().await;
    assert_eq!(record(&shelf)["status"], "failed");
    assert!(record(&shelf)["failedAt"].as_str().unwrap().ends_with('Z'));
    assert_eq!(shelf.life(KEY), LeaseTimes::MARKS);
    claimed(&leases, "a").await.complete().await.unwrap();
    assert_eq!(record(&shelf)["status"], "processed");
    assert_eq!(leases.expired_leases(), 0);
}

#[tokio::test(start_paused = true)]
async fn records_of_other_programs_are_respected() {
    let (shelf, leases) = set();
    for (record, expected) in [
        (r#"{"type":"payment.success","processedAt":"2025-01-15T10:30:00.000Z"}"#, Verdict::Duplicate),
        (
            r#"{"type":"payment.success","status":"processing","receivedAt":"2025-01-15"}"#,
            Verdict::InProgress,
        ),
        (r#"{"status":"processed","digest":"unknown"}"#, Verdict::Duplicate),
        (r#"{"status":"failed","error":"no stock","failedAt":"2025-01-15"}"#, Verdict::New),
        (r#"{"status":"paused"}"#, Verdict::Duplicate),
        (r#"{"status":null}"#, Verdict::Duplicate),
        ("1", Verdict::Duplicate),
        ("", Verdict::Duplicate),
        ("[]", Verdict::Duplicate),
    ] {
        shelf.overwrite(KEY, record, LIFE);
        assert_eq!(verdict(&leases, &event("a")).await, expected, "{record}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_known_id_with_another_body_is_recognized() {
    let (_, leases) = set();
    let other = event_of("a", "[]");
    let lease = claimed(&leases, "a").await;
    assert_eq!(verdict(&leases, &other).await, Verdict::OtherBody);
    lease.complete().await.unwrap();
    assert_eq!(verdict(&leases, &other).await, Verdict::OtherBody);
    assert_eq!(verdict(&leases, &event("a")).await, Verdict::Duplicate);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_its_event_is_handled() {
    let (_, leases) = set();
    let lease = claimed(&leases, "a").await;
    assert!(matches!(leases.claim(&event("a"), LIFE * 10).await.unwrap(), Claim::InProgress));
    assert!(!lease.is_lost());
    lease.complete().await.unwrap();
    assert_eq!(leases.expired_leases(), 0);
}

/// The record is another's, as after an expiry that its first owner has slept through.
async fn taken_over(shelf: &Shelf, leases: &KeyValueLeases<Shelf>) -> [OwnedLease; 2] {
    let first = claimed(leases, "a").await;
    shelf.remove(KEY);
    [first, claimed(leases, "a").await]
}

#[tokio::test(start_paused = true)]
async fn a_former_owner_changes_nothing_of_the_next_one() {
    let (shelf, leases) = set();
    let [first, second] = taken_over(&shelf, &leases).await;
    let before = record(&shelf);
    assert!(matches!(first.complete().await, Err(LedgerError::Lost(_))));
    assert_eq!(record(&shelf), before);
    assert_eq!(leases.expired_leases(), 1);
    second.complete().await.unwrap();

    shelf.remove(KEY);
    let [first, second] = taken_over(&shelf, &leases).await;
    let before = record(&shelf);
    first.abandon().await;
    assert_eq!(record(&shelf), before);
    second.complete().await.unwrap();
    assert_eq!(leases.expired_leases(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_has_taken_is_known_to_be_lost_at_its_next_renewal() {
    let (shelf, leases) = set();
    let [first, second] = taken_over(&shelf, &leases).await;
    tokio::time::timeout(LIFE / 2, first.lost()).await.unwrap();
    assert!(first.is_lost() && !second.is_lost());
    assert_eq!(leases.expired_leases(), 1);
    drop(first);
    tokio::time::sleep(LIFE).await;
    assert_eq!(leases.expired_leases(), 1, "it is counted once");
    second.complete().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_expired_lease_that_is_free_is_completed_and_counted() {
    let (shelf, leases) = set();
    let lease = claimed(&leases, "a").await;
    shelf.remove(KEY);
    lease.complete().await.unwrap();
    assert_eq!(record(&shelf)["status"], "processed");
    assert_eq!(leases.expired_leases(), 1);
}

/// Other programs take any record for a mark.
#[tokio::test(start_paused = true)]
async fn an_owner_that_fails_after_its_lease_leaves_no_record() {
    let (shelf, leases) = set();
    let lease = claimed(&leases, "a").await;
    shelf.remove(KEY);
    lease.abandon().await;
    assert_eq!(shelf.peek(KEY), None);
    assert_eq!(leases.expired_leases(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_under_way_takes_nothing_back_that_was_given_away() {
    let store = Distant::default();
    let leases = KeyValueLeases::new(store.clone(), KeyValueOptions::default()).unwrap();
    let lease = claimed(&leases, "a").await;
    store.shelf.remove(KEY);
    store.set_delay(Duration::from_millis(100));
    // The renewal has found nothing there, and is just taking it again.
    tokio::time::sleep(LIFE / 3 + Duration::from_millis(250)).await;
    store.set_delay(Duration::ZERO);
    lease.abandon().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(record(&store.shelf)["status"], "failed");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_owner_failed_with_is_completed_and_counted() {
    let (shelf, leases) = set();
    let [first, second] = taken_over(&shelf, &leases).await;
    second.abandon().await;
    assert_eq!(record(&shelf)["status"], "failed");
    first.complete().await.unwrap();
    assert_eq!(record(&shelf)["status"], "processed");
    assert_eq!(leases.expired_leases(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_is_not_available_and_what_was_done_is_marked_later() {
    let (shelf, leases) = set();
    let lease = claimed(&leases, "a").await;
    shelf.set_down(true);
    assert_eq!(verdict(&leases, &event("b")).await, Verdict::Unavailable);
    let completing = tokio::spawn(lease.complete());
    tokio::time::sleep(LIFE / 2).await;
    shelf.set_down(false);
    completing.await.unwrap().unwrap();
    assert_eq!(record(&shelf)["status"], "processed");
    assert_eq!(leases.expired_leases(), 0);
}

#[tokio::test(start_paused = true)]
async fn marking_is_given_up_after_a_lease_life_and_counted() {
    let (shelf, leases) = set();
    let lease = claimed(&leases, "a").await;
    shelf.set_down(true);
    assert!(matches!(lease.complete().await, Err(LedgerError::Unavailable(_))));
    assert_eq!(leases.expired_leases(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_store_panics_while_it_is_marked_is_counted() {
    let (shelf, leases) = set();
    let lease = claimed(&leases, "a").await;
    shelf.break_down();
    assert!(matches!(lease.complete().await, Err(LedgerError::Unavailable(_))));
    assert_eq!(leases.expired_leases(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_operation_with_a_lost_answer_is_recognized() {
    let (shelf, leases) = set();
    shelf.lose_answers(1);
    // The claim does not know whether it was granted, and releases it.
    assert_eq!(verdict(&leases, &event("a")).await, Verdict::Unavailable);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(record(&shelf)["status"], "failed");
    let lease = claimed(&leases, "a").await;
    shelf.lose_answers(2);
    tokio::time::sleep(LIFE * 2).await;
    assert!(!lease.is_lost());
    shelf.lose_answers(2);
    lease.complete().await.unwrap();
    assert_eq!(record(&shelf)["status"], "processed");
    assert_eq!(leases.expired_leases(), 0);
}

/// How many of ten copies that come together are handled.
async fn handled_of_ten<S: KeyValueStore>(store: S) -> usize {
    let leases = KeyValueLeases::new(store, KeyValueOptions::default()).unwrap();
    let copies = (0..10).map(|_| {
        let leases = leases.clone();
        tokio::spawn(async move {
            match leases.claim(&event("a"), LIFE).await.unwrap() {
                Claim::New(lease) => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    // Of several owners one completes what the others then have lost.
                    let _ = lease.complete().await;
                    1
                }
                _ => 0,
            }
        })
    });
    let mut handled = 0;
    for copy in copies.collect::<Vec<_>>() {
        handled += copy.await.unwrap();
    }
    handled
}

#[tokio::test(start_paused = true)]
async fn e3_how_far_a_store_can_be_trusted_is_said_and_true() {
    let edge = || {
        let edge = Edge::default();
        edge.0.set_gap(Duration::from_millis(50));
        edge
    };
    assert_eq!(KeyValueLeases::<Shelf>::ATOMICITY, Atomicity::CompareAndSwap);
    assert_eq!(handled_of_ten(Shelf::default()).await, 1);
    assert_eq!(KeyValueLeases::<PutIfAbsentOnly<Edge>>::ATOMICITY, Atomicity::PutIfAbsent);
    assert_eq!(handled_of_ten(PutIfAbsentOnly(edge())).await, 1);
    assert_eq!(KeyValueLeases::<NotAtomic<Edge>>::ATOMICITY, Atomicity::None);
    assert!(handled_of_ten(NotAtomic(edge())).await > 1, "it is better than it says");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_not_atomic_recognizes_duplicates() {
    let leases = KeyValueLeases::new(NotAtomic(Edge::default()), KeyValueOptions::default()).unwrap();
    claimed(&leases, "a").await.complete().await.unwrap();
    for _ in 0..3 {
        assert_eq!(verdict(&leases, &event("a")).await, Verdict::Duplicate);
    }
    claimed(&leases, "b").await.abandon().await;
    claimed(&leases, "b").await.complete().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_not_waited_for() {
    let edge = Edge::default();
    edge.0.set_gap(Duration::from_secs(3600));
    let leases = KeyValueLeases::new(NotAtomic(edge), KeyValueOptions::default()).unwrap();
    let claim = tokio::time::timeout(LeaseTimes::ANSWER * 2, leases.claim(&event("a"), LIFE)).await.unwrap();
    assert!(claim.unwrap_err().to_string().contains("did not answer within 2s"));
}
