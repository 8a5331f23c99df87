//! Inspects an inbound request before anything is stored.

use super::compile::{CompiledSource, compile};
use super::settings::{SourceAnswer, SourceSettings};
use super::types::{self, META, MICROSOFT_GRAPH};
use crate::inbound::forwarded::ForwardedHeaders;
use crate::{EventTrace, Vault, VaultError};
use aldaba_delivery::{AppId, OrgId, SourceId, Timestamp};
use aldaba_signature::inbound::{Arrival, Refusal, challenge};
use aldaba_store::{Source, SourceToken};
use http::{HeaderMap, HeaderName, Method};
use serde::Deserialize;
use std::fmt;
use std::time::Duration;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A source in the cache: its secrets decrypted and its settings parsed.
pub struct LoadedSource {
    pub id: SourceId,
    pub org: OrgId,
    pub app: AppId,
    kind: String,
    tokens: Vec<SourceToken>,
    settings: SourceSettings,
    compiled: CompiledSource,
}

/// What an inbound request is, once its signature is verified.
#[derive(Debug)]
pub enum InspectedRequest {
    /// The sender verifies this URL.
    Challenge(challenge::Answer),
    /// The source's filters reject it.
    Ignored,
    Event(InboundEvent),
}

/// An inbound event.
#[derive(Debug)]
pub struct InboundEvent {
    /// The sender's id of the event. `None`: its sender has no ids, and no two events are the same.
    pub id: Option<String>,
    /// Mapped to the allowed characters.
    pub event_type: String,
    pub headers: ForwardedHeaders,
    pub trace: EventTrace,
}

/// Why an inbound request is refused. Nothing of the request is quoted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InboundError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("`clientState` is missing or wrong")]
    ClientState,
    #[error("the forwarded headers are larger than {} bytes in total", ForwardedHeaders::MAX_BYTES)]
    HeadersTooLarge,
    /// The queue of large bodies of this source is full.
    #[error("too many large bodies of this source are waiting. Nothing was stored; try again")]
    Busy,
}

impl InboundError {
    /// Whether the sender failed to authenticate.
    pub fn is_unauthorized(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.is_unauthorized(),
            Self::ClientState => true,
            Self::HeadersTooLarge | Self::Busy => false,
        }
    }

    /// Whether the authenticated sender sent it, as far as the source authenticates. A request refused
    /// before inspection may be anyone's.
    pub fn is_from_sender(&self) -> bool {
        !self.is_unauthorized() && *self != Self::Busy
    }
}

impl LoadedSource {
    pub(super) fn new(source: Source, vault: &Vault) -> Result<Self, VaultError> {
        let secrets = vault.open_source(source.org, source.id, &source.sealed)?;
        let settings = SourceSettings::read(&source.config.settings).ok_or(VaultError)?;
        // It was checked before it was stored: only a newer version can have stored another.
        let compiled = compile(&source.config.kind, &settings, &secrets).map_err(|_| VaultError)?;
        let Source { id, org, app, config, tokens, .. } = source;
        Ok(Self { id, org, app, kind: config.kind, tokens, settings, compiled })
    }

    /// Whether one of its tokens has this digest and is valid.
    pub(super) fn accepts_token(&self, digest: &[u8; 32], now: Timestamp) -> bool {
        self.tokens.iter().any(|token| token.digest == *digest && token.counts(now))
    }

    /// Whether senders must authenticate.
    pub fn verifies(&self) -> bool {
        self.kind == MICROSOFT_GRAPH || self.compiled.inspector.recipe().is_signed()
    }

    /// The allowed HTTP methods.
    pub fn methods(&self) -> &'static str {
        if self.kind == META { "GET, POST" } else { "POST" }
    }

    /// The configured answer to the sender, if any.
    pub fn answer(&self) -> Option<&SourceAnswer> {
        self.settings.answer.as_ref()
    }

    /// Answers a verification challenge that is in the URL alone: Meta's and Microsoft Graph's.
    pub fn challenge(&self, method: &Method, query: Option<&str>) -> Option<challenge::Answer> {
        let query = query?;
        match (self.kind.as_str(), &self.compiled.verify_token) {
            (META, Some(token)) if method == Method::GET => challenge::meta(query, token),
            (MICROSOFT_GRAPH, _) if method == Method::POST => challenge::microsoft_graph(query),
            _ => None,
        }
    }

    /// Verifies the signature first, then everything else. `now_secs`: the current time.
    pub fn inspect(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now_secs: i64,
    ) -> Result<InspectedRequest, InboundError> {
        let CompiledSource { inspector, client_states, conditions, forward, .. } = &self.compiled;
        if self.kind == MICROSOFT_GRAPH && !has_client_state(body, client_states) {
            return Err(InboundError::ClientState);
        }
        let inspected = match inspector.open(headers, body, now_secs)? {
            Arrival::Challenge(answer) => return Ok(InspectedRequest::Challenge(answer)),
            Arrival::Event(inspected) => inspected,
        };
        let given = inspected.event_type.as_deref();
        let event_type = given.map_or_else(|| types::event_type(&self.kind), types::to_event_type);
        let wanted = &self.settings.filter_types;
        let of_type = wanted.is_empty() || wanted.iter().any(|name| types::to_event_type(name) == event_type);
        if !of_type || !conditions.iter().all(|(name, values)| holds(headers, name, values)) {
            return Ok(InspectedRequest::Ignored);
        }
        let headers = ForwardedHeaders::pick(forward, headers).ok_or(InboundError::HeadersTooLarge)?;
        let id = (!types::has_no_ids(&self.kind, &self.settings)).then_some(inspected.id);
        Ok(InspectedRequest::Event(InboundEvent { id, event_type, headers, trace: EventTrace::default() }))
    }

    /// How long an event id is remembered at least.
    pub fn duplicate_window(&self) -> Duration {
        let days = self.settings.duplicate_window_days.unwrap_or(SourceSettings::DEFAULT_WINDOW_DAYS);
        Duration::from_secs(u64::from(days) * 24 * 3600)
    }

    pub(super) fn allows_other_body(&self) -> bool {
        self.settings.other_body_is_duplicate
    }
}

fn holds(headers: &HeaderMap, name: &HeaderName, values: &[String]) -> bool {
    let fits =
        |given: &[u8]| values.is_empty() || values.iter().any(|value| value.as_bytes() == given.trim_ascii());
    headers.get_all(name).iter().any(|given| fits(given.as_bytes()))
}

/// Whether every notification of the body has a known `clientState`.
fn has_client_state(body: &[u8], known: &[Zeroizing<String>]) -> bool {
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

impl fmt::Debug for LoadedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("id", &self.id).field("kind", &self.kind).finish_non_exhaustive()
    }
}
