use super::{Place, SecretForm, Template};
use crate::{HashKind, TimeUnit};

/// How a sender signs, and where the id and the type of its events are.
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

/// A challenge that comes as a signed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    Slack,
    Zoom,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    None,
    /// `<prefix>-id`, `<prefix>-timestamp`, `<prefix>-signature`. The first of which a signature came counts.
    Standard(Vec<String>),
    /// `t=<seconds>,v1=<hex>` in this header.
    Timestamped {
        header: String,
        hash: HashKind,
        secret: SecretForm,
    },
    Hmac(Hmac),
}

/// A signature of its own making. `..Hmac::of_body("x-signature")` fills in what is usual: hexadecimal SHA-256
/// of the body.
///
/// The header may hold several signatures with commas between; those without the prefix are passed over. A
/// secret that is a public key checks Ed25519 signatures in the same form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hmac {
    /// The header with the signature.
    pub header: String,
    /// What stands before each signature, as `sha256=`.
    pub prefix: String,
    /// The hash function.
    pub hash: HashKind,
    /// How the bytes of the signature are written.
    pub encoding: Encoding,
    /// What is signed. `{id}` needs an id in a header, `{timestamp}` a timestamp.
    pub signed: Template,
    /// Where the timestamp is. It must be signed: otherwise it would protect nothing.
    pub timestamp: Option<Timestamp>,
    /// How the secret is written.
    pub secret: SecretForm,
}

/// How the bytes of a signature are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// In either case.
    #[default]
    Hex,
    /// Of the standard alphabet, with padding.
    Base64,
}

/// The header that says when a message was sent, and what it counts since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// The name of the header.
    pub header: String,
    /// What its number counts.
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
    /// A signature as [`Hmac`] says. It names no place of an id or a type.
    pub fn hmac(mut hmac: Hmac) -> Self {
        hmac.header.make_ascii_lowercase();
        if let Some(timestamp) = &mut hmac.timestamp {
            timestamp.header.make_ascii_lowercase();
        }
        Self::with_check(Check::Hmac(hmac))
    }

    /// `t=<seconds>,v1=<hex>` over `<seconds>.<body>` in this header, as Stripe has it; `v1a=` with a public key.
    /// It names no place of an id or a type.
    pub fn timestamped(header: &str, hash: HashKind, secret: SecretForm) -> Self {
        Self::with_check(Check::Timestamped { header: header.to_ascii_lowercase(), hash, secret })
    }

    /// No signature at all: anybody who knows the address can send. It names no place of an id or a type, and falls
    /// back to none.
    pub fn unsigned() -> Self {
        Self::with_check(Check::None)
    }

    pub(crate) fn with_check(check: Check) -> Self {
        Self { check, id: Vec::new(), event_type: Vec::new(), handshake: None }
    }

    /// Says where the id is, in place of what the recipe said.
    pub fn with_id(self, place: Place) -> Self {
        Self { id: vec![place.lower_case()], ..self }
    }

    /// Says where the id is if it is in none of the places so far.
    pub fn or_id(mut self, place: Place) -> Self {
        self.id.push(place.lower_case());
        self
    }

    /// Says where the type is, in place of what the recipe said.
    pub fn with_event_type(self, place: Place) -> Self {
        Self { event_type: vec![place.lower_case()], ..self }
    }

    /// Says where the type is if it is in none of the places so far.
    pub fn or_event_type(mut self, place: Place) -> Self {
        self.event_type.push(place.lower_case());
        self
    }

    /// Whether a signature is checked at all.
    pub fn is_signed(&self) -> bool {
        !matches!(self.check, Check::None)
    }

    /// Where the id is looked for, in this order.
    pub fn id_places(&self) -> &[Place] {
        &self.id
    }

    /// Where the type is looked for, in this order.
    pub fn event_type_places(&self) -> &[Place] {
        &self.event_type
    }

    /// How the secrets of this sender are written.
    pub fn secret_form(&self) -> SecretForm {
        match &self.check {
            Check::None | Check::Standard(_) => SecretForm::Standard,
            Check::Timestamped { secret, .. } => *secret,
            Check::Hmac(hmac) => hmac.secret,
        }
    }

    /// Whether the signature covers a timestamp, so that old messages are refused.
    pub fn has_window(&self) -> bool {
        match &self.check {
            Check::None => false,
            Check::Standard(_) | Check::Timestamped { .. } => true,
            Check::Hmac(hmac) => hmac.timestamp.is_some(),
        }
    }

    /// Whether the signature covers the id, wherever it is taken from.
    pub fn signs_id(&self) -> bool {
        let signed = |place: &Place| match place {
            Place::Header(name) => self.signs_header(name),
            Place::Json(_) | Place::BodyDigest => true,
        };
        self.is_signed() && !self.id.is_empty() && self.id.iter().all(signed)
    }

    /// Whether the id in this header is what the signature covers.
    pub(crate) fn signs_header(&self, name: &str) -> bool {
        match &self.check {
            Check::Standard(prefixes) => prefixes.iter().any(|prefix| name == format!("{prefix}-id")),
            // The one header that names the id: the inspector takes no other recipe.
            Check::Hmac(hmac) => hmac.signed.has_id(),
            Check::None | Check::Timestamped { .. } => false,
        }
    }
}
