//! The public halves of signing keys, for receivers that verify.
//!
//! Anybody may ask, without a token. So repeated requests are answered from memory, responses are made one at a time,
//! and all requests together have a rate: they cannot take anything from other callers.

use crate::api::request::ids::Ids;
use crate::api::response::code::Code;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::questions::{Missing, PublicQuestions};
use aldaba_api::value::Shows;
use aldaba_api::{KeySet, KeySetView, PublicKeyView};
use aldaba_delivery::{AppId, Timestamp};
use aldaba_store::Page;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Endpoints in one read. Opening their secrets costs as much as a request.
const ENDPOINTS_PER_READ: usize = 100;
/// Requests per second, of all callers together.
const REQUESTS_PER_SECOND: u32 = 100;
/// Requests that unused time may add.
const MAX_BURST: u32 = 200;
/// Bytes of the cached responses. When there are more, the cache is cleared.
const MAX_CACHE_BYTES: usize = 4 << 20;
/// The cost of a cached response besides its bytes.
const ENTRY_BYTES: usize = 200;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/jwks.json", Access::Open, public_keys)
            .named(
                "v1.application.jwks",
                "Lists the public Ed25519 keys that sign for an application's endpoints; takes its id, not its uid",
            )
            .answers::<KeySet>(StatusCode::OK)
            .or_error(StatusCode::TOO_MANY_REQUESTS),
    ]
}

/// The cached responses, and the rate of requests.
#[derive(Debug)]
pub(crate) struct KeySets {
    answers: Mutex<KeySetCache>,
    /// Held while a response is made.
    making: Semaphore,
    rate: Mutex<Rate>,
}

#[derive(Debug, Default)]
struct KeySetCache {
    by_application: HashMap<AppId, CachedKeySet>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct CachedKeySet {
    /// The version of the application's configuration.
    version: u64,
    /// When the first of its keys stops signing.
    until: Option<Timestamp>,
    body: Bytes,
}

impl KeySets {
    pub(crate) fn new() -> Self {
        Self { answers: Mutex::default(), making: Semaphore::new(1), rate: Mutex::default() }
    }

    fn find(&self, app: AppId, version: u64, now: Timestamp) -> Option<Bytes> {
        let answers = self.answers.lock();
        let answer = answers.by_application.get(&app)?;
        let counts = answer.version == version && answer.until.is_none_or(|until| until > now);
        counts.then(|| answer.body.clone())
    }

    fn keep(&self, app: AppId, answer: CachedKeySet) {
        let mut answers = self.answers.lock();
        let size = |answer: &CachedKeySet| answer.body.len() + ENTRY_BYTES;
        let more = size(&answer);
        if let Some(before) = answers.by_application.remove(&app) {
            answers.bytes -= size(&before);
        }
        if answers.bytes + more > MAX_CACHE_BYTES {
            *answers = KeySetCache::default();
        }
        if more <= MAX_CACHE_BYTES {
            answers.bytes += more;
            answers.by_application.insert(app, answer);
        }
    }
}

/// A token bucket: when the used tokens will have been earned, on the monotonic clock.
#[derive(Debug, Default)]
struct Rate(Duration);

impl Rate {
    const EACH: Duration = Duration::from_nanos(1_000_000_000 / REQUESTS_PER_SECOND as u64);

    /// Takes a token, or says how long to wait.
    fn take(&mut self, now: Duration) -> Result<(), Duration> {
        let after = self.0.max(now) + Self::EACH;
        match after.checked_sub(now + Self::EACH * MAX_BURST) {
            Some(over) if !over.is_zero() => Err(over),
            _ => {
                self.0 = after;
                Ok(())
            }
        }
    }

