//! What an endpoint's requests carry: signatures, headers, a certificate.

use crate::Error;
use crate::api::endpoints::AppEndpoint;
use crate::call::Call;
use aldaba_api::{
    Certificate, EndpointHeaders, HeadersPatch, Identity, MutualTls, RotateSecret, Secret, SetHeaders,
    SigningSecret,
};

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
