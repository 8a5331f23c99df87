//! Handlers that do not succeed.

use super::client::Sent;
use super::polling::wait_for;
use super::scene::{Act, Scene};
use super::{Stage, left_behind};
use aldaba_receiver::{FailedEvent, Ledger, OnFailure};
use http::StatusCode;
use serde_json::json;
use std::time::Duration;

pub(crate) async fn e5_a_failed_event_is_not_marked_and_its_retry_is_processed<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_fails_once");
    scene.next([Act::Refuse]);
    scene.send(&event).await.is_refused(500);
    scene.left(&event, 0, 0).await;
    scene.send(&event).await.is_new();
    scene.send(&event).await.is_duplicate();
    scene.left(&event, 1, 1).await;
}

pub(crate) async fn e5_what_a_failed_handler_did_is_undone_where_there_is_a_transaction<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_half_done");
    scene.next([Act::WorkThenFail]);
    scene.send(&event).await.is_refused(500);
    scene.left(&event, left_behind::<S>(), 0).await;
    scene.send(&event).await.is_new();
    scene.left(&event, left_behind::<S>() + 1, 1).await;
}

pub(crate) async fn e5_a_failure_is_acknowledged_where_that_was_chosen<S: Stage>(stage: S) {
    let scene = Scene::set_with(stage, |builder| builder.on_failure(OnFailure::Acknowledge)).await;
    let event = Sent::new("evt_acknowledged");
    scene.next([Act::FailTelling("no such order")]);
    scene.send(&event).await.is(200, &json!({"received": true, "error": "no such order"}));
    // It was not marked: a manual resend is processed.
    scene.left(&event, 0, 0).await;
    scene.send(&event).await.is_new();
    scene.left(&event, 1, 1).await;
}

/// The stored failure of an event, once it has this error. The answer does not wait for the note.
async fn noted<S: Stage>(scene: &Scene<S>, event: &Sent, error: &str) -> FailedEvent {
    wait_for(&format!("the note of the failure `{error}`"), async || {
        let note = scene.receiver.ledger().failure(&event.id).await.unwrap();
        note.filter(|note| note.error.contains(error))
    })
    .await
}

pub(crate) async fn e10_what_a_handler_failed_with_is_noted_and_the_note_is_no_mark<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_noted");
    let failure = async || scene.receiver.ledger().failure(&event.id).await.unwrap();
    assert_eq!(failure().await, None);
    scene.next([Act::FailTelling("no such order"), Act::WorkThenPanic, Act::FailTelling("the last one")]);
    for error in ["no such order", "panicked", "the last one"] {
        scene.send(&event).await.is_refused(500);
        let note = noted(&scene, &event, error).await;
        assert!(note.failed_at.len() == 24 && note.failed_at.ends_with('Z'), "{note:?}");
        assert_eq!(note.event_type, "payment.success");
        assert_eq!(scene.stage.marks(&event.id).await, 0, "it is no mark");
    }
    scene.send(&event).await.is_new();
    assert_eq!(failure().await, None, "it was handled");
    scene.send(&event).await.is_duplicate();
    // One that is acknowledged does not come again by itself: the note is all that is left of it.
    let other = Sent::new("evt_long");
    let long: &'static str = "é".repeat(FailedEvent::LONGEST_ERROR).leak();
    scene.next([Act::FailTelling(long)]);
    scene.send(&other).await.is_refused(500);
    let note = noted(&scene, &other, "é").await;
    assert_eq!(note.error.len(), FailedEvent::LONGEST_ERROR);
}

pub(crate) async fn e10_notes_of_failures_are_cleaned_like_marks<S: Stage>(stage: S) {
    if !S::CLEANS {
        return;
    }
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_cleaned");
    scene.next([Act::Refuse]);
    scene.send(&event).await.is_refused(500);
    noted(&scene, &event, "").await;
    assert_eq!(scene.receiver.clean(Duration::from_secs(60)).await.unwrap(), 0);
    noted(&scene, &event, "").await;
    // The note grows older than zero; databases have their own clock.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(scene.receiver.clean(Duration::ZERO).await.unwrap(), 0, "it was no mark");
    assert_eq!(scene.receiver.ledger().failure(&event.id).await.unwrap(), None);
}

pub(crate) async fn a_panic_is_a_failure_like_any_other<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_panics");
    scene.next([Act::WorkThenPanic]);
    scene.send(&event).await.is_refused(500);
    scene.left(&event, left_behind::<S>(), 0).await;
    scene.send(&event).await.is_new();
    scene.left(&event, left_behind::<S>() + 1, 1).await;
}

pub(crate) async fn a_handler_that_takes_too_long_is_ended_and_its_work_abandoned<S: Stage>(stage: S) {
    let scene = Scene::set_with(stage, |builder| builder.handler_time(Duration::from_millis(300))).await;
    let event = Sent::new("evt_hangs");
    scene.next([Act::WorkThenHang]);
    scene.send(&event).await.is_refused(500);
    scene.ends_reach(1).await;
    scene.left(&event, left_behind::<S>(), 0).await;
    scene.send(&event).await.is_new();
}

pub(crate) async fn an_answer_that_is_no_success_is_a_failure_that_is_asked_for_again<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_answers");
    for (answered, told) in
        [(302, 500), (400, 500), (404, 500), (410, 500), (429, 429), (500, 500), (503, 503)]
    {
        scene.next([Act::WorkThenAnswer(StatusCode::from_u16(answered).unwrap())]);
        let reply = scene.send(&event).await;
        reply.is_refused(told);
        assert_eq!(reply.header("retry-after"), Some("77"));
    }
    scene.left(&event, left_behind::<S>() * 7, 0).await;
    scene.next([Act::WorkThenAnswer(StatusCode::ACCEPTED)]);
    scene.send(&event).await.is_new();
    scene.left(&event, left_behind::<S>() * 7 + 1, 1).await;
}

pub(crate) async fn what_an_error_says_is_told_only_if_it_is_meant_to_be<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    scene.next([Act::Refuse, Act::FailTelling("no such \"order\"")]);
    let untold = json!({"received": false, "error": "the event could not be processed"});
    scene.send(&Sent::new("evt_quiet")).await.is(500, &untold);
    let told = json!({"received": false, "error": "no such \"order\""});
    scene.send(&Sent::new("evt_telling")).await.is(500, &told);
}

pub(crate) async fn a_handler_that_keeps_its_work_has_failed<S: Stage>(stage: S) {
    let scene = Scene::set_with(stage, |builder| builder.wait_timeout(Duration::from_millis(200))).await;
    let event = Sent::new("evt_kept");
    scene.next([Act::WorkThenKeep]);
    scene.send(&event).await.is_refused(500);
    scene.left(&event, left_behind::<S>(), 0).await;
    // The task with the work may still be running.
    let reply = scene.send(&event).await;
    assert_eq!(reply.status, 409, "{reply:?}");
}
