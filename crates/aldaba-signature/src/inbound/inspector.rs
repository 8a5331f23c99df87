use super::challenge::{self, Answer};
use super::identity::Content;
use super::place::is_header_name;
use super::recipe::{Check, Handshake};
use super::{Encoding, Found, Headers, Hmac, Inspected, Place, PlaceError, Recipe, Refusal, Secret};
use crate::decoded::DecodedSignature;
use crate::verify::MAX_SIGNATURES;
use crate::{Verifier, VerifyingKey};
use serde_json::Value;
use std::fmt;
use std::time::Duration;
use thiserror::Error;

/// The maximum number of secrets of one inspector.
pub const MAX_SECRETS: usize = 10;

/// Inspects requests: first the signature, then the id and type of the event.
///
/// Several secrets are valid together, so that one can be replaced without a gap. If the recipe's signature covers a
/// timestamp, messages outside the tolerance ([`DEFAULT_TOLERANCE`](crate::DEFAULT_TOLERANCE)) are rejected; otherwise
/// there is no replay window ([`Recipe::has_window`]).
#[derive(Clone, Debug)]
pub struct Inspector {
    recipe: Recipe,
    verifier: Verifier,
}

/// The kind of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// An event whose signature, if the recipe has one, is valid.
    Event(Inspected),
    /// The sender asks whether this receiver is one. It is no event: it gets this answer and nothing else.
    Challenge(Answer),
}

/// Why a recipe and its secrets cannot form an inspector.
#[derive(Clone, Copy, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetupError {
    /// The recipe checks a signature, and there is no secret.
    #[error("the recipe checks a signature, so it needs at least one secret")]
    NoSecret,
    /// There are too many secrets.
    #[error("an inspector accepts at most {MAX_SECRETS} secrets")]
    TooManySecrets,
    /// The recipe checks no signature, and there are secrets.
    #[error("the recipe checks no signature: leave the secrets out, or choose another recipe")]
    SecretUnused,
    /// The recipe names a header that cannot exist.
    #[error("the recipe has an invalid header name: {0}")]
    HeaderName(#[from] PlaceError),
    /// The signature covers the id, and the recipe does not name exactly one header for it.
    #[error("the signature covers `{{id}}`, so the recipe must name one header for it, and no other place")]
    SignedIdPlace,
    /// The signature covers a timestamp, and the recipe names no header for it.
    #[error("the signature covers `{{timestamp}}`, so the recipe must name its header")]
    TimestampPlace,
    /// The recipe names a header for a timestamp that the signature does not cover.
    #[error(
        "the recipe names a header for a timestamp that the signature does not cover: it would protect nothing"
    )]
    TimestampUnsigned,
}

/// `Debug` shows the same text as `Display`, as for [`SecretError`](super::SecretError).
impl fmt::Debug for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Inspector {
    /// An inspector with a recipe and the secrets that are valid now.
    ///
    /// # Errors
    /// Fails if the recipe and the secrets do not match.
    pub fn new(recipe: Recipe, secrets: impl IntoIterator<Item = Secret>) -> Result<Self, SetupError> {
        let keys: Vec<VerifyingKey> = secrets.into_iter().map(|secret| secret.0).collect();
        check_names(&recipe)?;
        match (recipe.is_signed(), keys.len()) {
            (true, 0) => Err(SetupError::NoSecret),
            (false, 1..) => Err(SetupError::SecretUnused),
            (true, count) if count > MAX_SECRETS => Err(SetupError::TooManySecrets),
            _ => Ok(Self { recipe, verifier: Verifier::new(keys) }),
        }
    }

    /// Sets the tolerance of timestamps, in both directions. It has no effect on a recipe without a replay window.
    pub fn with_tolerance(self, tolerance: Duration) -> Self {
        Self { verifier: self.verifier.with_tolerance(tolerance), ..self }
    }

