//! The core without a server: what a program of another framework calls.

use aldaba_receiver::inbound::{Inspector, Recipe, Secret};
use aldaba_receiver::lease::{MemoryLease, MemoryLeases};
use aldaba_receiver::{
    Answer, Begun, Claim, Clock, Event, Failure, Guarantee, Held, Ledger, LedgerError, OnFailure, Opening,
    Outcome, Receiver, Work,
};
use aldaba_signature::SigningKey;
use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::Full;
use std::time::Duration;

const SECRET: &str = "whsec_c3VpdGUtc2VjcmV0LWZvci10ZXN0cy1vbmx5LTMyYnk=";
const NOW: i64 = 1_800_000_000;

fn inspector() -> Inspector {
    Inspector::new(Recipe::standard(), [Secret::standard(SECRET).unwrap()]).unwrap()
}

fn receiver<L: Ledger>(ledger: L) -> Receiver<L> {
    Receiver::builder(inspector(), ledger).clock(Clock::reading(|| NOW)).build()
}

fn signed(id: &str, at: i64, body: &str) -> HeaderMap {
    let signature = SigningKey::parse(SECRET).unwrap().sign(id, at, body.as_bytes());
    let headers =
        [("webhook-id", id), ("webhook-timestamp", &at.to_string()), ("webhook-signature", &signature)];
    headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).into_iter().collect()
}

async fn open<L: Ledger>(receiver: &Receiver<L>, id: &str) -> Opening<L> {
    receiver.open(&Method::POST, &signed(id, NOW, "{}"), Bytes::from_static(b"{}")).await
}

async fn begun<L: Ledger>(receiver: &Receiver<L>, id: &str) -> Begun<L> {
    match open(receiver, id).await {
        Opening::Begun(begun) => begun,
        Opening::Answered(answer) => panic!("it should be new: {answer:?}"),
    }
}

async fn answered<L: Ledger>(receiver: &Receiver<L>, id: &str) -> Answer {
    match open(receiver, id).await {
        Opening::Answered(answer) => answer,
        Opening::Begun(_) => panic!("it should be answered"),
    }
}

#[tokio::test]
async fn an_event_is_begun_ended_and_then_a_duplicate() {
    let receiver = receiver(MemoryLeases::new());
    let mut begun = begun(&receiver, "a").await;
    assert_eq!((begun.event().id.as_str(), &begun.event().body[..]), ("a", &b"{}"[..]));
    assert!(begun.work().is_held());
    let answer = begun.end(Ok(())).await;
    assert_eq!((answer.outcome(), answer.status().as_u16()), (Outcome::New, 200));
    let response: http::Response<Full<Bytes>> = answered(&receiver, "a").await.into();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(receiver.guarantee(), Guarantee::AtLeastOnce);
}

#[tokio::test]
async fn one_call_does_it_all_for_any_framework() {
    let receiver = receiver(MemoryLeases::new());
    let headers = signed("a", NOW, "{}");
    let handle = async |handler: fn(Event) -> Result<(), Failure>| {
        let handler = async move |event: Event, lease: Held<MemoryLeases>| {
            assert!(lease.is_held());
            handler(event)
        };
        receiver.handle(&Method::POST, &headers, Bytes::from_static(b"{}"), handler).await.outcome()
    };
    assert_eq!(handle(|_| Err(Failure::new("not yet"))).await, Outcome::Failed);
    assert_eq!(handle(|_| panic!("a panic that the test has ordered")).await, Outcome::Failed);
    assert_eq!(handle(|event| if event.id == "a" { Ok(()) } else { panic!() }).await, Outcome::New);
    assert_eq!(handle(|_| panic!("it must not run")).await, Outcome::Duplicate);
}

#[tokio::test]
async fn a_dropped_event_can_be_claimed_again() {
    let receiver = receiver(MemoryLeases::new());
    drop(begun(&receiver, "a").await);
    assert_eq!(receiver.finish(Duration::ZERO).await, 0);
    begun(&receiver, "a").await.end(Ok(())).await;
    assert_eq!(answered(&receiver, "a").await.outcome(), Outcome::Duplicate);
}

#[tokio::test]
async fn a_timestamp_is_held_against_the_receivers_clock() {
    let receiver = receiver(MemoryLeases::new());
    for (at, outcome) in [(NOW - 299, None), (NOW - 301, Some(Outcome::RefusedSignature)), (NOW + 299, None)]
    {
        let id = format!("at-{at}");
        let opening = receiver.open(&Method::POST, &signed(&id, at, "{}"), Bytes::from_static(b"{}")).await;
        let refused = match &opening {
            Opening::Answered(answer) => Some(answer.outcome()),
            Opening::Begun(_) => None,
        };
        assert_eq!(refused, outcome, "{at}");
    }
}

