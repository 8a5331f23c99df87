//! Which messages a replay is about.

use crate::conformance::replays::{everything, run};
use crate::conformance::scene::filter;
use crate::conformance::{Scene, at};
use crate::{Accept, Content, ReplayFilter, Store};
use aldaba_delivery::MessageId;
use std::sync::Arc;

pub async fn a_filter_looks_at_time_type_channel_tag_and_status(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let with = |change: fn(&mut Accept)| {
        let mut accept = scene.event(&tenant);
        change(&mut accept);
        accept
    };
    let plain = with(|_| {});
    let early = with(|accept| {
        (accept.message.id, accept.message.created_at) = (MessageId::new(at(-5), [1; 15]), at(-5));
    });
    let channel = with(|accept| accept.message.channels = vec!["c".into()]);
    let tag = with(|accept| accept.message.tags = vec!["other".into(), "t".into()]);
    for accept in [&plain, &early, &channel, &tag] {
        let seq = scene.accepted(accept).await;
        let mut record = scene.delivered(accept, seq);
        if accept.message.id == plain.message.id {
            record.attempt.as_mut().unwrap().status_code = Some(418);
        }
        scene.record(vec![record]).await;
    }
    let ids = |accepts: &[&Accept]| accepts.iter().map(|accept| accept.message.id).collect::<Vec<_>>();
    let count = |change: fn(&mut ReplayFilter)| {
        let mut replay = everything(&scene, &tenant);
        change(&mut replay.filter);
        let counted = scene.store.count_replay(replay, None, 1000);
        async move { counted.await.unwrap().matched }
    };
    assert_eq!(count(|_| {}).await, 4);
    assert_eq!(count(|filter| filter.since = at(0)).await, 3);
    assert_eq!(count(|filter| filter.until = at(-1)).await, 1);
    assert_eq!(count(|filter| filter.event_types = vec!["invoice.paid".into(), "x".into()]).await, 4);
    assert_eq!(count(|filter| filter.event_types = vec!["x".into()]).await, 0);
    assert_eq!(count(|filter| filter.status_class = Some(400)).await, 1);
    assert_eq!(count(|filter| filter.status_class = Some(0)).await, 0);
    assert_eq!(count(|filter| filter.died_since = Some(at(1000))).await, 4, "none of them has died");
    assert_eq!(count(|filter| filter.channel = Some("c".into())).await, 1);
    let mut tagged = everything(&scene, &tenant);
    tagged.filter.tag = Some("t".into());
    assert_eq!(run(&scene, &tagged).await, ids(&[&tag]));
    let message = scene.store.message(tenant.application.id, tag.message.id.to_string()).await.unwrap();
    assert_eq!(message.unwrap().tags, ["other", "t"]);
}

pub async fn what_an_endpoint_does_not_want_is_not_missing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(0).await;
    let mut endpoint = scene.new_endpoint(tenant.application.id);
    endpoint.config.event_types = vec!["other".into()];
    scene.create_endpoint(&endpoint).await;
    let tenant = scene.tenant(tenant.application.id).await.unwrap();
    scene.accepted(&Accept { deliveries: Vec::new(), ..scene.event(&tenant) }).await;
    assert!(run(&scene, &everything(&scene, &tenant)).await.is_empty());
}

pub async fn what_the_filter_of_an_endpoint_keeps_back_is_not_missing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(0).await;
    let mut endpoint = scene.new_endpoint(tenant.application.id);
    let wanted =
        r#"{"all": [{"payload": "$.n", "gt": 1}, {"tag": "eu"}, {"header": "x-region", "eq": "south"}]}"#;
    endpoint.config.filter = Some(filter(wanted));
    scene.create_endpoint(&endpoint).await;
    let tenant = scene.tenant(tenant.application.id).await.unwrap();
    let mut good = None;
    for (payload, tag, region) in [
        (r#"{"n": 2}"#, "eu", "south"),
        (r#"{"n": 1}"#, "eu", "south"),
        (r#"{"n": 2}"#, "us", "south"),
        (r#"{"n": 2}"#, "eu", "north"),
    ] {
        let mut event = Accept { deliveries: Vec::new(), ..scene.event(&tenant) };
        let content = Content { payload: payload.into(), ..Content::clone(&event.message.content) };
        event.message.content = Arc::new(content);
        event.message.tags = vec![tag.into()];
        event.message.headers = vec![("x-region".into(), region.into())];
        scene.accepted(&event).await;
        good.get_or_insert(event.message.id);
    }
    let replay = everything(&scene, &tenant);
    let counted = scene.store.count_replay(replay.clone(), None, 1000).await.unwrap();
    assert_eq!(counted.matched, 1);
    assert_eq!(run(&scene, &replay).await, [good.unwrap()]);
}

pub async fn what_was_for_another_endpoint_is_not_missing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let replay = everything(&scene, &tenant);
    let (other, own) = (scene.id(), replay.endpoint);
    for only_for in [Some(other), Some(own), None] {
        let mut event = Accept { deliveries: Vec::new(), ..scene.event(&tenant) };
        event.message.only_for = only_for;
        scene.accepted(&event).await;
    }
    assert_eq!(run(&scene, &replay).await.len(), 2);
}
