//! When client certificates expire that were stored before anybody kept that: once for each installation, by opening their secrets.

use crate::Vault;
use aldaba_delivery::EndpointId;
use aldaba_store::{CertificateDate, Change, Changed, Done, Error, SealedSecrets, Store};
use tokio::sync::oneshot;

/// The setting that says that it is done.
const DONE_SETTING: &str = "certificates-dated";
const BATCH: usize = 500;

/// Keeps the expiry of every client certificate, unless that was done before.
pub(super) async fn date_certificates(store: &dyn Store, vault: &Vault) -> Result<(), Error> {
    if store.setting(DONE_SETTING).await?.is_some() {
        return Ok(());
    }
    let mut after: Option<EndpointId> = None;
    loop {
        let found = store.sealed_secrets(after, BATCH).await?;
        let Some(last) = found.last() else { break };
        after = Some(last.endpoint);
        let dates: Vec<_> = found.iter().filter_map(|secrets| date(vault, secrets)).collect();
        if !dates.is_empty() {
            change(store, Change::DateCertificates { dates }).await?;
        }
    }
    change(store, Change::PutSetting { name: DONE_SETTING, value: vec![1] }).await
}

/// Secrets that cannot be opened cannot be used either.
fn date(vault: &Vault, secrets: &SealedSecrets) -> Option<CertificateDate> {
    let SealedSecrets { endpoint, app, sealed } = secrets;
    let expires_at = vault.open(*app, *endpoint, sealed).ok()?.identity?.expires_at()?;
    Some(CertificateDate { endpoint: *endpoint, of: sealed.clone(), expires_at })
}

async fn change(store: &dyn Store, change: Change) -> Result<(), Error> {
    let (answer, answered) = oneshot::channel();
    let done = Done::new(move |result: Result<Changed, Error>| drop(answer.send(result)));
    store.change(change, None, done);
    answered.await.map_err(|_| Error::Closed)?.map(drop)
}
