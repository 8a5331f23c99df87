//! A process that is killed while it accepts has lost nothing that it was told is on disk.

use aldaba_delivery::MessageId;
use aldaba_store::conformance::Scene;
use aldaba_store::sqlite::{Options, SqliteStore};
use aldaba_store::{
    Accepted, AttemptScope, AttemptsQuery, Done, History, MessagesQuery, Order, Page, Recorded,
};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

const FOLDER: &str = "ALDABA_TEST_KILL_FOLDER";
const ROUNDS: usize = 5;
const NEWS_PER_ROUND: usize = 400;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Not a test of its own: the process that is killed. It accepts and records without end, and says
/// what it was told is on disk.
#[test]
#[ignore = "started by the test below"]
fn accept_until_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let store = Arc::new(SqliteStore::open(&Options::new(&folder)).unwrap());
    let scene = Arc::new(Scene::new(store.clone()));
    // Every life counts its ids from the start; so does the store that it was given.
    let tenant = block_on(scene.with_endpoints(1));
    say(format_args!("app {}", tenant.application.id));
    let (told, turn) = std::sync::mpsc::sync_channel(64);
    for _ in 0..64 {
        told.send(()).unwrap();
    }
    while turn.recv().is_ok() {
        let event = scene.event(&tenant);
        let (scene_again, accept, told) = (Arc::clone(&scene), event.clone(), told.clone());
        let done = Done::new(move |result: Result<Vec<Accepted>, _>| {
            let Accepted::New { first } = result.unwrap()[0] else { panic!("not accepted") };
            say(format_args!("accepted {}", accept.message.id));
            let record = scene_again.delivered(&accept, first);
            let recorded = Done::new(move |result: Result<Vec<Recorded>, _>| {
                assert_eq!(result.unwrap(), [Recorded::Applied]);
                say(format_args!("recorded {}", accept.message.id));
                let _ = told.send(());
            });
            scene_again.store.record(vec![record], recorded);
        });
        scene.store.accept(vec![event], done);
    }
}

fn say(news: std::fmt::Arguments<'_>) {
    // One write for a line: a kill must not leave half of one.
    let line = format!("kill-test {news}\n");
    let _ = std::io::stdout().write_all(line.as_bytes());
}

#[test]
fn committed_work_survives_a_kill() {
    for _ in 0..ROUNDS {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "accept_until_killed", "--ignored", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut news: Vec<String> = lines.by_ref().take(NEWS_PER_ROUND).collect();
        child.kill().unwrap();
        // What was said until the kill counts as well.
        news.extend(lines);
        child.wait().unwrap();
        assert!(news.len() >= NEWS_PER_ROUND, "the process ended by itself: {news:?}");
        assert_kept(folder.path(), &news);
    }
}

fn assert_kept(folder: &std::path::Path, news: &[String]) {
    let store = SqliteStore::open(&Options::new(folder)).unwrap();
    let said = |what: &str| -> Vec<String> {
        let told = |line: &String| line.split_once("kill-test ")?.1.strip_prefix(what).map(str::to_owned);
        news.iter().filter_map(told).collect()
    };
    let app = said("app ")[0].parse().unwrap();
    let (accepted, recorded) = (said("accepted "), said("recorded "));
    assert!(!accepted.is_empty() && !recorded.is_empty());
    block_on(async {
        for id in &accepted {
            assert!(store.message(app, id.clone()).await.unwrap().is_some(), "{id} was lost");
        }
        for id in &recorded {
            let message: MessageId = id.parse().unwrap();
            let page = Page { after: None, limit: 10 };
            let query = AttemptsQuery::all(AttemptScope::Message(message), page, Order::Ascending);
            assert_eq!(store.attempts(query).await.unwrap().items.len(), 1, "the attempt of {id} was lost");
        }
        // Nothing in between either: every message has its delivery.
        let mut after = None;
        loop {
            let query = MessagesQuery::all(app, Page { after, limit: 100 }, Order::Ascending);
            let messages = store.messages(query).await.unwrap().items;
            let Some(last) = messages.last() else { break };
            after = Some(last.id);
            for message in messages {
                assert_eq!(store.deliveries(message.id).await.unwrap().len(), 1);
            }
        }
    });
}
