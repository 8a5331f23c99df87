//! The rate of duplicates over a window.

use super::Stage;
use super::client::Sent;
use super::scene::Scene;
use aldaba_receiver::{DuplicateRate, Ledger};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);

pub(crate) async fn e7_the_rate_of_duplicates_is_a_percentage_over_a_window_and_survives_a_restart<
    S: Stage,
>(
    stage: S,
) {
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_rated");
    scene.send(&event).await.is_new();
    for _ in 0..3 {
        scene.send(&event).await.is_duplicate();
    }
    let rate = scene.receiver.duplicate_rate_within(DAY).await.unwrap();
    assert_eq!(rate, DuplicateRate { total: 4, duplicates: 3 });
    assert_eq!(rate.to_string(), "75.00%");
    if !S::Ledger::KEEPS_COUNTS {
        return;
    }
    assert_eq!(scene.stage.ledger().counts(DAY).await.unwrap(), rate, "asked twice, counted once");
    scene.send(&event).await.is_duplicate();
    // What is counted is stored at the end, too.
    assert_eq!(scene.receiver.finish(Duration::from_secs(5)).await, 0);
    // As after a restart: another receiver on the same ledger, which has seen nothing itself.
    let later = Scene::set_again(&scene).await;
    assert_eq!(later.receiver.duplicate_rate(), DuplicateRate::default());
    let rate = later.receiver.duplicate_rate_within(DAY).await.unwrap();
    assert_eq!((rate, rate.to_string()), (DuplicateRate { total: 5, duplicates: 4 }, "80.00%".into()));
    // Less than an hour: the present one.
    assert_eq!(later.receiver.duplicate_rate_within(Duration::from_secs(1)).await.unwrap(), rate);
    later.send(&Sent::new("evt_rated_later")).await.is_new();
    let rate = later.receiver.duplicate_rate_within(DAY).await.unwrap();
    assert_eq!(rate, DuplicateRate { total: 6, duplicates: 4 });
}

pub(crate) async fn e7_what_could_not_be_counted_is_counted_later<S: Stage>(stage: S) {
    if !S::Ledger::KEEPS_COUNTS {
        return;
    }
    let scene = Scene::set(stage).await;
    let event = Sent::new("evt_rated");
    scene.send(&event).await.is_new();
    scene.send(&event).await.is_duplicate();
    scene.stage.take_down().await;
    // Some stages take down only the marks.
    let _ = scene.receiver.duplicate_rate_within(DAY).await;
    scene.stage.bring_back().await;
    let mut rate = scene.receiver.duplicate_rate_within(DAY).await;
    for _ in 0..100 {
        if rate.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        rate = scene.receiver.duplicate_rate_within(DAY).await;
    }
    assert_eq!(rate.unwrap(), DuplicateRate { total: 2, duplicates: 1 });
}
