//! The server dies, or is slow.

use crate::stage::{Database, WAIT_TIMEOUT, effect, event};
use crate::suite::client::Sent;
use crate::suite::polling::still_waits;
use crate::suite::scene::{Act, Scene};
use aldaba_receiver::{Claim, Ledger, LedgerError, Work};
use std::sync::Arc;
use std::time::Duration;
use test_servers::Postgres;

async fn kill(server: &Arc<Postgres>) {
    let server = Arc::clone(server);
    tokio::task::spawn_blocking(move || server.kill()).await.unwrap();
}

async fn restart(server: &Arc<Postgres>) {
    let server = Arc::clone(server);
    tokio::task::spawn_blocking(move || server.restart()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_during_the_work_leaves_none_of_it() {
    let scene = Scene::set(Database::alone().await).await;
    let event = Sent::new("evt_1");
    scene.next([Act::WorkThenWait]);
    let first = scene.sending(&event);
    scene.waits_reach(1).await;
    kill(&scene.stage.server).await;
    scene.release(1);
    first.await.unwrap().is_refused(503);
    scene.send(&event).await.is_refused(503);
    restart(&scene.stage.server).await;
    scene.send(&event).await.is_new();
    scene.left(&event, 1, 1).await;
    scene.send(&event).await.is_duplicate();
}

/// Whether the commit came true is not known to the one who asked for it. The next copy tells.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_around_the_commit_leaves_all_or_nothing() {
    let scene = Scene::set(Database::alone().await).await;
    let (mut before, mut after) = (0, 0);
    for number in 0..6 {
        let event = Sent::new(&format!("evt_{number}"));
        scene.next([Act::WorkThenWait]);
        let first = scene.sending(&event);
        scene.waits_reach(number + 1).await;
        let server = Arc::clone(&scene.stage.server);
        let killer = tokio::task::spawn_blocking(move || server.kill());
        // A different moment around the commit in each round.
        tokio::time::sleep(Duration::from_micros(number * 700)).await;
        scene.release(1);
        let answer = first.await.unwrap();
        assert!(matches!(answer.status.as_u16(), 200 | 503), "{answer:?}");
        killer.await.unwrap();
        restart(&scene.stage.server).await;
        let retry = scene.send(&event).await;
        match (retry.body.get("duplicate").is_some(), answer.status.as_u16()) {
            (true, _) => after += 1,
            (false, 503) => before += 1,
            (false, _) => panic!("it was answered and lost"),
        }
        assert_eq!(retry.status, 200);
        scene.left(&event, 1, 1).await;
    }
    println!("{before} were rolled back, {after} committed");
}

/// A database may answer before a commit is on disk. An event that is answered must be.
#[tokio::test(flavor = "multi_thread")]
async fn answered_events_survive_a_crash_with_asynchronous_commits() {
    let database = Database::alone().await;
    let (_, name) = database.url.rsplit_once('/').unwrap();
    database.run(&format!("ALTER DATABASE {name} SET synchronous_commit = off")).await;
    // The server delays asynchronous writes.
    database.run("ALTER SYSTEM SET wal_writer_delay = '10s'").await;
    database.run("SELECT pg_reload_conf()").await;
    let ledger = database.another_ledger();
    for (id, by_hand) in [("evt_1", "SELECT 1"), ("evt_2", "SET LOCAL synchronous_commit = off")] {
        let work = crate::stage::new(ledger.claim(&event(id), WAIT_TIMEOUT).await);
        work.batch_execute(by_hand).await.unwrap();
        effect(&work, id).await;
        work.complete().await.unwrap();
    }
    kill(&database.server).await;
    restart(&database.server).await;
    for id in ["evt_1", "evt_2"] {
        let found = (database.count("webhook_events", id).await, database.count("effects", id).await);
        assert_eq!(found, (1, 1), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_is_not_available_until_it_is_promoted() {
    let database = Database::alone().await;
    kill(&database.server).await;
    let server = Arc::clone(&database.server);
    tokio::task::spawn_blocking(move || server.restart_as_standby()).await.unwrap();
    for _ in 0..3 {
        let refused = database.ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await;
        assert!(matches!(refused, Err(LedgerError::Unavailable(_))), "{refused:?}");
    }
    database.run("SELECT pg_promote()").await;
    let work = database.claim_new(&event("evt_1")).await;
    effect(&work, "evt_1").await;
    work.complete().await.unwrap();
    assert!(matches!(database.claim(&event("evt_1")).await, Claim::Duplicate));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_commit_is_waited_for() {
    let scene = Scene::set(Database::set().await).await;
    scene
        .stage
        .run(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN PERFORM pg_sleep(1); RETURN NULL; END';
             CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON effects
                DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()",
        )
        .await;
    let event = Sent::new("evt_1");
    let first = scene.sending(&event);
    scene.runs_reach(1).await;
    let copy = scene.sending(&event);
    still_waits(&copy).await;
    assert!(!first.is_finished());
    first.await.unwrap().is_new();
    copy.await.unwrap().is_duplicate();
    scene.left(&event, 1, 1).await;
}
