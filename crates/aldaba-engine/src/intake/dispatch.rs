//! Sends to an address that is no endpoint. The address is stored as an endpoint that is in no list and matches no event, so
//! that its lane, history and replays work as for any other ([ADR 12](../../../../docs/adr/0012-addresses.md)).

use crate::intake::{Direct, NewEvent, SendError, SendReceipt};
use crate::{EndpointHeaders, Engine, Secrets};
use aldaba_delivery::{AppId, EndpointId, Health};
use aldaba_signature::SigningKey;
use aldaba_store::{ApplicationRef, Endpoint, EndpointConfig};

/// A message for one address.
#[derive(Clone, Debug)]
pub struct NewDispatch {
    /// Checked, and without credentials.
    pub url: String,
    /// User and password, sent as basic authentication.
    pub credentials: Option<(String, String)>,
    pub policy: String,
    /// `None`: the server's default.
    pub profile: Option<String>,
    /// The signing key. `None`: the application's key for dispatches.
    pub key: Option<SigningKey>,
    /// They are sent with this message alone.
    pub headers: EndpointHeaders,
    /// The job whose end it reports.
    pub job: Option<String>,
    pub event: NewEvent,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DispatchError {
    #[error("there is no policy `{0}`")]
    UnknownPolicy(String),
    #[error("there is no profile `{0}`")]
    UnknownProfile(String),
    #[error(transparent)]
    Send(SendError),
}

impl From<SendError> for DispatchError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::UnknownPolicy(name) => Self::UnknownPolicy(name),
            SendError::UnknownProfile(name) => Self::UnknownProfile(name),
            other => Self::Send(other),
        }
    }
}

impl Engine {
    /// Accepts a message for an address. When this returns [`SendReceipt`], it is on disk and will be delivered. The id is that
    /// of the address: the same for the same URL, key, policy and profile.
    pub async fn dispatch(
        &self,
        which: &ApplicationRef,
        dispatch: NewDispatch,
    ) -> Result<(SendReceipt, EndpointId), DispatchError> {
        let app = self.application_id(which).await.map_err(SendError::from)?.ok_or(SendError::NotFound)?;
        if self.policies().get(which.org, &dispatch.policy).is_none() {
            return Err(DispatchError::UnknownPolicy(dispatch.policy));
        }
        if let Some(name) =
            dispatch.profile.as_ref().filter(|name| self.profiles().get(which.org, name).is_none())
        {
            return Err(DispatchError::UnknownProfile(name.clone()));
        }
        let NewDispatch { mut event, headers, job, .. } = dispatch.clone();
        let address = self.address(which, app, dispatch);
        let id = address.id;
        let entropy = &*self.intake().entropy;
        let sealed_headers = self.vault().seal_headers(app, id, &headers, entropy);
        event.direct = Some(Direct { address: Box::new(address), job, sealed_headers });
        // By id: the name may belong to another application by now.
        let same = ApplicationRef { org: which.org, key: app.to_string() };
        Ok((self.send(&same, event).await?, id))
    }

    /// The key of an application for dispatches without a key of their own.
    pub fn dispatch_key(&self, app: AppId) -> SigningKey {
        self.vault().dispatch_key(app)
    }

    /// The id is computed from everything that identifies the address, so no look-up is needed.
    fn address(&self, which: &ApplicationRef, app: AppId, dispatch: NewDispatch) -> Endpoint {
        let NewDispatch { url, credentials, policy, profile, key, .. } = dispatch;
        let secret = key.as_ref().map(SigningKey::secret_text);
        let (user, password) = credentials.as_ref().map_or(("", ""), |(user, word)| (user, word));
        let named = |part: &Option<String>| part.as_ref().map_or(String::new(), |part| format!("={part}"));
        let id = self.vault().address_id(
            app,
            &[
                &url,
                if credentials.is_some() { "with" } else { "without" },
                user,
                password,
                &policy,
                &named(&profile),
                secret.as_ref().map_or("", |secret| secret),
            ],
        );
        let secrets =
            Secrets { credentials, ..Secrets::new(key.unwrap_or_else(|| self.vault().dispatch_key(app))) };
        let (now, entropy) = (self.clock().now(), &*self.intake().entropy);
        Endpoint {
            id,
            app,
            org: which.org,
            config: EndpointConfig { profile, ..EndpointConfig::new(url, policy) },
            sealed: self.vault().seal(app, id, &secrets, entropy),
            created_at: now,
            updated_at: now,
            deleted: false,
            direct: true,
            health: Health::default(),
            last_error: None,
        }
    }
}
