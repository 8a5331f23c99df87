//! Marks that are old enough are removed.

use super::Stage;
use super::client::Sent;
use super::scene::{PATIENT, Scene};
use aldaba_receiver::{Cleanup, CleanupReport};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// Some databases keep times in whole seconds.
const OLD: Duration = Duration::from_secs(1);
const LONG_ENOUGH: Duration = Duration::from_millis(2200);

pub(crate) async fn e6_old_marks_are_removed_and_counted<S: Stage>(stage: S) {
    if !S::CLEANS {
        return;
    }
    let scene = Scene::set(stage).await;
    let events = [Sent::new("evt_old_1"), Sent::new("evt_old_2"), Sent::new("evt_old_3")];
    for event in &events {
        scene.send(event).await.is_new();
    }
    // The marks grow older than the cleanup's limit; databases have their own clock.
    tokio::time::sleep(LONG_ENOUGH).await;
    let young = Sent::new("evt_young");
    scene.send(&young).await.is_new();

    assert_eq!(scene.receiver.clean(HOUR).await.unwrap(), 0);
    assert_eq!(scene.receiver.clean(OLD).await.unwrap(), 3);
    assert_eq!(scene.receiver.clean(OLD).await.unwrap(), 0);
    assert_eq!(scene.counted.sum("aldaba_receiver_cleaned_marks_total", ""), 3);
    assert_eq!(scene.counted.sum("aldaba_receiver_cleanups_total", "done"), 3);
    // The effects stay; only the marks are removed.
    scene.left(&events[0], 1, 0).await;
    scene.left(&young, 1, 1).await;
    scene.send(&young).await.is_duplicate();
    scene.send(&events[0]).await.is_new();
}

pub(crate) async fn e6_a_cleanup_runs_by_itself_and_reports<S: Stage>(stage: S) {
    if !S::CLEANS {
        return;
    }
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_cleaned");
    scene.send(&event).await.is_new();
    // The mark grows older than the cleanup's limit; databases have their own clock.
    tokio::time::sleep(LONG_ENOUGH).await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&heard);
    let report =
        move |report: &CleanupReport| listener.lock().unwrap().push(*report.removed.as_ref().unwrap());
    let cleanup =
        Cleanup::of(&scene.receiver).keep(OLD).every(Duration::from_millis(100)).report(report).start();
    let mut reports = cleanup.reports();
    let second = reports.wait_for(|report| report.as_ref().is_some_and(|report| report.runs >= 1));
    drop(tokio::time::timeout(PATIENT, second).await.unwrap().unwrap());
    cleanup.stop().await;
    let runs = heard.lock().unwrap().len();
    assert_eq!(heard.lock().unwrap()[..2], [1, 0]);
    scene.left(&event, 1, 0).await;
    // In this time no further cleanup must run.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(heard.lock().unwrap().len(), runs, "it goes on after it was stopped");
}

pub(crate) async fn a_cleanup_that_fails_says_so_and_runs_again<S: Stage>(stage: S) {
    if !S::CLEANS {
        return;
    }
    let scene = Scene::set(stage).await;
    scene.stage.take_down().await;
    let cleanup = Cleanup::of(&scene.receiver).every(Duration::from_millis(200)).start();
    let mut reports = cleanup.reports();
    let failed = reports.wait_for(|report| report.as_ref().is_some_and(|report| report.removed.is_err()));
    drop(tokio::time::timeout(PATIENT, failed).await.unwrap().unwrap());
    assert!(scene.counted.sum("aldaba_receiver_cleanups_total", "failed") >= 1);
    scene.stage.bring_back().await;
    let done = reports.wait_for(|report| report.as_ref().is_some_and(|report| report.removed.is_ok()));
    drop(tokio::time::timeout(PATIENT, done).await.unwrap().unwrap());
}
