//! The tests that every guide to idempotent receiving asks for.

use super::Stage;
use super::client::Sent;
use super::scene::{Act, Scene};
use futures_util::future::join_all;

pub(crate) async fn e2_the_first_event_is_processed<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_test_001");
    let reply = scene.send(&event).await;
    reply.is_new();
    assert_eq!(reply.header("content-type"), Some("application/json"));
    scene.left(&event, 1, 1).await;
    assert_eq!(scene.runs(), 1);
}

pub(crate) async fn e2_a_repeat_is_answered_as_a_duplicate<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_test_002");
    scene.send(&event).await.is_new();
    scene.send(&event).await.is_duplicate();
    scene.left(&event, 1, 1).await;
    assert_eq!(scene.runs(), 1);
}

pub(crate) async fn e13_three_copies_leave_one_effect_and_one_mark<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_test_003");
    for _ in 0..3 {
        assert_eq!(scene.send(&event).await.status, 200);
    }
    scene.left(&event, 1, 1).await;
}

pub(crate) async fn e4_ten_copies_in_parallel_are_all_answered_and_one_is_processed<S: Stage>(stage: S) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_race_001");
    scene.next([Act::WorkThenWait]);
    let copies: Vec<_> = (0..10).map(|_| scene.sending(&event)).collect();
    // Most of the other copies arrive while the first one is being handled.
    scene.waits_reach(1).await;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    scene.release(1);
    let replies = join_all(copies).await;
    let replies: Vec<_> = replies.into_iter().map(|reply| reply.unwrap()).collect();
    assert!(replies.iter().all(|reply| reply.status == 200), "{replies:?}");
    let (duplicates, new): (Vec<_>, Vec<_>) =
        replies.iter().partition(|reply| reply.body.get("duplicate").is_some());
    new.iter().for_each(|reply| reply.is_new());
    duplicates.iter().for_each(|reply| reply.is_duplicate());
    assert_eq!((new.len(), duplicates.len()), (1, 9));
    scene.left(&event, 1, 1).await;
    assert_eq!(scene.runs(), 1);
}

pub(crate) async fn events_of_other_ids_do_not_wait_for_each_other<S: Stage>(stage: S) {
    if !S::SIDE_BY_SIDE {
        return;
    }
    let scene = Scene::set(stage).await;
    scene.next([Act::WorkThenWait]);
    let (slow, quick) = (Sent::new("evt_slow"), Sent::new("evt_quick"));
    let first = scene.sending(&slow);
    scene.runs_reach(1).await;
    scene.send(&quick).await.is_new();
    scene.release(1);
    first.await.unwrap().is_new();
    scene.left(&slow, 1, 1).await;
    scene.left(&quick, 1, 1).await;
}