    /// The recipe of this inspector.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Inspects the headers, the exact bytes of the body, and the time of day in seconds since 1970.
    pub fn inspect<'h>(
        &self,
        headers: impl Headers<'h>,
        body: &[u8],
        now_secs: i64,
    ) -> Result<Inspected, Refusal> {
        let signed_id = self.check(&self.verifier, headers, body, now_secs)?;
        Content::new(headers, body).identify(&self.recipe, signed_id)
    }

    /// The same for receivers that also answer signed challenges: those of Slack and Zoom.
    pub fn open<'h>(
        &self,
        headers: impl Headers<'h>,
        body: &[u8],
        now_secs: i64,
    ) -> Result<Arrival, Refusal> {
        let signed_id = self.check(&self.verifier, headers, body, now_secs)?;
        let content = Content::new(headers, body);
        if let Some(handshake) = self.recipe.handshake
            && let Some(document) = content.document()
            && let Some(answer) = self.answer(handshake, document, headers, body, now_secs)
        {
            return Ok(Arrival::Challenge(answer));
        }
        content.identify(&self.recipe, signed_id).map(Arrival::Event)
    }

    /// Checks the signature only.
    pub fn verify<'h>(&self, headers: impl Headers<'h>, body: &[u8], now_secs: i64) -> Result<(), Refusal> {
        self.check(&self.verifier, headers, body, now_secs).map(|_| ())
    }

    /// Checks the signature; returns the id that it covers, if any.
    fn check<'h>(
        &self,
        verifier: &Verifier,
        headers: impl Headers<'h>,
        body: &[u8],
        now_secs: i64,
    ) -> Result<Option<&'h str>, Refusal> {
        match &self.recipe.check {
            Check::None => Ok(None),
            Check::Standard(prefixes) => {
                let prefix = sent_under(prefixes, headers);
                let signatures = needed(headers, &format!("{prefix}-signature"))?;
                let timestamp = needed(headers, &format!("{prefix}-timestamp"))?;
                let id = needed_id(headers, &format!("{prefix}-id"))?;
                verifier.verify(id, timestamp, signatures, body, now_secs)?;
                Ok(Some(id))
            }
            Check::Timestamped { header, hash, .. } => {
                verifier.verify_timestamped(*hash, needed(headers, header)?, body, now_secs)?;
                Ok(None)
            }
            Check::Hmac(hmac) => self.check_hmac(verifier, hmac, headers, body, now_secs),
        }
    }

    fn check_hmac<'h>(
        &self,
        verifier: &Verifier,
        hmac: &Hmac,
        headers: impl Headers<'h>,
        body: &[u8],
        now_secs: i64,
    ) -> Result<Option<&'h str>, Refusal> {
        let signatures = needed(headers, &hmac.header)?;
        let mut timestamp = "";
        if let Some(place) = &hmac.timestamp {
            timestamp = needed(headers, &place.header)?;
            verifier.check_timestamp(timestamp, place.unit, now_secs)?;
        }
        let id = match self.recipe.id.first() {
            Some(Place::Header(name)) if hmac.signed.has_id() => Some(needed_id(headers, name)?),
            _ => None,
        };
        let message = hmac.signed.fill(id.unwrap_or_default(), timestamp, body);
        verifier.check_signatures(hmac.hash, &given(hmac, signatures), &message)?;
        Ok(id)
    }

    /// Answers a challenge; `None` if the request is not one.
    fn answer<'h>(
        &self,
        handshake: Handshake,
        document: &Value,
        headers: impl Headers<'h>,
        body: &[u8],
        now_secs: i64,
    ) -> Option<Answer> {
        match handshake {
            Handshake::Slack => challenge::slack_in(document),
            Handshake::Zoom => {
                let token = challenge::zoom_token(document)?;
                // The answer must use the secret with which the request was signed.
                let alone = |key: &&VerifyingKey| {
                    let verifier = self.verifier.with_only((*key).clone());
                    self.check(&verifier, headers, body, now_secs).is_ok()
                };
                challenge::zoom_answer(token, self.verifier.keys().iter().find(alone)?)
            }
        }
    }
}

/// The first of several prefixes whose signature is present.
fn sent_under<'r, 'h>(prefixes: &'r [String], headers: impl Headers<'h>) -> &'r str {
    let came = |prefix: &&String| headers.find(&format!("{prefix}-signature")).trimmed() != Found::Absent;
    prefixes.iter().find(came).or(prefixes.first()).map_or("", String::as_str)
}

/// A header that the signature requires.
fn needed<'h>(headers: impl Headers<'h>, name: &str) -> Result<&'h str, Refusal> {
    match headers.find(name).trimmed() {
        Found::Text(text) => Ok(text),
        Found::Absent => Err(Refusal::Missing(name.to_owned())),
        Found::Repeated | Found::Unreadable => Err(Refusal::Unclear(name.to_owned())),
    }
}

/// The signed id. A missing one is reported like any other missing id.
fn needed_id<'h>(headers: impl Headers<'h>, name: &str) -> Result<&'h str, Refusal> {
    needed(headers, name).map_err(|refusal| match refusal {
        Refusal::Missing(name) => Refusal::NoId(vec![Place::Header(name)]),
        other => other,
    })
}

fn given(hmac: &Hmac, signatures: &str) -> Vec<DecodedSignature> {
    let texts = signatures.split(',').take(MAX_SIGNATURES);
    let texts = texts.filter_map(|text| text.trim_ascii().strip_prefix(hmac.prefix.as_str()));
    let given = texts.flat_map(|text| match hmac.encoding {
        Encoding::Hex => DecodedSignature::hex(text),
        Encoding::Base64 => DecodedSignature::base64(text),
    });
    given.collect()
}

fn check_names(recipe: &Recipe) -> Result<(), SetupError> {
    let name = |name: &str| if is_header_name(name) { Ok(()) } else { Err(PlaceError::HeaderName) };
    for place in recipe.id.iter().chain(&recipe.event_type) {
        if let Place::Header(header) = place {
            name(header)?;
        }
    }
    match &recipe.check {
        Check::None | Check::Standard(_) => {}
        Check::Timestamped { header, .. } => name(header)?,
        Check::Hmac(hmac) => {
            name(&hmac.header)?;
            if hmac.signed.has_id() && !matches!(recipe.id.as_slice(), [Place::Header(_)]) {
                return Err(SetupError::SignedIdPlace);
            }
            match &hmac.timestamp {
                Some(_) if !hmac.signed.has_timestamp() => return Err(SetupError::TimestampUnsigned),
                Some(timestamp) => name(&timestamp.header)?,
                None if hmac.signed.has_timestamp() => return Err(SetupError::TimestampPlace),
                None => {}
            }
        }
    }
    Ok(())
}
