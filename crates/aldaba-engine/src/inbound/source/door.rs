//! One door: what comes in is looked at here, before anything is stored.

use super::compile::{Compiled, compile};
use super::kind::{self, META, MICROSOFT_GRAPH};
use super::settings::{Answer, SourceSettings};
use crate::inbound::forwarded::ForwardedHeaders;
use crate::{Vault, VaultError};
use aldaba_delivery::{AppId, OrgId, SourceId, Timestamp};
use aldaba_signature::inbound::{Arrival, Refusal, challenge};
use aldaba_store::{Source, SourceToken};
use http::{HeaderMap, HeaderName, Method};
use serde::Deserialize;
use std::fmt;
use std::time::Duration;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A source as it is kept in memory: with its secrets open, and all that it was told read.
pub struct Door {
    pub id: SourceId,
    pub org: OrgId,
    pub app: AppId,
    kind: String,
    tokens: Vec<SourceToken>,
    settings: SourceSettings,
    compiled: Compiled,
}

/// What a request turned out to be, once its signature held.
#[derive(Debug)]
pub enum Opened {
    /// The sender asks whether this receiver is one.
    Challenge(challenge::Answer),
    /// The source's filters do not want it.
    Ignored,
    Event(InboundEvent),
}

/// An event on its way in.
#[derive(Debug)]
pub struct InboundEvent {
    /// What its sender calls it. `None`: its sender has no names for events, and no two are the same.
    pub id: Option<String>,
    /// As our names are.
    pub event_type: String,
    pub headers: ForwardedHeaders,
}

/// Why a request is not taken. Nothing of it is quoted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DoorError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("`clientState` is not the one that this source knows, or is missing")]
    ClientState,
    #[error("the headers that are forwarded are larger than {} bytes together", ForwardedHeaders::MOST_BYTES)]
    HeadersTooLarge,
    /// As many large bodies as may wait at this door do.
    #[error("as many large bodies of this source wait as may. Nothing was stored; try again")]
    Busy,
}

impl DoorError {
    /// Whether the sender could not show that it is the sender.
    pub fn is_unauthorized(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.is_unauthorized(),
            Self::ClientState => true,
            Self::HeadersTooLarge | Self::Busy => false,
        }
    }

    /// Whether it was the sender who sent it, as far as a source tells senders from others. What was sent away before it was
    /// looked at may be anybody's.
    pub fn is_the_senders(&self) -> bool {
        !self.is_unauthorized() && *self != Self::Busy
    }
}

impl Door {
    pub(super) fn new(source: Source, vault: &Vault) -> Result<Self, VaultError> {
        let secrets = vault.open_source(source.org, source.id, &source.sealed)?;
        let settings = SourceSettings::read(&source.config.settings).ok_or(VaultError)?;
        // It was compiled before it was stored: only a newer version can have stored another.
        let compiled = compile(&source.config.kind, &settings, &secrets).map_err(|_| VaultError)?;
        let Source { id, org, app, config, tokens, .. } = source;
        Ok(Self { id, org, app, kind: config.kind, tokens, settings, compiled })
    }

    /// Whether one of its tokens, which is known by its digest, counts.
    pub(super) fn counts(&self, digest: &[u8; 32], now: Timestamp) -> bool {
        self.tokens.iter().any(|token| token.digest == *digest && token.counts(now))
    }

    /// Whether whoever sends must show that it is the sender.
    pub fn verifies(&self) -> bool {
        self.kind == MICROSOFT_GRAPH || self.compiled.inspector.recipe().is_signed()
    }

    /// The methods that it takes.
    pub fn methods(&self) -> &'static str {
        if self.kind == META { "GET, POST" } else { "POST" }
    }

    /// What the sender hears in the place of our own words.
    pub fn answer(&self) -> Option<&Answer> {
        self.settings.answer.as_ref()
    }

    /// A challenge that is told from its address alone: Meta's and Microsoft Graph's.
    pub fn challenge(&self, method: &Method, query: Option<&str>) -> Option<challenge::Answer> {
        let query = query?;
        match (self.kind.as_str(), &self.compiled.verify_token) {
            (META, Some(token)) if method == Method::GET => challenge::meta(query, token),
            (MICROSOFT_GRAPH, _) if method == Method::POST => challenge::microsoft_graph(query),
            _ => None,
        }
    }

    /// Looks at the signature first, and only then at anything else. `now_secs`: the time of day.
    pub fn open(&self, headers: &HeaderMap, body: &[u8], now_secs: i64) -> Result<Opened, DoorError> {
        let Compiled { inspector, client_states, conditions, forward, .. } = &self.compiled;
        if self.kind == MICROSOFT_GRAPH && !knows_state(body, client_states) {
            return Err(DoorError::ClientState);
        }
        let inspected = match inspector.open(headers, body, now_secs)? {
            Arrival::Challenge(answer) => return Ok(Opened::Challenge(answer)),
            Arrival::Event(inspected) => inspected,
        };
        let given = inspected.event_type.as_deref();
        let event_type = given.map_or_else(|| kind::event_type(&self.kind), kind::mapped);
        let wanted = &self.settings.filter_types;
        let of_type = wanted.is_empty() || wanted.iter().any(|name| kind::mapped(name) == event_type);
        if !of_type || !conditions.iter().all(|(name, values)| holds(headers, name, values)) {
            return Ok(Opened::Ignored);
        }
        let headers = ForwardedHeaders::pick(forward, headers).ok_or(DoorError::HeadersTooLarge)?;
        let id = (!kind::has_no_ids(&self.kind, &self.settings)).then_some(inspected.id);
        Ok(Opened::Event(InboundEvent { id, event_type, headers }))
    }

    /// How long an event id is remembered at least.
    pub fn duplicate_window(&self) -> Duration {
        let days = self.settings.duplicate_window_days.unwrap_or(SourceSettings::DEFAULT_WINDOW);
        Duration::from_secs(u64::from(days) * 24 * 3600)
    }

    pub(super) fn takes_other_body(&self) -> bool {
        self.settings.other_body_is_duplicate
    }
}

fn holds(headers: &HeaderMap, name: &HeaderName, values: &[String]) -> bool {
    let fits =
        |given: &[u8]| values.is_empty() || values.iter().any(|value| value.as_bytes() == given.trim_ascii());
    headers.get_all(name).iter().any(|given| fits(given.as_bytes()))
}

/// Every notification of the body must have it.
fn knows_state(body: &[u8], known: &[Zeroizing<String>]) -> bool {
    #[derive(Deserialize)]
    struct Notifications {
        value: Vec<Notification>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Notification {
        client_state: Option<String>,
    }
    let Ok(Notifications { value }) = serde_json::from_slice(body) else { return false };
    let fits = |given: &str| known.iter().any(|known| bool::from(known.as_bytes().ct_eq(given.as_bytes())));
    !value.is_empty() && value.iter().all(|one| one.client_state.as_deref().is_some_and(fits))
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("id", &self.id).field("kind", &self.kind).finish_non_exhaustive()
    }
}
