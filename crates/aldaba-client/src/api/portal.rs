//! Access to the portal of an application, and the identity of the caller.

use crate::api::applications::App;
use crate::call::Call;
use crate::{Client, Error, Secret};
use aldaba_api::NewApplication;
use aldaba_api::{Timestamp, answer, input};

input! {
    /// What somebody may do in the portal, and for how long.
    NewPortalAccess {
        /// The application, to be made if it is not there.
        application: Option<NewApplication>,
        /// All of them if absent; `ViewBase` is always among them.
        capabilities: Option<Vec<String>>,
        /// Seconds.
        expiry: Option<u64>,
        /// The event types that show up besides those without a flag.
        feature_flags: Option<Vec<String>>,
        /// The same as `capabilities` with `ViewBase` alone.
        read_only: Option<bool>,
        /// A name by which the token can be ended together with others.
        session_id: Option<String>,
    }
}

answer! {
    /// The way into the portal.
    PortalAccess {
        /// The URL of the portal. It grants access, so keep it secret.
        url: Secret,
        /// The token alone.
        token: Secret,
    }
}

input! {
    /// Which tokens are ended, and when.
    ExpireTokens {
        /// How many seconds they still count; none, if not given.
        expiry: Option<u64>,
        /// Only tokens of these sessions.
        session_ids: Option<Vec<String>>,
    }
}

answer! {
    /// Who asks.
    Whoami {
        /// The organization.
        env_id: String,
        /// The one application that the token is for, if it is for one.
        app_id: Option<String>,
        /// `SvixJwt` for signed tokens, `RegionalAuthToken` for API keys.
        permission_source: String,
        /// Of a portal token.
        session_id: Option<String>,
        /// Of a key; a signed token of an organization has `admin`.
        scope: Option<String>,
        /// Of a key.
        key_id: Option<String>,
        /// Of a key.
        key_name: Option<String>,
        /// Of a portal token.
        capabilities: Option<Vec<String>>,
        /// Of a portal token.
        feature_flags: Option<Vec<String>>,
        /// From then on it counts no longer.
        expires_at: Option<Timestamp>,
    }
}

answer! {
    /// Public keys, as a JWK set.
    KeySet {
        /// The keys.
        keys: Vec<PublicKey>,
    }
}

answer! {
    /// A public key.
    PublicKey {
        /// Its kind.
        kty: String,
        /// Its curve.
        crv: String,
        /// Its algorithm.
        alg: String,
        /// What it is for.
        #[serde(rename = "use")]
        usage: String,
        /// The beginning of the key's SHA-256.
        kid: String,
        /// The key.
        x: String,
        /// The endpoints whose requests it signs.
        endpoints: Vec<String>,
    }
}

impl App {
    /// Lets somebody into its portal.
    pub async fn portal_access(&self, access: &NewPortalAccess) -> Result<PortalAccess, Error> {
        Call::post(&["auth", "app-portal-access", &self.id]).json(access).answer(&self.client).await
    }

    /// The same with nothing to choose, as older clients do.
    pub async fn dashboard_access(&self) -> Result<PortalAccess, Error> {
        Call::post(&["auth", "dashboard-access", &self.id]).answer(&self.client).await
    }

    /// Ends the portal tokens that it has.
    pub async fn expire_tokens(&self, which: &ExpireTokens) -> Result<(), Error> {
        Call::post(&["auth", "app", &self.id, "expire-all"]).json(which).done(&self.client).await
    }
}

impl Client {
    /// Who this client is.
    pub async fn whoami(&self) -> Result<Whoami, Error> {
        Call::get(&["auth", "whoami"]).answer(self).await
    }

    /// Ends the token of this client. Not tried again after an answer was lost: the token may have ended.
    pub async fn logout(&self) -> Result<(), Error> {
        Call::post(&["auth", "logout"]).only_once().done(self).await
    }
}
