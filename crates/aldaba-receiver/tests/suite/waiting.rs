//! Copies that meet work in progress.

use super::Stage;
use super::client::Sent;
use super::polling::still_waits;
use super::scene::{Act, Scene};
use std::time::Duration;

/// Long enough for a request to have come to its wait.
const A_WHILE: Duration = Duration::from_millis(300);

pub(crate) async fn e4_a_copy_waits_for_the_end_and_is_then_a_duplicate<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_waits");
    scene.next([Act::WorkThenWait]);
    let first = scene.sending(&event);
    scene.runs_reach(1).await;
    let copy = scene.sending(&event);
    still_waits(&copy).await;
    scene.release(1);
    first.await.unwrap().is_new();
    copy.await.unwrap().is_duplicate();
    scene.left(&event, 1, 1).await;
}

pub(crate) async fn e4_a_copy_takes_over_when_the_first_one_fails<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_taken_over");
    scene.next([Act::WaitThenFail]);
    let first = scene.sending(&event);
    scene.runs_reach(1).await;
    let copy = scene.sending(&event);
    still_waits(&copy).await;
    scene.release(1);
    first.await.unwrap().is_refused(500);
    copy.await.unwrap().is_new();
    scene.left(&event, 1, 1).await;
    assert_eq!(scene.runs(), 2);
}

pub(crate) async fn e4_past_the_wait_timeout_a_copy_is_told_to_come_again<S: Stage>(stage: S) {
    let scene = Scene::set_with(stage, |builder| builder.wait_timeout(A_WHILE)).await;
    let event = Sent::new("evt_slow");
    scene.next([Act::WorkThenWait]);
    let first = scene.sending(&event);
    scene.runs_reach(1).await;
    let reply = scene.send(&event).await;
    reply.is_refused(409);
    assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
    scene.release(1);
    first.await.unwrap().is_new();
    scene.send(&event).await.is_duplicate();
    scene.left(&event, 1, 1).await;
    assert_eq!((scene.runs(), scene.counted.events("in_progress")), (1, 1));
}
