use super::{Place, SecretForm, Template};
use crate::{HashKind, TimeUnit};

/// How a sender signs, and the places of the id and type of its events.
///
/// A recipe whose signature covers a timestamp has a replay window ([`Recipe::has_window`]). One that signs only the body has
/// none: an observer of a request can replay it forever, and only the receiver's record of ids detects that. If such a
/// sender puts the id into a header, the id is not signed either ([`Recipe::signs_id`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    pub(crate) check: Check,
    pub(crate) id: Vec<Place>,
    pub(crate) event_type: Vec<Place>,
    pub(crate) handshake: Option<Handshake>,
}

/// A challenge in a signed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    Slack,
    Zoom,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    None,
    /// `<prefix>-id`, `<prefix>-timestamp`, `<prefix>-signature`. The first prefix with a signature counts.
    Standard(Vec<String>),
    /// `t=<seconds>,v1=<hex>` in this header.
    Timestamped {
        header: String,
        hash: HashKind,
        secret: SecretForm,
    },
    Hmac(Hmac),
}

/// A custom signature. `..Hmac::of_body("x-signature")` has the usual values: hexadecimal SHA-256 of the body.
///
/// The header may contain several signatures, separated by commas; those without the prefix are skipped. A secret that is
/// a public key verifies Ed25519 signatures in the same format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hmac {
    /// The header with the signature.
    pub header: String,
    /// The text before each signature, such as `sha256=`.
    pub prefix: String,
    /// The hash function.
    pub hash: HashKind,
    /// The encoding of the signature.
    pub encoding: Encoding,
    /// The signed text. `{id}` requires an id in a header, `{timestamp}` a timestamp.
    pub signed: Template,
    /// The header of the timestamp. It must be signed: otherwise it would protect nothing.
    pub timestamp: Option<Timestamp>,
    /// The format of the secret.
    pub secret: SecretForm,
}

/// The encoding of a signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Hexadecimal, in upper or lower case.
    #[default]
    Hex,
    /// Base64 with the standard alphabet and padding.
    Base64,
}

/// The header with the time of sending, and its unit since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// The name of the header.
    pub header: String,
    /// The unit of its number.
    pub unit: TimeUnit,
}

impl Hmac {
    /// Hexadecimal SHA-256 of the body, in this header; the secret is the bytes of its text.
    pub fn of_body(header: &str) -> Self {
        Self {
            header: header.to_owned(),
            prefix: String::new(),
            hash: HashKind::Sha256,
            encoding: Encoding::Hex,
            signed: Template::body(),
            timestamp: None,
            secret: SecretForm::Text,
        }
    }
}

impl Recipe {
    /// A custom signature. The recipe has no place of an id or a type.
    pub fn hmac(mut hmac: Hmac) -> Self {
        hmac.header.make_ascii_lowercase();
        if let Some(timestamp) = &mut hmac.timestamp {
            timestamp.header.make_ascii_lowercase();
        }
        Self::with_check(Check::Hmac(hmac))
    }

    /// `t=<seconds>,v1=<hex>` over `<seconds>.<body>` in this header, in Stripe's format; `v1a=` with a public key. The
    /// recipe has no place of an id or a type.
    pub fn timestamped(header: &str, hash: HashKind, secret: SecretForm) -> Self {
        Self::with_check(Check::Timestamped { header: header.to_ascii_lowercase(), hash, secret })
    }

    /// No signature: anybody who knows the address can send. The recipe has no place of an id or a type.
    pub fn unsigned() -> Self {
        Self::with_check(Check::None)
    }

    pub(crate) fn with_check(check: Check) -> Self {
        Self { check, id: Vec::new(), event_type: Vec::new(), handshake: None }
    }

    /// Replaces the places of the id.
    pub fn with_id(self, place: Place) -> Self {
        Self { id: vec![place.lower_case()], ..self }
    }

    /// Adds a place of the id, after the present ones.
    pub fn or_id(mut self, place: Place) -> Self {
        self.id.push(place.lower_case());
        self
    }

    /// Replaces the places of the type.
    pub fn with_event_type(self, place: Place) -> Self {
        Self { event_type: vec![place.lower_case()], ..self }
    }

    /// Adds a place of the type, after the present ones.
    pub fn or_event_type(mut self, place: Place) -> Self {
        self.event_type.push(place.lower_case());
        self
    }

    /// Whether the recipe checks a signature.
    pub fn is_signed(&self) -> bool {
        !matches!(self.check, Check::None)
    }

    /// The places of the id, in order.
    pub fn id_places(&self) -> &[Place] {
        &self.id
    }

    /// The places of the type, in order.
    pub fn event_type_places(&self) -> &[Place] {
        &self.event_type
    }

    /// The format of this sender's secrets.
    pub fn secret_form(&self) -> SecretForm {
        match &self.check {
            Check::None | Check::Standard(_) => SecretForm::Standard,
            Check::Timestamped { secret, .. } => *secret,
            Check::Hmac(hmac) => hmac.secret,
        }
    }

    /// Whether the signature covers a timestamp, so that old messages are rejected.
    pub fn has_window(&self) -> bool {
        match &self.check {
            Check::None => false,
            Check::Standard(_) | Check::Timestamped { .. } => true,
            Check::Hmac(hmac) => hmac.timestamp.is_some(),
        }
    }

    /// Whether the signature covers the id, for every place of the id.
    pub fn signs_id(&self) -> bool {
        let signed = |place: &Place| match place {
            Place::Header(name) => self.signs_header(name),
            Place::Json(_) | Place::BodyDigest => true,
        };
        self.is_signed() && !self.id.is_empty() && self.id.iter().all(signed)
    }

    /// Whether the signature covers the id in this header.
    pub(crate) fn signs_header(&self, name: &str) -> bool {
        match &self.check {
            Check::Standard(prefixes) => prefixes.iter().any(|prefix| name == format!("{prefix}-id")),
            // The only header of the id: the inspector accepts no other recipe.
            Check::Hmac(hmac) => hmac.signed.has_id(),
            Check::None | Check::Timestamped { .. } => false,
        }
    }
}
