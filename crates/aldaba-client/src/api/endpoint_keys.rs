//! What an endpoint's requests carry: signatures, headers, a certificate.

use crate::api::endpoints::AppEndpoint;
use crate::call::Call;
use crate::{Error, Secret};
use aldaba_api::{RotateSecret, answer, input};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

impl AppEndpoint {
    /// What its requests are signed with.
    pub async fn secret(&self) -> Result<SigningSecret, Error> {
        Call::get(&self.path(&["secret"])).answer(&self.client).await
    }

    /// Signs with another one from now on; the present one still signs beside it for a while.
    pub async fn rotate_secret(&self, rotate: &RotateSecret) -> Result<SigningSecret, Error> {
        Call::post(&self.path(&["secret", "rotate"])).json(rotate).answer(&self.client).await
    }

    /// The headers that its requests carry.
    pub async fn headers(&self) -> Result<EndpointHeaders, Error> {
        Call::get(&self.path(&["headers"])).answer(&self.client).await
    }

    /// Its requests carry these, and no others of its own.
    pub async fn set_headers(&self, headers: &SetHeaders) -> Result<(), Error> {
        Call::put(&self.path(&["headers"])).json(headers).done(&self.client).await
    }

    /// Adds, changes and takes away.
    pub async fn patch_headers(&self, patch: &HeadersPatch) -> Result<(), Error> {
        Call::patch(&self.path(&["headers"])).json(patch).done(&self.client).await
    }

    /// Shows itself to its receiver by this certificate: chain and private key, as PEM.
    pub async fn set_certificate(&self, identity: impl Into<Secret>) -> Result<(), Error> {
        let body = Identity { identity: identity.into() };
        Call::put(&self.path(&["mtls"])).json(&body).done(&self.client).await
    }

    /// The certificate that it shows, a 404 if there is none.
    pub async fn certificate(&self) -> Result<Certificate, Error> {
        Call::get(&self.path(&["mtls"])).answer(&self.client).await
    }

    /// Whether it shows one, and which.
    pub async fn mutual_tls(&self) -> Result<MutualTls, Error> {
        Call::get(&self.path(&["mtls-config"])).answer(&self.client).await
    }

    /// Shows none any more.
    pub async fn delete_certificate(&self) -> Result<(), Error> {
        Call::delete(&self.path(&["mtls"])).done(&self.client).await
    }
}

answer! {
    /// What requests are signed with.
    SigningSecret {
        /// `whsec_…`, or for an asymmetric one its public key `whpk_…`.
        key: Secret,
    }
}

answer! {
    /// Headers of an endpoint.
    EndpointHeaders {
        /// Names and values.
        headers: BTreeMap<String, String>,
        /// The names of those whose values are not shown.
        sensitive: Vec<String>,
    }
}

/// All headers of an endpoint; there may be none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SetHeaders {
    /// Names and values.
    pub headers: BTreeMap<String, String>,
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for SetHeaders {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(headers: I) -> Self {
        Self { headers: headers.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }
}

input! {
    /// What is to change about an endpoint's headers.
    HeadersPatch {
        /// Names and values; `None` takes one away.
        headers: BTreeMap<String, Option<String>>,
        /// The names of headers to take away.
        delete_headers: Option<Vec<String>>,
    }
}

input! {
    /// A certificate with its private key.
    Identity {
        /// As PEM.
        identity: Secret,
    }
}

answer! {
    /// A certificate that is shown to a receiver.
    Certificate {
        /// Its digest.
        certificate_sha256: String,
    }
}

answer! {
    /// Whether a certificate is shown.
    MutualTls {
        /// Whether.
        enabled: bool,
        /// Which.
        config: Option<Certificate>,
    }
}