    /// Counts further requests, with or without tokens for them.
    fn charge(&mut self, requests: u32, now: Duration) {
        self.0 = self.0.max(now) + Self::EACH * requests;
    }
}

fn refusal(wait: Duration) -> Error {
    let seconds = u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(1);
    let detail = format!(
        "Public keys are asked for more than {REQUESTS_PER_SECOND} times a second, by all together. Keep what you have read, and \
         try again in {seconds} s"
    );
    Error::too_many(Code::RateLimited, detail, seconds)
}

/// Public, like all keys for verifying. An application is named by its id alone, because uids belong to an
/// organization.
async fn public_keys(State(api): State<Api>, Ids(app): Ids<String>) -> Result<Response, Error> {
    api.key_sets.rate.lock().take(api.engine.clock().monotonic()).map_err(refusal)?;
    let app: AppId = app.parse().map_err(|_| Missing::PublicApplication)?;
    if let Some(body) = remembered(&api, app).await? {
        return Ok(answer(body));
    }
    let Ok(_making) = api.key_sets.making.acquire().await else { return Err(Error::server()) };
    // The request before this one may have made it.
    if let Some(body) = remembered(&api, app).await? {
        return Ok(answer(body));
    }
    // The version first: a later change makes the next request read again.
    let version = PublicQuestions(&api.engine).application_version(app).await?;
    let (set, until) = make(&api, app).await?;
    let body = Bytes::from(serde_json::to_vec(&set).unwrap_or_default());
    api.key_sets.keep(app, CachedKeySet { version, until, body: body.clone() });
    Ok(answer(body))
}

fn answer(body: Bytes) -> Response {
    (StatusCode::OK, [(CONTENT_TYPE, "application/json")], body).into_response()
}

async fn remembered(api: &Api, app: AppId) -> Result<Option<Bytes>, Error> {
    let version = PublicQuestions(&api.engine).application_version(app).await?;
    Ok(api.key_sets.find(app, version, api.engine.clock().now()))
}

async fn make(api: &Api, app: AppId) -> Result<(impl Shows<KeySet>, Option<Timestamp>), Error> {
    let mut found: BTreeMap<[u8; 32], Vec<String>> = BTreeMap::new();
    let mut first_end: Option<Timestamp> = None;
    let mut page = Page { after: None, limit: ENDPOINTS_PER_READ };
    loop {
        let endpoints = PublicQuestions(&api.engine).signing_endpoints(app, page).await?;
        api.key_sets.rate.lock().charge(1, api.engine.clock().monotonic());
        for endpoint in &endpoints {
            for (key, until) in api.engine.directory().public_keys(endpoint)? {
                found.entry(key).or_default().push(endpoint.id.to_string());
                first_end = first_end.into_iter().chain(until).min();
            }
        }
        match endpoints.last() {
            Some(last) if endpoints.len() == ENDPOINTS_PER_READ => page.after = Some(last.id),
            _ => break,
        }
        // Lets other requests run.
        tokio::task::yield_now().await;
    }
    let key = |(key, endpoints): ([u8; 32], Vec<String>)| PublicKeyView {
        kty: "OKP",
        crv: "Ed25519",
        alg: "EdDSA",
        usage: "sig",
        kid: BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(key)[..12]),
        x: BASE64_URL_SAFE_NO_PAD.encode(key),
        endpoints,
    };
    Ok((KeySetView { keys: found.into_iter().map(key).collect::<Vec<_>>() }, first_end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn answer(version: u64, until: Option<Timestamp>, bytes: usize) -> CachedKeySet {
        CachedKeySet { version, until, body: vec![b'x'; bytes].into() }
    }

    #[test]
    fn an_answer_is_remembered_until_the_application_changes_or_a_key_ends() {
        let (sets, app) = (KeySets::new(), AppId::first_at(at(1)));
        sets.keep(app, answer(7, Some(at(50)), 10));
        assert!(sets.find(app, 7, at(49)).is_some());
        assert!(sets.find(app, 7, at(50)).is_none());
        assert!(sets.find(app, 8, at(49)).is_none());
        assert!(sets.find(AppId::last_at(at(1)), 7, at(49)).is_none());
    }

    #[test]
    fn what_is_remembered_has_an_end() {
        let sets = KeySets::new();
        let app = |n: u8| AppId::from_bytes([n; 20]);
        for n in 0..100 {
            sets.keep(app(n), answer(1, None, MAX_CACHE_BYTES / 20));
            assert!(sets.find(app(n), 1, at(0)).is_some());
            let held: usize = sets.answers.lock().by_application.values().map(|one| one.body.len()).sum();
            assert!(held <= MAX_CACHE_BYTES);
        }
        sets.keep(app(1), answer(1, None, MAX_CACHE_BYTES + 1));
        assert!(sets.find(app(1), 1, at(0)).is_none(), "too large to be remembered");
        sets.keep(app(2), answer(1, None, 10));
        sets.keep(app(2), answer(2, None, 20));
        assert_eq!(sets.answers.lock().bytes, 20 + ENTRY_BYTES);
    }

    #[test]
    fn all_together_have_a_rate_and_what_is_made_counts_for_more() {
        let mut rate = Rate::default();
        let let_in = |rate: &mut Rate, from: u64, to: u64| {
            (from..to)
                .flat_map(|ms| [ms; 10])
                .filter(|ms| rate.take(Duration::from_millis(*ms)).is_ok())
                .count()
        };
        assert_eq!(let_in(&mut rate, 0, 1000), 299, "the burst, and what is earned meanwhile");
        assert_eq!(let_in(&mut rate, 1000, 3000), 200);
        rate.charge(100, Duration::from_secs(3));
        assert_eq!(let_in(&mut rate, 3000, 3900), 0);
        assert!(rate.take(Duration::from_millis(3900)).unwrap_err() > Duration::from_millis(50));
    }
}
