//! What a lane relies on: when `Done` is called, and what can be read then.

use super::scene::ask;
use super::{Scene, at};
use crate::{Accept, Accepted, Done, Record, Recorded, Seq, Store};
use aldaba_delivery::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

pub async fn a_read_after_done_sees_the_write(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    for round in 0..50 {
        let event = scene.event(&tenant);
        let (told, mut news) = mpsc::unbounded_channel();
        let reader = Arc::clone(&scene.store);
        let (app, id) = (event.app, event.message.id);
        // The read begins inside `Done`: not a moment later.
        scene.store.accept(
            vec![event],
            Done::new(move |_| {
                let _ = told.send(reader.contents(vec![(app, id)]));
            }),
        );
        let read = news.recv().await.expect("`Done` was called");
        assert!(read.await.unwrap()[0].is_some(), "round {round}");
    }
}

pub async fn done_calls_come_in_commit_order(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let (told, mut news) = mpsc::unbounded_channel();
    for number in 0..300 {
        let told = told.clone();
        let done = Done::new(move |result: Result<Vec<Accepted>, _>| {
            let _ = told.send((number, result));
        });
        scene.store.accept(vec![scene.event(&tenant)], done);
    }
    let mut last = Seq(i64::MIN);
    for expected in 0..300 {
        let (number, result) = news.recv().await.expect("every `Done` is called");
        assert_eq!(number, expected);
        let Accepted::New { first } = result.unwrap()[0] else { panic!("not accepted") };
        assert!(first > last);
        last = first;
    }
}

/// What the chains of the next case have in common.
struct Chains {
    scene: Arc<Scene>,
    news: Mutex<Vec<(Seq, u32)>>,
    ended: mpsc::UnboundedSender<()>,
}

impl Chains {
    const LINKS: u32 = 5;

    /// Every `Done` tells what it knows, then submits the row's next change at once.
    fn go_on(self: Arc<Self>, event: Accept, seq: Seq, attempts: u32) {
        self.news.lock().expect("no panic").push((seq, attempts));
        if attempts == Self::LINKS {
            let _ = self.ended.send(());
            return;
        }
        let scene = Arc::clone(&self.scene);
        let record = Record { attempts_before: attempts, ..scene.failed(&event, seq, at(5)) };
        let done = Done::new(move |result: Result<Vec<Recorded>, _>| {
            assert_eq!(result.unwrap(), [Recorded::Applied]);
            self.go_on(event, seq, attempts + 1);
        });
        scene.store.record(vec![record], done);
    }
}

pub async fn news_of_a_row_come_before_news_of_its_next_change(store: Arc<dyn Store>) {
    let scene = Arc::new(Scene::new(store));
    let tenant = scene.with_endpoints(1).await;
    let (ended, mut ends) = mpsc::unbounded_channel();
    let chains = Arc::new(Chains { scene: Arc::clone(&scene), news: Mutex::default(), ended });
    let rows = 40;
    for _ in 0..rows {
        let event = scene.event(&tenant);
        let (chains, accept) = (Arc::clone(&chains), event.clone());
        let done = Done::new(move |result: Result<Vec<Accepted>, _>| {
            let Accepted::New { first } = result.unwrap()[0] else { panic!("not accepted") };
            chains.go_on(accept, first, 0);
        });
        scene.store.accept(vec![event], done);
    }
    for _ in 0..rows {
        ends.recv().await.expect("every chain ends");
    }
    let news = chains.news.lock().expect("no panic");
    let mut next: HashMap<Seq, u32> = HashMap::new();
    for (seq, attempts) in news.iter() {
        let expected = next.entry(*seq).or_default();
        assert_eq!(attempts, expected);
        *expected += 1;
    }
    assert_eq!(next.len(), rows);
}

pub async fn every_write_is_answered_once(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let nothing: Vec<Accept> = Vec::new();
    assert_eq!(ask(|done| scene.store.accept(nothing, done)).await, Ok(Vec::new()));
    assert_eq!(ask(|done| scene.store.record(Vec::new(), done)).await, Ok(Vec::new()));
    let batch: Vec<_> = (0..700).map(|_| scene.event_due(&tenant, Timestamp::MAX)).collect();
    assert_eq!(scene.accept(batch).await.len(), 700);
    assert_eq!(scene.store.waiting().await.unwrap(), 700);
}
