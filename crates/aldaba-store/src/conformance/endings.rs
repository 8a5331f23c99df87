//! A store that lives, and one that is closed.

use super::Scene;
use super::scene::ask;
use crate::{Accepted, Done, Error, Store};
use std::sync::Arc;
use tokio::sync::mpsc;

pub async fn a_living_store_says_so(store: Arc<dyn Store>) {
    assert_eq!(store.check().await, Ok(()));
}

pub async fn what_was_handed_over_is_written_before_the_store_closes(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let (told, mut news) = mpsc::unbounded_channel();
    for _ in 0..50 {
        let told = told.clone();
        let done = Done::new(move |result: Result<Vec<Accepted>, Error>| {
            let _ = told.send(result);
        });
        scene.store.accept(vec![scene.event(&tenant)], done);
    }
    scene.store.close().await.unwrap();
    for _ in 0..50 {
        // Not awaited: a closed store has no more news.
        let accepted = news.try_recv().expect("every `Done` was called before the end of `close`");
        assert!(matches!(accepted.unwrap()[..], [Accepted::New { .. }]));
    }
}

pub async fn a_closed_store_says_so(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let event = scene.event(&tenant);
    let seq = scene.accepted(&event).await;
    scene.store.close().await.unwrap();
    let accepted = ask(|done| scene.store.accept(vec![scene.event(&tenant)], done)).await;
    assert_eq!(accepted, Err(Error::Closed));
    let recorded = ask(|done| scene.store.record(vec![scene.delivered(&event, seq)], done)).await;
    assert_eq!(recorded, Err(Error::Closed));
    assert_eq!(scene.store.check().await, Err(Error::Closed));
    assert_eq!(scene.store.close().await, Ok(()));
}
