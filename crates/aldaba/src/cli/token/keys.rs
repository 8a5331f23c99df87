//! API keys of a running server, or in the store.

use super::Error;
use super::list::KeyRow;
use crate::cli::server_client::{ServerClient, ServerError};
use crate::cli::server_options::{Backend, ServerOptions};
use crate::config::Config;
use aldaba_client::NewApiKey;
use aldaba_delivery::{OrgId, Timestamp};
use aldaba_engine::{Clock, Entropy, NewKey, SystemClock, SystemEntropy, make_key};
use aldaba_store::{Actor, ApiKey, ApplicationRef, AuditEntry, Change, Changed, Done, KeyScope, Store};
use futures_util::TryStreamExt;
use http::StatusCode;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The key to make.
pub(super) struct KeyRequest {
    pub(super) name: String,
    pub(super) scope: KeyScope,
    pub(super) app: Option<String>,
    pub(super) expires: Option<Duration>,
}

/// A key that was made.
pub(super) struct CreatedKey {
    pub(super) key: String,
    /// For people.
    pub(super) about: String,
}

pub(super) struct KeyBackend(Backend);

impl KeyBackend {
    pub(super) fn open(
        server_options: ServerOptions,
        config: &Config,
        variables: &BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        Ok(Self(Backend::open(server_options, variables, config)?))
    }

    pub(super) async fn close(self) {
        self.0.close().await;
    }

    pub(super) async fn create(&self, wanted: &KeyRequest) -> Result<CreatedKey, Error> {
        let expires_at = wanted.expires.map(|span| SystemClock::new().now() + span);
        let (key, shown) = match &self.0 {
            Backend::Store(store, org) => {
                let (key, text) = create_in_store(store, *org, wanted, expires_at).await?;
                (text, KeyRow::of_store(&key))
            }
            Backend::Server(server) => create_on_server(server, wanted, expires_at).await?,
        };
        Ok(CreatedKey { key, about: shown.about() })
    }

    pub(super) async fn list(&self) -> Result<Vec<KeyRow>, Error> {
        match &self.0 {
            Backend::Store(store, org) => {
                Ok(of_organization(store, *org).await?.iter().map(KeyRow::of_store).collect())
            }
            Backend::Server(server) => {
                let keys = server.client().api_keys().list_all().try_collect::<Vec<_>>();
                Ok(server.call(keys).await?.into_iter().map(KeyRow::of_api).collect())
            }
        }
    }

    pub(super) async fn revoke(&self, wanted: &str) -> Result<(), Error> {
        let missing = || {
            Error::Rejected(format!(
                "there is no API key `{wanted}`; `aldaba token list` shows their prefixes and ids"
            ))
        };
        if wanted.is_empty() || !wanted.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(missing());
        }
        match &self.0 {
            Backend::Server(server) => match server.call(server.client().api_keys().revoke(wanted)).await {
                Err(ServerError::Refused { status: StatusCode::NOT_FOUND, .. }) => Err(missing()),
                revoked => Ok(revoked?),
            },
            Backend::Store(store, org) => {
                let keys = of_organization(store, *org).await?;
                let is_wanted = |key: &&ApiKey| key.prefix == wanted || wanted.parse() == Ok(key.id);
                let id = keys.iter().find(is_wanted).ok_or_else(missing)?.id;
                match change(store, *org, Change::RevokeApiKey { org: *org, id }).await? {
                    Changed::Done { .. } => Ok(()),
                    _ => Err(missing()),
                }
            }
        }
    }
}

async fn create_on_server(
    server: &ServerClient,
    wanted: &KeyRequest,
    expires_at: Option<Timestamp>,
) -> Result<(String, KeyRow), Error> {
    let new = NewApiKey {
        app_id: wanted.app.clone(),
        expires_at: expires_at.map(rfc3339),
        ..NewApiKey::new(wanted.name.clone(), wanted.scope.name().into())
    };
    let made = server.call(server.client().api_keys().create(&new)).await?;
    Ok((made.key.reveal().to_owned(), KeyRow::of_created(made)))
}

async fn of_organization(store: &Arc<dyn Store>, org: OrgId) -> Result<Vec<ApiKey>, Error> {
    let keys = store.api_keys().await?;
    Ok(keys.into_iter().filter(|key| key.org == org).collect())
}

async fn create_in_store(
    store: &Arc<dyn Store>,
    org: OrgId,
    wanted: &KeyRequest,
    expires_at: Option<Timestamp>,
) -> Result<(ApiKey, String), Error> {
    if of_organization(store, org).await?.len() >= ApiKey::MAX_PER_ORGANIZATION {
        let what = format!(
            "the organization has {} API keys, as many as it may have: revoke some",
            ApiKey::MAX_PER_ORGANIZATION
        );
        return Err(Error::Rejected(what));
    }
    let missing = |app: &str| Error::Rejected(format!("there is no application `{app}`"));
    let app = match &wanted.app {
        None => None,
        Some(key) => {
            let found = store.application(ApplicationRef { org, key: key.clone() }).await?;
            Some(found.ok_or_else(|| missing(key))?.id)
        }
    };
    let new = NewKey { org, app, name: wanted.name.clone(), scope: wanted.scope, expires_at };
    let (key, text) = make_key(new, SystemClock::new().now(), &SystemEntropy::new());
    match change(store, org, Change::CreateApiKey { key: key.clone(), idempotency: None }).await? {
        Changed::Done { .. } => Ok((key, text)),
        Changed::NotFound => Err(missing(wanted.app.as_deref().unwrap_or_default())),
        _ => Err(Error::Rejected("another key has the same prefix, by chance: try again".into())),
    }
}

async fn change(store: &Arc<dyn Store>, org: OrgId, change: Change) -> Result<Changed, Error> {
    let (now, entropy): (_, &dyn Entropy) = (SystemClock::new().now(), &SystemEntropy::new());
    let entry = AuditEntry::new(now, entropy.bytes(), &Actor::command_line(org), change.audit_action());
    let (answer, answered) = oneshot::channel();
    let done = Done::new(move |result| drop(answer.send(result)));
    store.change(change, Some(Arc::new(entry)), done);
    Ok(answered.await.map_err(|_| aldaba_store::Error::Closed)??)
}

pub(super) fn rfc3339(time: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(time.millis()).unwrap_or(jiff::Timestamp::MAX).to_string()
}
