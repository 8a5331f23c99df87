//! What the pages on receiving show in Rust can be built.

#![cfg(all(feature = "axum", feature = "postgres", feature = "sqlite", feature = "redis"))]
#![expect(
    dead_code,
    unused_variables,
    clippy::needless_pass_by_value,
    reason = "what the pages show is built, and not run"
)]

use aldaba_receiver::inbound::{Inspector, Place, Recipe};
use aldaba_receiver::lease::{
    Atomicity, KeyValueLeases, KeyValueOptions, KeyValueStore, MemoryLeases, RedisLeases, RedisOptions,
};
use aldaba_receiver::transactional::{PostgresLedger, SqliteLedger};
use aldaba_receiver::{Answer, Challenge, Cleanup, DuplicateRate, Event, Failure, Held, Ledger, Receiver};
use axum::Router;
use axum::body::Body;
use axum::routing::post;
use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, Method, Request};
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tower::Service;

const THIS: &str = include_str!("pages.rs");
const RECEIVING: &str = include_str!("../../../docs/receiving.md");
const LEDGERS: &str = include_str!("../../../docs/ledgers.md");
const LEASES: &str = include_str!("../../../docs/leases.md");

/// Comments and spaces do not count: pages have them in columns.
fn squeezed(text: &str) -> String {
    let code = |line: &str| line.split("//").next().unwrap_or_default().replace(' ', "");
    // Addresses have two strokes, too.
    text.replace("://", ":").lines().map(code).collect()
}

/// The code between `shown: <page>` and `end` in this file is on the page.
#[test]
fn the_pages_show_what_can_be_built() {
    for (name, page, count) in [("receiving", RECEIVING, 5), ("ledgers", LEDGERS, 2), ("leases", LEASES, 2)] {
        let snippets: Vec<_> = THIS.split(&format!("// shown: {name}\n")).skip(1).collect();
        assert_eq!(snippets.len(), count, "{name}");
        for snippet in snippets {
            let (snippet, _) = snippet.split_once("// end\n").unwrap();
            assert!(squeezed(page).contains(&squeezed(snippet)), "docs/{name}.md does not show:\n{snippet}");
        }
    }
}

#[test]
fn e13_the_guide_answers_the_five_problems_of_the_document() {
    let (_, section) = RECEIVING.split_once("## When something is wrong").unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with("| problem |")).skip(2);
    let rows: Vec<_> = rows.take_while(|line| line.starts_with('|')).collect();
    let problems =
        ["duplicate records", "wait for locks", "grows without end", "treated as duplicates", "get lost"];
    assert_eq!(rows.len(), problems.len());
    for (row, problem) in rows.iter().zip(problems) {
        let cells: Vec<_> = row.split(" | ").collect();
        assert!(cells[0].contains(problem), "{row}");
        assert!(cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()), "cause and solution: {row}");
    }
}

struct Mailer;

impl Mailer {
    async fn send(&self, _: String) -> Result<(), String> {
        Ok(())
    }
}

fn after_the_commit(event: &Event, mailer: Mailer, receipt: String) {
    // shown: receiving
    event.after_commit(async move { mailer.send(receipt).await });
    // end
}

fn cleaning<L: Ledger>(receiver: Receiver<L>) -> impl Sized {
    // shown: receiving
    let cleanup = Cleanup::of(&receiver).start();
    // end
    cleanup
}

fn challenged<L: Ledger>(inspector: Inspector, ledger: L) -> impl Sized {
    // shown: receiving
    Receiver::builder(inspector, ledger).challenge(Challenge::meta("the verify token"))
    // end
}

/// This one is run, too: it claims something.
#[tokio::test]
async fn the_test_that_the_guide_shows_passes() -> Result<(), Box<dyn Error>> {
    static HANDLED: AtomicUsize = AtomicUsize::new(0);
    async fn handler(event: Event) {
        HANDLED.fetch_add(1, Relaxed);
    }
    // shown: receiving
    let inspector = Inspector::new(Recipe::unsigned().with_id(Place::header("webhook-id")?), [])?;
    let receiver = Receiver::new(inspector, MemoryLeases::new());
    let mut app = Router::new().route("/webhooks", post(handler).layer(receiver.layer()));
    let mut send = |id: &str| {
        let request = Request::post("/webhooks").header("webhook-id", id);
        app.call(request.body(Body::from(r#"{"order": "order-1"}"#)).unwrap())
    };

    assert_eq!(send("evt_1").await?.status(), 200);
    assert_eq!(receiver.duplicate_rate(), DuplicateRate { total: 1, duplicates: 0 }); // it was new
    for _ in 0..2 {
        assert_eq!(send("evt_1").await?.status(), 200);
    }
    assert_eq!(receiver.duplicate_rate(), DuplicateRate { total: 3, duplicates: 2 }); // and the next two were duplicates
    let copies = join_all((0..10).map(|_| send("evt_2"))).await;
    assert!(copies.into_iter().flatten().all(|answer| answer.status() == 200));
    assert_eq!(receiver.duplicate_rate(), DuplicateRate { total: 13, duplicates: 11 }); // of ten at once, one is handled
    // end
    assert_eq!(HANDLED.load(Relaxed), 2);
    Ok(())
}

async fn paid(_: Event, _: Held<SqliteLedger>) -> Result<(), Failure> {
    Ok(())
}

async fn anywhere(
    receiver: Receiver<SqliteLedger>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    // shown: receiving
    let answer = receiver.handle(&method, &headers, body, paid).await;
    // end
    answer
}

async fn postgres(pool: deadpool_postgres::Pool) -> Result<(), Box<dyn Error>> {
    // shown: ledgers
    let ledger = PostgresLedger::connect("postgres://shop:secret@localhost/shop")?;
    let ledger = PostgresLedger::new(pool);
    // end
    Ok(ledger.migrate().await?)
}

async fn sqlite() -> Result<(), Box<dyn Error>> {
    // shown: ledgers
    let ledger = SqliteLedger::open("shop.db")?;
    // end
    Ok(ledger.migrate().await?)
}

fn leases<S: KeyValueStore>(my_store: S) -> Result<impl Sized, Box<dyn Error>> {
    // shown: leases
    let ledger = RedisLeases::open("redis://127.0.0.1/", RedisOptions::default())?;
    let ledger = KeyValueLeases::new(my_store, KeyValueOptions::default())?;
    // end
    Ok(ledger)
}

struct MyStore;

type MyError = std::io::Error;

impl MyStore {
    async fn read(&self, key: &str) -> Result<Option<String>, MyError> {
        Ok(None)
    }

    async fn swap(&self, key: &str, old: Option<&str>, new: &str, life: Duration) -> Result<bool, MyError> {
        Ok(true)
    }
}

#[rustfmt::skip]
mod my_store {
    use super::*;

// shown: leases
impl KeyValueStore for MyStore {
    type Error = MyError; // any `std::error::Error`
    const ATOMICITY: Atomicity = Atomicity::CompareAndSwap;

    async fn get(&self, key: &str) -> Result<Option<String>, MyError> {
        self.read(key).await // what has lived its life is none
    }
    async fn put_if_absent(&self, key: &str, value: &str, life: Duration) -> Result<bool, MyError> {
        self.swap(key, None, value, life).await // whether it was put
    }
    async fn replace_if(&self, key: &str, old: &str, new: &str, life: Duration) -> Result<bool, MyError> {
        self.swap(key, Some(old), new, life).await // `old` and `new` may be the same: then it lives longer
    }
}
// end
}
