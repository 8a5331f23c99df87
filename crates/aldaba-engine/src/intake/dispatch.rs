//! Sending to an address that is no endpoint. The address becomes one that is on no list and hears of no event, so that
//! everything else (its lane, the history, replays) is as for any other ([ADR 12](../../../../docs/adr/0012-addresses.md)).

use crate::intake::{Direct, NewEvent, SendError, SendReceipt};
use crate::{EndpointHeaders, Engine, Secrets};
use aldaba_delivery::{AppId, EndpointId, Health};
use aldaba_signature::SigningKey;
use aldaba_store::{ApplicationRef, Endpoint, EndpointConfig};

/// What to send, where to, and how.
#[derive(Clone, Debug)]
pub struct NewDispatch {
    /// Vetted, and without credentials.
    pub url: String,
    /// User and password, sent as basic authentication.
    pub credentials: Option<(String, String)>,
    pub policy: String,
    /// `None`: the server's default.
    pub profile: Option<String>,
    /// What signs; `None`: the application's key for whatever it dispatches.
    pub key: Option<SigningKey>,
    /// They go out with this alone.
    pub headers: EndpointHeaders,
    /// The job whose end it tells of.
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
    /// Accepts something for an address. When this returns [`SendReceipt`], it is on disk and will be delivered. The id is the
    /// address's: the same for all that goes there in the same way.
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
        // By its id: a name may have been given to another application in the meantime.
        let same = ApplicationRef { org: which.org, key: app.to_string() };
        Ok((self.send(&same, event).await?, id))
    }

    /// What signs whatever an application dispatches without a key of its own.
    pub fn dispatch_key(&self, app: AppId) -> SigningKey {
        self.vault().dispatch_key(app)
    }

    /// Its id follows from all that tells it from others, so that nobody has to look for it.
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
