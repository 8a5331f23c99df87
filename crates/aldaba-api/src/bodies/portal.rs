//! Access to the portal of an application, and the identity of the caller.

#[cfg(feature = "server")]
use crate::names::name as check_name;
#[cfg(feature = "server")]
use crate::read::{moment, names, number, part, text, toggle};
use crate::{NewApplication, Secret, Timestamp, request, response};

request! {
    /// What somebody may do in the portal, and for how long.
    NewPortalAccess "AppPortalAccessIn" = {"expiry": 3600, "sessionId": "user_42", "readOnly": true} {
        /// The application, to be made if the one of the path is not there. Its `uid` is the one of the path.
        nullable application: NewApplication = part();
        /// All of them if absent; `ViewBase` is always among them.
        nullable capabilities: Vec<String> = names(CAPABILITIES.len(), capability).undescribed();
        /// Seconds.
        nullable expiry: u64 = number(3600, MAX_ACCESS_SECONDS).wide().or_as_described(MAX_ACCESS_SECONDS);
        /// The event types that show up besides those without a flag.
        nullable feature_flags: Vec<String> = names(25, check_name).or_empty();
        /// The same as `capabilities` with `ViewBase` alone.
        nullable read_only: bool = toggle();
        /// A name by which the token can be ended together with others.
        nullable session_id: String = text().by(session_id).limits(1, MAX_SESSION_ID_BYTES).pattern("^[a-zA-Z0-9@_-]+$");
    }
}

/// What somebody may do in the portal.
#[cfg(feature = "server")]
pub const CAPABILITIES: [&str; 6] = [
    "ViewBase",
    "ViewEndpointSecret",
    "ManageEndpointSecret",
    "ManageTransformations",
    "CreateAttempts",
    "ManageEndpoint",
];
/// How long a portal token counts at most.
#[cfg(feature = "server")]
pub const MAX_ACCESS_SECONDS: u64 = 7 * 24 * 3600;
#[cfg(feature = "server")]
const MAX_SESSION_ID_BYTES: usize = 64;

#[cfg(feature = "server")]
fn capability(name: &str) -> Result<(), String> {
    match CAPABILITIES.contains(&name) {
        true => Ok(()),
        false => Err(format!("is none of {}", CAPABILITIES.join(", "))),
    }
}

#[cfg(feature = "server")]
fn session_id(text: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@_-".contains(&byte);
    if (1..=MAX_SESSION_ID_BYTES).contains(&text.len()) && text.bytes().all(plain) {
        return Ok(());
    }
    Err(format!("must be 1 to {MAX_SESSION_ID_BYTES} letters, digits, `@`, `_` or `-`"))
}

response! {
    /// The way into the portal.
    PortalAccess "AppPortalAccessOut" of PortalAccessView {
        /// Leads into the portal. Anybody who has it gets in.
        required url: Secret;
        /// The token alone.
        required token: Secret;
    }
}

request! {
    /// Which tokens are ended, and when.
    ExpireTokens "ApplicationTokenExpireIn" = {"sessionIds": ["user_42"]} {
        /// How many seconds they still count; 0 if absent.
        nullable expiry: u64 = number(0, 3 * 24 * 3600).wide();
        /// Only tokens of these sessions.
        nullable session_ids: Vec<String> = names(1000, session_id).or_empty();
    }
}

response! {
    /// Who asks.
    Whoami "WhoamiOut" of WhoamiView {
        /// The organization.
        required env_id: String;
        /// The one application that it is for, if it is for one.
        nullable app_id: String;
        /// `SvixJwt` for signed tokens, `RegionalAuthToken` for API keys: the words that clients know.
        required permission_source: String;
        /// Of a portal token.
        nullable session_id: String;
        /// Of a key; a signed token of an organization has `admin`.
        nullable scope: String;
        /// Of a key.
        nullable key_id: String;
        /// Of a key.
        nullable key_name: String;
        /// Of a portal token.
        nullable capabilities: Vec<String>;
        /// Of a portal token.
        nullable feature_flags: Vec<String>;
        /// From then on it counts no longer.
        nullable expires_at: Timestamp = moment();
    }
}

response! {
    /// Public keys, as a JWK set (RFC 7517).
    KeySet "KeySet" of KeySetView {
        /// The keys.
        required keys: Vec<PublicKey>;
    }
}

response! {
    /// A public key (RFC 8037).
    PublicKey "PublicKey" of PublicKeyView {
        /// Its kind.
        required kty: String;
        /// Its curve.
        required crv: String;
        /// Its algorithm.
        required alg: String;
        /// What it is for.
        required usage ["use"]: String;
        /// The beginning of the key's SHA-256.
        required kid: String;
        /// The key.
        required x: String;
        /// The endpoints whose requests it signs.
        required endpoints: Vec<String>;
    }
}
