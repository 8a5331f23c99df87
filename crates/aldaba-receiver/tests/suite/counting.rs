//! The metrics.

use super::Stage;
use super::client::Sent;
use super::scene::{Act, Scene};
use aldaba_receiver::DuplicateRate;
use http::Method;
use metrics::Unit;
use serde_json::json;
use std::time::Duration;

pub(crate) async fn e7_every_outcome_is_counted<S: Stage>(stage: S) {
    let scene = Scene::set_with(stage, |builder| builder.wait_timeout(Duration::from_millis(500))).await;
    assert_eq!(scene.receiver.duplicate_rate().ratio(), 0.0);
    let event = Sent::new("evt_counted");
    scene.next([Act::Refuse]);
    scene.send(&event).await.is_refused(500);
    scene.send(&event).await.is_new();
    for _ in 0..3 {
        scene.send(&event).await.is_duplicate();
    }
    scene.send(&Sent::with(&event.id, &json!({}))).await.is_refused(409);
    let mut unsigned = event.request().body(event.whole()).unwrap();
    unsigned.headers_mut().remove("webhook-signature");
    scene.send_as(unsigned).await.is_refused(401);
    let mut get = event.request().body(event.whole()).unwrap();
    *get.method_mut() = Method::GET;
    scene.send_as(get).await.is_refused(405);
    scene.stage.take_down().await;
    scene.send(&Sent::new("evt_not_taken")).await.is_refused(503);

    let outcomes = [
        ("new", 1),
        ("duplicate", 3),
        ("failed", 1),
        ("other_body", 1),
        ("unavailable", 1),
        ("refused_signature", 1),
        ("refused_method", 1),
        ("refused_id", 0),
        ("dropped", 0),
    ];
    for (outcome, count) in outcomes {
        assert_eq!(scene.counted.events(outcome), count, "{outcome}");
    }
    assert_eq!(scene.counted.sum("aldaba_receiver_handler_seconds", ""), 2);
    assert_eq!(scene.counted.unit("aldaba_receiver_handler_seconds"), Some(Unit::Seconds));
    assert_eq!(scene.counted.unit("aldaba_receiver_events_total"), Some(Unit::Count));
    let rate = scene.receiver.duplicate_rate();
    assert_eq!(rate, DuplicateRate { total: 4, duplicates: 3 });
    assert_eq!(rate.ratio(), 0.75);
}
