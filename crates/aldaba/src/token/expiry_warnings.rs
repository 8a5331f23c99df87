//! Tokens and API keys that are in use and expire soon: a warning in the log once a day, and a count for `/health`.

use aldaba_delivery::Timestamp;
use aldaba_store::{Actor, ActorIdentity};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;

const ONE_DAY: Duration = Duration::from_secs(24 * 3600);
/// How long before its expiry a token is warned of, unless it was issued for no longer than that.
const WARNING_PERIOD: Duration = Duration::from_secs(30 * 24 * 3600);
/// The interval between two warnings of one token.
const LOG_INTERVAL: Duration = ONE_DAY;
/// A token that was not used for this long is no longer in use.
const IN_USE_PERIOD: Duration = ONE_DAY;
/// Tokens beyond this number are neither counted nor warned of.
const MAX_TOKENS: usize = 1000;

/// The start and the end of a token's or key's validity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) issued_at: Timestamp,
    pub(super) expires_at: Timestamp,
}

impl Validity {
    fn ends_soon(self, now: Timestamp) -> bool {
        self.expires_at.since(now) <= WARNING_PERIOD && self.expires_at.since(self.issued_at) > WARNING_PERIOD
    }
}

/// Tokens that were used lately and expire soon, by a digest of each.
#[derive(Debug, Default)]
pub(crate) struct ExpiringTokens(Mutex<HashMap<[u8; 32], Expiring>>);

#[derive(Clone, Copy, Debug)]
struct Expiring {
    expires_at: Timestamp,
    used_at: Timestamp,
    logged_at: Timestamp,
}

impl Expiring {
    fn counts(&self, now: Timestamp) -> bool {
        self.expires_at > now && now.since(self.used_at) <= IN_USE_PERIOD
    }
}

impl ExpiringTokens {
    /// Notes a use. Only a token that expires soon costs more than a comparison.
    pub(super) fn used(&self, mark: [u8; 32], validity: Validity, actor: &Actor, now: Timestamp) {
        if !validity.ends_soon(now) {
            return;
        }
        let mut tokens = self.0.lock();
        if let Some(known) = tokens.get_mut(&mark) {
            known.used_at = now;
            if now.since(known.logged_at) < LOG_INTERVAL {
                return;
            }
            known.logged_at = now;
        } else {
            if tokens.len() >= MAX_TOKENS {
                tokens.retain(|_, token| token.counts(now));
            }
            if tokens.len() >= MAX_TOKENS {
                return;
            }
            let (expires_at, used_at, logged_at) = (validity.expires_at, now, now);
            tokens.insert(mark, Expiring { expires_at, used_at, logged_at });
        }
        drop(tokens);
        warn(actor, validity.expires_at);
    }

    /// The number of tokens that are in use and expire soon, and when the first of them does.
    pub(crate) fn count(&self, now: Timestamp) -> (usize, Option<Timestamp>) {
        let tokens = self.0.lock();
        let counted = tokens.values().filter(|token| token.counts(now)).map(|token| token.expires_at);
        (counted.clone().count(), counted.min())
    }
}

fn warn(actor: &Actor, expires_at: Timestamp) {
    let (prefix, name) = match &actor.identity {
        ActorIdentity::Key { prefix, name, .. } => (Some(prefix.as_str()), Some(name.as_str())),
        ActorIdentity::OrganizationToken { name } => (None, name.as_deref()),
        ActorIdentity::PortalToken { .. } | ActorIdentity::CommandLine | ActorIdentity::Program => {
            (None, None)
        }
    };
    let expires_at = jiff::Timestamp::from_millisecond(expires_at.millis()).unwrap_or(jiff::Timestamp::MAX);
    tracing::warn!(
        organization = %actor.org,
        kind = actor.identity.kind().name(),
        prefix,
        name,
        %expires_at,
        "a token that is in use expires soon: make a new one with `aldaba token create`, and give it to whoever uses this one"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_engine::default_organization;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn actor() -> Actor {
        Actor {
            org: default_organization(),
            identity: ActorIdentity::OrganizationToken { name: Some("ci".into()) },
        }
    }

    /// Issued and expiring this many days from now.
    fn validity(issued: i64, ends: i64) -> Validity {
        let day = |days: i64| Timestamp::from_millis(NOW.millis() + days * 86_400_000);
        Validity { issued_at: day(issued), expires_at: day(ends) }
    }

    #[test]
    fn only_what_was_meant_to_last_longer_is_counted_30_days_before_its_end() {
        let tokens = ExpiringTokens::default();
        tokens.used([1; 32], validity(-335, 31), &actor(), NOW);
        tokens.used([2; 32], validity(0, 30), &actor(), NOW);
        assert_eq!(tokens.count(NOW), (0, None));
        tokens.used([3; 32], validity(-340, 25), &actor(), NOW);
        tokens.used([4; 32], validity(-345, 20), &actor(), NOW);
        tokens.used([4; 32], validity(-345, 20), &actor(), NOW);
        assert_eq!(tokens.count(NOW), (2, Some(validity(0, 20).expires_at)));
    }

    #[test]
    fn what_is_no_longer_used_or_has_expired_is_not_counted() {
        let tokens = ExpiringTokens::default();
        tokens.used([1; 32], validity(-340, 25), &actor(), NOW);
        assert_eq!(tokens.count(NOW + ONE_DAY).0, 1);
        assert_eq!(tokens.count(NOW + ONE_DAY * 2).0, 0);
        tokens.used([1; 32], validity(-340, 25), &actor(), NOW + ONE_DAY * 24);
        assert_eq!(tokens.count(NOW + ONE_DAY * 24).0, 1);
        assert_eq!(tokens.count(NOW + ONE_DAY * 25).0, 0);
    }

    #[test]
    fn no_more_than_the_limit_are_remembered_and_those_out_of_use_give_way() {
        let tokens = ExpiringTokens::default();
        let mark = |number: usize| {
            let mut mark = [0; 32];
            mark[..8].copy_from_slice(&number.to_le_bytes());
            mark
        };
        for number in 0..MAX_TOKENS + 5 {
            tokens.used(mark(number), validity(-340, 25), &actor(), NOW);
        }
        assert_eq!(tokens.count(NOW).0, MAX_TOKENS);
        tokens.used(mark(MAX_TOKENS + 9), validity(-340, 25), &actor(), NOW + ONE_DAY * 3);
        assert_eq!(tokens.0.lock().len(), 1);
    }
}