#[tokio::test]
async fn a_challenge_is_answered_and_is_no_event() {
    let recipe = Recipe::slack();
    let secret = Secret::text("8f742231b10e8888abcd99yyyzzz85a5").unwrap();
    let leases = MemoryLeases::new();
    let receiver = Receiver::builder(Inspector::new(recipe, [secret]).unwrap(), leases)
        .clock(Clock::reading(|| NOW))
        .build();
    let body = r#"{"type":"url_verification","challenge":"3eZbrw1a"}"#;
    let unsigned = receiver.open(&Method::POST, &HeaderMap::new(), Bytes::from_static(body.as_bytes())).await;
    assert!(matches!(unsigned, Opening::Answered(answer) if answer.status() == 401));

    let mut headers = HeaderMap::new();
    headers.insert("x-slack-request-timestamp", NOW.into());
    headers.insert("x-slack-signature", slack_signature(body).parse().unwrap());
    let Opening::Answered(answer) =
        receiver.open(&Method::POST, &headers, Bytes::from_static(body.as_bytes())).await
    else {
        panic!("a challenge is no event");
    };
    assert_eq!((answer.outcome(), answer.status().as_u16()), (Outcome::Challenge, 200));
    assert_eq!(answer.body(), "3eZbrw1a");
    let nosniff =
        answer.headers().any(|(name, value)| name == "x-content-type-options" && value == "nosniff");
    assert!(nosniff);
}

/// `v0=` and the HMAC of `v0:<timestamp>:<body>`.
fn slack_signature(body: &str) -> String {
    use hmac::{Hmac, KeyInit, Mac};
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(b"8f742231b10e8888abcd99yyyzzz85a5").unwrap();
    mac.update(format!("v0:{NOW}:{body}").as_bytes());
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("v0={hex}")
}

#[tokio::test(start_paused = true)]
async fn work_that_lost_its_lease_is_not_called_done() {
    let leases = MemoryLeases::new();
    let receiver = Receiver::builder(inspector(), leases.clone())
        .clock(Clock::reading(|| NOW))
        .wait_timeout(Duration::from_secs(60))
        .on_failure(OnFailure::Acknowledge)
        .build();
    let mut slow = begun(&receiver, "a").await;
    slow.work().stop_renewing();
    let quick = begun(&receiver, "a").await;
    let answer = slow.end(Ok(())).await;
    // Not even with acknowledged failures: the copy in progress may still fail.
    assert_eq!((answer.outcome(), answer.status().as_u16()), (Outcome::Unavailable, 503));
    assert_eq!(quick.end(Ok(())).await.outcome(), Outcome::New);
    assert_eq!(leases.expired_leases(), 1);
}

/// A ledger whose server accepts connections and says nothing.
struct Silent;

impl Ledger for Silent {
    type Work = MemoryLease;

    const GUARANTEE: Guarantee = Guarantee::AtLeastOnce;

    async fn claim(&self, _: &Event, _: Duration) -> Result<Claim<MemoryLease>, LedgerError> {
        std::future::pending().await
    }

    async fn clean(&self, _: Duration) -> Result<u64, LedgerError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_never_answers_is_not_waited_for_for_ever() {
    let (receiver, limit) = (receiver(Silent), Duration::from_secs(60));
    let answer = tokio::time::timeout(limit, answered(&receiver, "a")).await.unwrap();
    assert_eq!((answer.outcome(), answer.status().as_u16()), (Outcome::Unavailable, 503));
}

/// Work whose end never comes.
struct Endless;

impl Work for Endless {
    async fn complete(self) -> Result<(), LedgerError> {
        std::future::pending().await
    }

    async fn abandon(self) {
        std::future::pending::<()>().await;
    }
}

struct NeverDone;

impl Ledger for NeverDone {
    type Work = Endless;

    const GUARANTEE: Guarantee = Guarantee::ExactlyOnceEffect;

    async fn claim(&self, _: &Event, _: Duration) -> Result<Claim<Endless>, LedgerError> {
        Ok(Claim::New(Endless))
    }

    async fn clean(&self, _: Duration) -> Result<u64, LedgerError> {
        Ok(0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_without_an_answer_is_claimed_again() {
    let receiver = receiver(NeverDone);
    let begun_once = begun(&receiver, "a").await;
    begun_once.event().after_commit(async { panic!("it was not committed") as Result<(), String> });
    let answer = begun_once.end(Ok(())).await;
    assert_eq!((answer.outcome(), answer.status().as_u16()), (Outcome::Unavailable, 503));
    let answer = begun(&receiver, "a").await.end(Err(Failure::new("no"))).await;
    assert_eq!((answer.outcome(), answer.status().as_u16()), (Outcome::Failed, 500));
    // It is not waited for without end either.
    assert_eq!(receiver.finish(Duration::from_secs(61)).await, 0);
}

#[test]
fn nothing_that_belongs_to_a_sender_shows_itself() {
    let headers = signed("a", NOW, "{}");
    let signature = headers["webhook-signature"].to_str().unwrap().to_owned();
    let event = Event::new("a", "t", "card 4111", headers);
    let text = format!("{event:?} {:?}", receiver(MemoryLeases::new()));
    assert!(!text.contains("4111") && !text.contains(&signature) && !text.contains("whsec"), "{text}");
}

#[test]
fn a_failure_tells_the_log_what_caused_it() {
    #[derive(Debug, thiserror::Error)]
    #[error("db error")]
    struct Outer(#[source] std::num::ParseIntError);

    let failure = Failure::from(Outer("x".parse::<u8>().unwrap_err()));
    assert!(format!("{failure:?}").contains("db error: invalid digit found in string"), "{failure:?}");
    let boxed: Box<dyn std::error::Error + Send + Sync> = Outer("x".parse::<u8>().unwrap_err()).into();
    let failure = Failure::caused_by(boxed);
    assert!(format!("{failure:?}").contains("db error: invalid digit found in string"), "{failure:?}");
}
