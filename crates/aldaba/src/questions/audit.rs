//! The audit log of an organization.

use super::{Error, Questions};
use aldaba_delivery::AppId;
use aldaba_store::{AuditPage, AuditQuery};

impl Questions<'_> {
    pub(crate) async fn audit(&self, query: AuditQuery) -> Result<AuditPage, Error> {
        Ok(self.store().audit(AuditQuery { org: self.caller.org(), ..query }).await?)
    }

    /// The application that a filter of the log names. A deleted one has no uid any more, but it has a history.
    pub(crate) async fn audited_application(&self, key: &str) -> Result<AppId, Error> {
        match key.parse() {
            Ok(id) => Ok(id),
            Err(_) => Ok(self.application(key).await?.id),
        }
    }
}
