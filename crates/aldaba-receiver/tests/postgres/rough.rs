//! Handlers that cancel their statements, continue after errors, and end in every possible way.

use crate::stage::{Database, WAIT_TIMEOUT, effect, event};
use aldaba_receiver::transactional::{PostgresLedger, PostgresTransaction};
use aldaba_receiver::{Claim, Ledger, Work};
use bytes::Bytes;
use deadpool_postgres::Pool;
use futures_util::{FutureExt, SinkExt};
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

const WORKERS: u64 = 3;
const EVENTS_OF_EACH: u64 = 25;

/// As few as there can be, so that each is used again after all that.
const CONNECTIONS: usize = 3;

/// After so many tries an event is handled as it should be.
const ROUGH_TRIES: usize = 3;

/// Ends the transaction, after a while.
const FAILS: &str = "DO 'BEGIN PERFORM pg_sleep(0.01); RAISE EXCEPTION ''late''; END'";

struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn pause(&mut self, longest: u64) -> Duration {
        Duration::from_micros(self.throw(longest))
    }
}

/// A part whose writes must not stay unless it is released; it is cancelled at any point.
async fn part(work: &mut PostgresTransaction, attempt: &str, dice: &mut Dice) {
    let pause = dice.pause(1500);
    let releases = dice.throw(2) == 0;
    let whole = async {
        let part = work.savepoint().await?;
        part.execute("INSERT INTO parts VALUES ($1, $2)", &[&attempt, &releases]).await?;
        if releases { part.release().await } else { part.roll_back().await }
    };
    drop(timeout(pause, whole).await);
}

async fn copy(work: &PostgresTransaction) -> Result<(), tokio_postgres::Error> {
    let mut sink = pin!(work.copy_in("COPY parts FROM STDIN").await?);
    sink.send(Bytes::from_static(b"half a li")).await
}

/// Continues after every failure.
async fn step(work: &mut PostgresTransaction, attempt: &str, dice: &mut Dice) {
    let pause = dice.pause(5000);
    match dice.throw(6) {
        0 => drop(work.batch_execute(FAILS).await),
        1 => drop(timeout(pause, work.batch_execute(FAILS)).await),
        2 => drop(timeout(pause, work.batch_execute("SELECT pg_sleep(0.03)")).await),
        3 => drop(work.savepoint().now_or_never()),
        4 => drop(copy(work).await),
        _ => part(work, attempt, dice).await,
    }
}

async fn end(work: PostgresTransaction, dice: &mut Dice) {
    let pause = dice.pause(3000);
    match dice.throw(5) {
        0 => drop(work.complete().await),
        1 => work.abandon().await,
        2 => drop(work),
        3 => drop(timeout(pause, work.complete()).await),
        _ => drop(timeout(pause, work.abandon()).await),
    }
}

async fn handle(pool: &Pool, ledger: &PostgresLedger, id: &str, dice: &mut Dice) {
    for tries in 0.. {
        let mut work = match ledger.claim(&event(id), WAIT_TIMEOUT).await.unwrap() {
            Claim::New(work) => work,
            Claim::Duplicate => return,
            other => panic!("{id}: {other:?}"),
        };
        if tries < ROUGH_TRIES {
            for _ in 0..dice.throw(3) {
                step(&mut work, id, dice).await;
            }
            // It fails in a transaction that has.
            let _ = work.execute("INSERT INTO effects VALUES ($1)", &[&id]).await;
            for _ in 0..dice.throw(3) {
                step(&mut work, id, dice).await;
            }
            end(work, dice).await;
        } else {
            effect(&work, id).await;
            work.complete().await.unwrap();
        }
        // The program's own.
        pool.get().await.unwrap().batch_execute("INSERT INTO programs VALUES (1)").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cancelled_handlers_leave_one_mark_and_one_effect_for_each_event() {
    let seed = std::env::var("ALDABA_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("ALDABA_SEED={seed}");
    let database = Database::set().await;
    database.run("CREATE TABLE parts (event_id TEXT, released BOOL); CREATE TABLE programs (n INT)").await;
    let (pool, ledger) = database.ledger_over(CONNECTIONS);
    let handlers = (0..WORKERS).map(|worker| {
        let (pool, ledger) = (&pool, &ledger);
        async move {
            let mut dice = Dice(seed * WORKERS + worker);
            for number in 0..EVENTS_OF_EACH {
                handle(pool, ledger, &format!("evt_{worker}_{number}"), &mut dice).await;
            }
        }
    });
    futures_util::future::join_all(handlers).await;
    for worker in 0..WORKERS {
        for number in 0..EVENTS_OF_EACH {
            let id = format!("evt_{worker}_{number}");
            let found = (database.count("webhook_events", &id).await, database.count("effects", &id).await);
            assert_eq!(found, (1, 1), "{id}");
        }
    }
    let kept = database.row("SELECT count(*) FROM parts WHERE NOT released", &[]).await.get::<_, i64>(0);
    assert_eq!(kept, 0, "parts that were taken back are there");
    assert!(pool.status().size <= CONNECTIONS);
}
