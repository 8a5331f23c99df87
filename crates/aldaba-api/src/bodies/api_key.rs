//! API keys.

#[cfg(feature = "server")]
use crate::names::{MAX_KEY_NAME_BYTES, key_name};
#[cfg(feature = "server")]
use crate::read::{choice, moment, text};
use crate::{Secret, Timestamp, request, response, words};

words! {
    /// What a key may do.
    Scope {
        /// Everything.
        Admin = "admin",
        /// Messages, and nothing else.
        Send = "send",
        /// Everything but changes and secrets.
        Read = "read",
    }
}

request! {
    /// A new API key.
    NewApiKey "ApiKeyIn" = {"name": "The shop's backend", "scope": "send"} {
        /// For people.
        required name: String = text().by(key_name).limits(1, MAX_KEY_NAME_BYTES);
        /// `admin`: everything; `send`: messages, and nothing else; `read`: everything but changes and secrets.
        required scope: Scope = choice(&["admin", "send", "read"]).asked().hinted(SCOPES);
        /// The id or uid of the one application that it is for; absent: all.
        nullable app_id: String = text();
        /// From then on it counts no longer; absent: never.
        nullable expires_at: Timestamp = moment();
    }
}

#[cfg(feature = "server")]
const SCOPES: &str =
    "`admin` (everything), `send` (messages alone) or `read` (everything but changes and secrets)";

impl NewApiKey {
    /// For all applications, for ever.
    pub fn new(name: impl Into<String>, scope: Scope) -> Self {
        Self { name: name.into(), scope, ..Self::default() }
    }
}

request! {
    /// What of a key can change.
    ApiKeyPatch "ApiKeyPatch" = {"name": "The shop's new backend"} {
        /// For people.
        required name: String = text().by(key_name).limits(1, MAX_KEY_NAME_BYTES);
    }
}

response! {
    ($)
    /// An API key, without what must be kept to oneself.
    ApiKey "ApiKeyOut" of ApiKeyView {
        /// Its id.
        required id: String;
        /// For people.
        required name: String;
        /// What the key begins with, after `aldaba_`.
        required prefix: String;
        /// What it may do.
        required scope: Scope = text();
        /// The one application that it is for.
        nullable app_id: String;
        /// When it was made.
        required created_at: Timestamp = moment();
        /// From then on it counts no longer.
        nullable expires_at: Timestamp = moment();
        /// To about an hour.
        nullable last_used_at: Timestamp = moment();
    }
    each api_key_fields;
}

response! {
    /// An API key that was just made.
    CreatedApiKey "NewApiKeyOut" of CreatedApiKeyView with { shown: ApiKey as api_key_fields; } {
        /// The key. Nobody can read it again.
        required key: Secret;
    }
}
