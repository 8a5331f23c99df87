//! Hosts that are held back, as far as they concern the caller.

use super::{Error, Missing, Questions, distinct};
use aldaba_delivery::{AppId, GateScope, Origin};
use aldaba_engine::HeldHost;
use std::collections::BTreeMap;
use url::Url;

impl Questions<'_> {
    /// Every gate that holds back requests of the caller's organization. An application is concerned by its own
    /// gates, and by those of whole hosts where it has endpoints.
    pub(crate) async fn held_hosts(&self) -> Result<Vec<HeldHost>, Error> {
        let hosts = self.engine.held_hosts(self.caller.org(), self.caller.app());
        self.concerning(hosts).await
    }

    /// The gates at an origin that the caller may open. The gate of a whole host holds back all applications of
    /// its organization, so it is not for one of them to open.
    pub(crate) async fn releasable_hosts(&self, origin: &Origin) -> Result<Vec<HeldHost>, Error> {
        let mut hosts = self.engine.held_hosts(self.caller.org(), self.caller.app());
        hosts.retain(|host| host.key.origin == *origin);
        let mut hosts = self.concerning(hosts).await?;
        if hosts.is_empty() {
            return Err(Missing::HeldHost.into());
        }
        if self.caller.app().is_some() {
            hosts.retain(|host| host.key.scope != GateScope::Host);
        }
        if hosts.is_empty() { Err(Error::HostOfOthers) } else { Ok(hosts) }
    }

    async fn concerning(&self, mut hosts: Vec<HeldHost>) -> Result<Vec<HeldHost>, Error> {
        let (store, org) = (self.store(), self.caller.org());
        if let Some(only) = self.caller.app() {
            hosts.retain(|host| app_of(host).is_none_or(|app| app == only));
            let whole: Vec<_> = hosts.iter().filter(|host| app_of(host).is_none()).map(url_start).collect();
            let reached = store.has_endpoints_at(org, Some(only), whole.clone()).await?;
            let reached: BTreeMap<String, bool> = whole.into_iter().zip(reached).collect();
            hosts.retain(|host| app_of(host).is_some() || reached.get(&url_start(host)) == Some(&true));
        }
        // Gates of deleted applications concern nobody.
        let apps = distinct(hosts.iter().filter_map(app_of));
        let exist = store.are_of(org, apps.clone()).await?;
        let exist: BTreeMap<AppId, bool> = apps.into_iter().zip(exist).collect();
        hosts.retain(|host| app_of(host).is_none_or(|app| exist.get(&app) == Some(&true)));
        Ok(hosts)
    }
}

fn app_of(host: &HeldHost) -> Option<AppId> {
    match host.key.scope {
        GateScope::Host => None,
        GateScope::Application(app) => Some(app),
    }
}

/// How the URLs of endpoints at a host begin: a parsed URL leaves out the default port, and always has a path.
fn url_start(host: &HeldHost) -> String {
    let origin = host.key.origin.as_str();
    Url::parse(origin).map_or_else(|_| format!("{origin}/"), Into::into)
}
