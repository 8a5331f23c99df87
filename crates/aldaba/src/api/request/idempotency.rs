//! The header `idempotency-key`: when two requests are the same.

use aldaba_delivery::OrgId;
use aldaba_engine::IdempotencyDigest;
use aldaba_store::RequestDigest;
use axum::extract::MatchedPath;
use http::header::AUTHORIZATION;
use http::request::Parts;
use sha2::{Digest, Sha256};
use std::fmt;

/// The key of a request, before its ids are looked up.
pub(crate) struct RequestKey {
    /// Has read the key, the method and the route.
    hash: Sha256,
    former: [u8; 16],
}

impl RequestKey {
    /// `None`: the header is missing, or has no key in it.
    pub(crate) fn of(parts: &Parts) -> Option<Box<Self>> {
        let key = parts.headers.get("idempotency-key")?.as_bytes();
        if key.trim_ascii().is_empty() {
            return None;
        }
        let route = parts.extensions.get::<MatchedPath>().map_or(parts.uri.path(), MatchedPath::as_str);
        let mut hash = Sha256::new();
        for part in [key, parts.method.as_str().as_bytes(), route.as_bytes()] {
            add(&mut hash, part);
        }
        Some(Box::new(Self { hash, former: former(parts, key) }))
    }

    /// Covers key, method, route, organization and `ids`: those of the things in the path, without the application.
    /// The store keeps keys by application, or by organization if the route has none. Credential, query and body are
    /// not covered.
    pub(crate) fn digest(&self, org: OrgId, ids: &[&[u8]]) -> RequestDigest {
        let mut hash = self.hash.clone();
        add(&mut hash, org.as_bytes());
        for id in ids {
            add(&mut hash, id);
        }
        RequestDigest { current: first_half(hash), former: Some(self.former) }
    }
}

impl fmt::Debug for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestKey")
    }
}

/// Gives each item of a list its own digest, by its position.
pub(crate) fn of_item(once: IdempotencyDigest, place: usize) -> IdempotencyDigest {
    let digest = |whole: [u8; 16]| {
        let mut hash = Sha256::new();
        hash.update(whole);
        hash.update(u64::try_from(place).unwrap_or(u64::MAX).to_be_bytes());
        first_half(hash)
    };
    once.map(|RequestDigest { current, former }| RequestDigest {
        current: digest(current),
        former: former.map(digest),
    })
}

/// Adds the length too, so that the parts cannot run into each other.
fn add(hash: &mut Sha256, part: &[u8]) {
    hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
    hash.update(part);
}

fn first_half(hash: Sha256) -> [u8; 16] {
    let digest: [u8; 32] = hash.finalize().into();
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    half
}

/// The digest of earlier versions: over the credential, the key, and path and query without the name of the
/// application. [`RequestDigest::former`] says when this can be removed.
fn former(parts: &Parts, key: &[u8]) -> [u8; 16] {
    let credential = parts.headers.get(AUTHORIZATION).map_or(&[][..], |value| value.as_bytes());
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let (before, after) = around_application(path);
    let mut hash = Sha256::new();
    for part in [credential, key] {
        hash.update(part);
        hash.update([0]);
    }
    hash.update(before);
    hash.update(after);
    hash.update([0]);
    first_half(hash)
}

/// A path without the name of its application: the parts before and after the name.
fn around_application(path: &str) -> (&str, &str) {
    const INTO: &str = "/app/";
    let Some(start) = path.find(INTO).map(|start| start + INTO.len()) else { return (path, "") };
    match path[start..].find('/') {
        Some(length) => (&path[..start], &path[start + length..]),
        // The path names the application itself.
        None => (path, ""),
    }
}
