//! Wire profiles: which headers a delivery goes out with, and how it is signed.

#[cfg(feature = "server")]
use crate::read::{body, catalog_name, choice, strings};
use crate::{request, resource};
use std::collections::BTreeMap;

resource! {
    ($)
    new {
        /// A wire profile: which headers go out, and how they are signed.
        NewProfile "ProfileIn" = {
            "name": "acme",
            "headers": {"X-Acme-Delivery": "{id}", "X-Acme-Signature": "sha512={signature}"},
            "signature": {"scheme": "hex", "hash": "sha512"},
        }
    }
    update {
        /// A wire profile as it is to be, but for its name.
        ProfileUpdate "ProfileUpdate" = {
            "headers": {"X-Acme-Event": "{type}", "X-Acme-Signature": "sha256={signature}"},
            "signature": {"scheme": "hex", "hash": "sha256"},
        }
    }
    shown {
        /// A wire profile.
        Profile "ProfileOut" of ProfileState
    }
    first {
        /// By which endpoints ask for it.
        required name: String = catalog_name();
    }
    fields {
        /// Names and templates.
        own required headers: BTreeMap<String, String> = strings(MAX_PROFILE_HEADERS);
        /// How it is signed; null: not at all.
        own nullable signature: ProfileSignature = body();
    }
    once {
        /// By which endpoints ask for it.
        required name: String = catalog_name(),
            "must be the name in the path, or be left out: a wire profile keeps its name";
    }
    last {
        /// It cannot be changed.
        required built_in: bool;
    }
}

/// The most headers of a wire profile.
pub const MAX_PROFILE_HEADERS: usize = 20;

request! {
    /// How a delivery is signed.
    ProfileSignature "ProfileSignature" = {"scheme": "hex", "hash": "sha512"} {
        /// What is signed, and how the signature is written.
        required scheme: String = choice(&["standard", "timestamped", "hex", "base64"]).asked();
        /// `sha256`, if not given.
        or_default hash: String = choice(&["sha256", "sha512"]).asked();
    }
}
