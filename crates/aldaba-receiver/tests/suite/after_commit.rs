//! What follows from an event without being part of it.

use super::Stage;
use super::client::Sent;
use super::scene::{Act, PATIENT, Scene, Sequel};
use std::time::Duration;

const COUNTER: &str = "aldaba_receiver_after_commit_total";

pub(crate) async fn an_action_runs_once_the_effect_is_committed<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_mail");
    scene.next([Act::WorkThenSequel(Sequel::Done)]);
    scene.send(&event).await.is_new();
    assert_eq!(scene.sequels(1).await, [1], "the mark was there");
    assert_eq!(scene.receiver.finish(PATIENT).await, 0);
    assert_eq!(scene.counted.sum(COUNTER, "done"), 1);
}

pub(crate) async fn e5_an_action_that_fails_changes_no_answer<S: Stage>(stage: S) {
    changes_no_answer(stage, Sequel::Fails, "failed").await;
}

pub(crate) async fn e5_an_action_that_panics_changes_no_answer<S: Stage>(stage: S) {
    changes_no_answer(stage, Sequel::Panics, "panicked").await;
}

pub(crate) async fn e5_an_action_that_hangs_delays_no_answer_and_is_ended<S: Stage>(stage: S) {
    changes_no_answer(stage, Sequel::Hangs, "timed_out").await;
}

async fn changes_no_answer<S: Stage>(stage: S, sequel: Sequel, counted_as: &str) {
    let scene = Scene::set_with(stage, |builder| builder.after_commit_time(Duration::from_millis(500))).await;
    let event = Sent::new("evt_mail_goes_wrong");
    scene.next([Act::WorkThenSequel(sequel)]);
    scene.send(&event).await.is_new();
    scene.sequels(1).await;
    assert_eq!(scene.receiver.finish(PATIENT).await, 0);
    assert_eq!(scene.counted.sum(COUNTER, counted_as), 1);
    scene.left(&event, 1, 1).await;
    scene.send(&event).await.is_duplicate();
}

pub(crate) async fn nothing_follows_from_a_failure_or_a_duplicate<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_one_mail");
    scene.next([Act::SequelThenFail, Act::WorkThenSequel(Sequel::Done)]);
    scene.send(&event).await.is_refused(500);
    scene.send(&event).await.is_new();
    scene.send(&event).await.is_duplicate();
    assert_eq!(scene.receiver.finish(PATIENT).await, 0);
    assert_eq!(scene.sequels(1).await.len(), 1);
    assert_eq!(scene.counted.sum(COUNTER, "done"), 1);
}
