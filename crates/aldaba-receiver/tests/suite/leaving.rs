//! Senders that close the connection before they have the answer.

use super::client::Sent;
use super::scene::{Act, PATIENT, Scene};
use super::{Stage, left_behind};
use aldaba_receiver::WhenSenderLeaves;
use std::time::Duration;

pub(crate) async fn a_handler_goes_on_when_its_sender_has_gone<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_gone");
    scene.next([Act::WorkThenWait]);
    let request = scene.sending(&event);
    scene.runs_reach(1).await;
    request.abort();
    let _ = request.await;
    // Nothing must happen to the handler when the server notices the closed connection.
    tokio::time::sleep(Duration::from_millis(200)).await;
    scene.release(1);
    scene.ends_reach(1).await;
    assert_eq!(scene.receiver.finish(PATIENT).await, 0);
    scene.left(&event, 1, 1).await;
    scene.send(&event).await.is_duplicate();
    assert_eq!((scene.runs(), scene.counted.events("dropped")), (1, 0));
}

pub(crate) async fn a_handler_stops_with_its_sender_where_that_was_chosen<S: Stage>(stage: S) {
    let scene = Scene::set_with(stage, |builder| builder.when_sender_leaves(WhenSenderLeaves::Stop)).await;
    let event = Sent::new("evt_gone_and_stopped");
    scene.next([Act::WorkThenWait]);
    let request = scene.sending(&event);
    // The work is done, the gate is closed.
    scene.waits_reach(1).await;
    request.abort();
    let _ = request.await;
    // It was not released: it ends because it is dropped.
    scene.ends_reach(1).await;
    assert_eq!(scene.receiver.finish(PATIENT).await, 0);
    assert_eq!(scene.counted.events("dropped"), 1);
    scene.send(&event).await.is_new();
    scene.left(&event, left_behind::<S>() + 1, 1).await;
}

pub(crate) async fn a_program_can_let_its_handlers_end<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_at_the_end");
    assert_eq!(scene.receiver.finish(PATIENT).await, 0);
    scene.next([Act::WorkThenWait]);
    let request = scene.sending(&event);
    scene.runs_reach(1).await;
    assert_eq!(scene.receiver.finish(Duration::from_millis(50)).await, 1);
    scene.release(1);
    assert_eq!(scene.receiver.finish(PATIENT).await, 0);
    scene.left(&event, 1, 1).await;
    request.await.unwrap().is_new();
}
