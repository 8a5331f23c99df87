//! Handlers that do everything a handler should not, and end in every way there is. The tests of both databases take this.

use crate::stage::{Database, FAILS, OurLedger, OurPool, OurTransaction, TAKES_LONG, WAIT_TIMEOUT, event};
use aldaba_receiver::{Claim, Ledger, Work};
use futures_util::FutureExt;
use sqlx::{Acquire, AssertSqlSafe};
use std::time::Duration;
use tokio::time::timeout;

const WORKERS: u64 = 3;
const EVENTS_OF_EACH: u64 = 25;

/// As few as there can be, so that each is used again after all that.
const CONNECTIONS: u32 = 3;

/// After so many tries an event is handled as it should be.
const ROUGH_TRIES: usize = 3;

/// The numbers are the same for the same seed; the interleaving of three workers is not.
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

async fn run(work: &mut OurTransaction, statements: &str) -> sqlx::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(work.connection()).await.map(drop)
}

async fn part(work: &mut OurTransaction, dice: &mut Dice) -> sqlx::Result<()> {
    let mut part = work.transaction().begin().await?;
    sqlx::raw_sql("DELETE FROM strays WHERE false").execute(&mut *part).await?;
    match dice.throw(3) {
        0 => part.commit().await,
        1 => part.rollback().await,
        _ => Ok(()),
    }
}

/// Continues after every failure.
async fn step(work: &mut OurTransaction, attempt: &str, dice: &mut Dice) {
    let stray = format!("INSERT INTO strays VALUES ('{attempt}')");
    let (short, long) = (dice.pause(300), dice.pause(5000));
    match dice.throw(10) {
        0 => drop(run(work, FAILS).await),
        1 => drop(timeout(long, run(work, FAILS)).await),
        2 => drop(timeout(long, run(work, TAKES_LONG)).await),
        3 => drop(work.transaction().begin().now_or_never()),
        4 => drop(timeout(short, work.transaction().begin()).await),
        5 => drop(part(work, dice).await),
        6 => drop(run(work, &stray).await),
        7 => drop(timeout(short, run(work, &stray)).await),
        8 => drop(run(work, "ROLLBACK").await),
        _ => drop(run(work, "ROLLBACK; BEGIN").await),
    }
}

/// Whether it is known to be completed.
async fn end(work: OurTransaction, dice: &mut Dice) -> bool {
    let pause = dice.pause(3000);
    match dice.throw(5) {
        0 => return work.complete().await.is_ok(),
        1 => work.abandon().await,
        2 => drop(work),
        3 => return matches!(timeout(pause, work.complete()).await, Ok(Ok(()))),
        _ => drop(timeout(pause, work.abandon()).await),
    }
    false
}

/// Handles an event until it is a duplicate. The program's own statements go over the same connections meanwhile.
async fn handle(database: &Database, pool: &OurPool, ledger: &OurLedger, id: &str, dice: &mut Dice) {
    for tries in 0.. {
        let mut work = match ledger.claim(&event(id), WAIT_TIMEOUT).await.unwrap() {
            Claim::New(work) => work,
            Claim::Duplicate => return,
            other => panic!("{id}: {other:?}"),
        };
        let attempt = format!("{id}, try {tries}");
        run(&mut work, &format!("INSERT INTO effects VALUES ('{id}')")).await.unwrap();
        run(&mut work, &format!("INSERT INTO attempts VALUES ('{attempt}')")).await.unwrap();
        if tries < ROUGH_TRIES {
            for _ in 0..dice.throw(5) {
                step(&mut work, &attempt, dice).await;
            }
            if end(work, dice).await {
                assert_eq!(database.count("effects", id).await, 1, "{attempt}");
            }
        } else {
            work.complete().await.unwrap();
        }
        let own = sqlx::query("DELETE FROM programs").execute(pool).await;
        own.unwrap_or_else(|error| panic!("after {attempt}: {error}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn random_handlers_leave_one_mark_and_one_effect_for_each_event() {
    let seed = std::env::var("ALDABA_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("ALDABA_SEED={seed}");
    let database = Database::set().await;
    let tables = "CREATE TABLE attempts (event_id TEXT); CREATE TABLE strays (event_id TEXT); CREATE TABLE programs (n INTEGER);
        CREATE TABLE orders (id TEXT UNIQUE); INSERT INTO orders VALUES ('sold')";
    database.run(tables).await;
    let pool = database.pool(CONNECTIONS).await;
    let ledger = OurLedger::new(pool.clone());
    let handlers = (0..WORKERS).map(|worker| {
        let (database, pool, ledger) = (&database, &pool, &ledger);
        async move {
            let mut dice = Dice(seed * WORKERS + worker);
            for number in 0..EVENTS_OF_EACH {
                handle(database, pool, ledger, &format!("evt_{worker}_{number}"), &mut dice).await;
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
    let astray = "SELECT event_id FROM strays WHERE event_id NOT IN (SELECT event_id FROM attempts)";
    let astray: Vec<String> = sqlx::query_scalar(astray).fetch_all(&pool).await.unwrap();
    assert!(astray.is_empty(), "committed without their marks: {astray:?}");
}
