//! Alerts of an organization. A caller for one application has those of its endpoints.

use super::{Error, Missing, Questions};
use aldaba_delivery::AlertId;
use aldaba_store::{Alert, AlertsQuery, ListPage};

impl Questions<'_> {
    pub(crate) async fn alerts(&self, query: AlertsQuery) -> Result<ListPage<Alert, AlertId>, Error> {
        let query = AlertsQuery { org: self.caller.org(), app: self.caller.app(), ..query };
        Ok(self.store().alerts(query).await?)
    }

    pub(crate) async fn alert(&self, id: &str) -> Result<Alert, Error> {
        let id = id.parse().map_err(|_| Missing::Alert)?;
        let found = self.store().alert(self.caller.org(), id).await?;
        let is_reached = |alert: &Alert| self.caller.app().is_none_or(|app| alert.app == Some(app));
        found.filter(is_reached).ok_or_else(|| Missing::Alert.into())
    }
}
