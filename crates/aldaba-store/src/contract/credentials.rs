//! Keys that callers show, and tokens that count no longer.

use crate::operations::{api_key, token};
use aldaba_delivery::{ApiKeyId, AppId, OrgId, Timestamp};
use std::time::Duration;

/// What a key may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyScope {
    /// Everything.
    Admin,
    /// Sending messages, and nothing else.
    Send,
    /// Looking at things, secrets apart.
    Read,
}

impl KeyScope {
    pub const ALL: [Self; 3] = [Self::Admin, Self::Send, Self::Read];

    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Send => "send",
            Self::Read => "read",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// An API key, as it is kept: the key itself is known to its holder alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    pub id: ApiKeyId,
    pub org: OrgId,
    /// `None`: it is for the whole organization.
    pub app: Option<AppId>,
    pub name: String,
    /// The part of the key that may be shown. No two keys have the same.
    pub prefix: String,
    /// SHA-256 of the key's text.
    pub digest: [u8; 32],
    pub scope: KeyScope,
    pub created_at: Timestamp,
    /// From then on it counts no longer.
    pub expires_at: Option<Timestamp>,
    /// About when it was last used.
    pub last_used_at: Option<Timestamp>,
}

impl ApiKey {
    /// How many an organization may have. All of them are in memory.
    pub const MAX_PER_ORGANIZATION: usize = 1000;

    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }
}

/// A signed token that counts no longer, though its time is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevokedToken {
    pub org: OrgId,
    /// A digest of what is signed in it.
    pub mark: [u8; 32],
    /// When it would have ended anyway; the row is not needed any more then. `None`: never.
    pub expires_at: Option<Timestamp>,
}

/// The end of portal tokens of an application: those of one session, or all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortalExpiry {
    pub app: AppId,
    pub session: Option<String>,
    /// It is about those that were issued before this moment…
    pub issued_before: Timestamp,
    /// …and they count until this one. The same moment: they end at once.
    pub ends_at: Timestamp,
    /// When they would have ended anyway. `None`: some may never, so it is kept with its application.
    pub expires_at: Option<Timestamp>,
}

impl PortalExpiry {
    /// Whether it has no delay. Then only the time of issue counts: a clock that is set back revives nothing.
    pub fn is_immediate(&self) -> bool {
        self.ends_at == self.issued_before
    }

    /// When a cut with a delay ends its tokens. Its `issued_before` may be later than that, after a clock that was ahead; it
    /// must not be the same moment, which would make the cut an immediate one.
    pub fn delayed_end(issued_before: Timestamp, ends_at: Timestamp) -> Timestamp {
        if ends_at == issued_before { ends_at + Duration::from_millis(1) } else { ends_at }
    }

    /// Whether a token that was issued at a moment is one that it has ended.
    pub fn ends(&self, issued_at: Option<Timestamp>, now: Timestamp) -> bool {
        (self.is_immediate() || now >= self.ends_at)
            && issued_at.is_none_or(|issued_at| issued_at < self.issued_before)
    }

    /// Whether `other` ends nothing, now or later, that this one does not end as early.
    pub fn covers(&self, other: &Self, now: Timestamp) -> bool {
        self.app == other.app
            && (self.session.is_none() || self.session == other.session)
            && self.issued_before >= other.issued_before
            && (self.is_immediate()
                || (!other.is_immediate() && self.ends_at.max(now) <= other.ends_at.max(now)))
    }
}

contract! {
    /// All of them, for a cache in memory.
    pub trait Credentials {
        reads {
            /// By id.
            read api_keys() -> Vec<ApiKey> = |reading| api_key::all(reading);

            read revoked_tokens() -> Vec<RevokedToken> = |reading| token::revoked(reading);
            read portal_expiries() -> Vec<PortalExpiry> = |reading| token::cuts(reading);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn cut(issued_before: i64, ends_at: i64) -> PortalExpiry {
        let (app, session) = (AppId::first_at(moment(0)), None);
        let (issued_before, ends_at) = (moment(issued_before), moment(ends_at));
        PortalExpiry { app, session, issued_before, ends_at, expires_at: None }
    }

    #[test]
    fn a_cut_ends_what_was_issued_before_it_once_its_time_has_come() {
        let cut = cut(10, 60);
        assert!(cut.ends(Some(moment(9)), moment(60)));
        assert!(!cut.ends(Some(moment(9)), moment(59)), "not yet");
        assert!(!cut.ends(Some(moment(10)), moment(99)), "issued after it");
        assert!(cut.ends(None, moment(60)), "nobody knows when it was issued");
    }

    #[test]
    fn a_delayed_cut_that_lies_past_one_of_a_clock_that_was_ahead_is_delayed_all_the_same() {
        for ends_at in [20, 3600, 4000] {
            let ends_at = PortalExpiry::delayed_end(moment(3600), moment(ends_at));
            let cut = PortalExpiry { ends_at, ..cut(3600, 0) };
            assert!(!cut.is_immediate() && !cut.ends(Some(moment(9)), moment(19)), "{ends_at:?}");
            assert!(cut.ends(Some(moment(9)), moment(4000)), "{ends_at:?}");
        }
    }

    #[test]
    fn a_cut_covers_another_that_ends_nothing_more_or_earlier() {
        let now = moment(20);
        assert!(cut(20, 20).covers(&cut(10, 10), now), "both have come");
        assert!(!cut(10, 10).covers(&cut(20, 20), now));
        assert!(!cut(20, 90).covers(&cut(10, 10), now), "what has ended would live again");
        assert!(cut(20, 90).covers(&cut(10, 91), now));
        let of_session = PortalExpiry { session: Some("s".into()), ..cut(10, 10) };
        assert!(cut(20, 20).covers(&of_session, now), "what is for all is for every session");
        assert!(!of_session.covers(&cut(10, 10), now));
        let of_another = PortalExpiry { session: Some("t".into()), ..cut(20, 20) };
        assert!(!of_another.covers(&of_session, now));
    }
}
