//! Limits how many exports run: each reads much, for as long as its client takes.

use crate::api::Error;
use crate::api::response::code::Code;
use aldaba_delivery::OrgId;
use http::StatusCode;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Exports that run at the same time, and those of one organization.
pub(crate) const MAX_EXPORTS: usize = 4;
pub(crate) const MAX_EXPORTS_OF_ORGANIZATION: usize = 2;
/// Retry delay: an export takes a while.
const RETRY_SECONDS: u32 = 30;

/// The exports that run, by organization.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExportPermits(Arc<Mutex<HashMap<OrgId, usize>>>);

/// Lets one export run while it is held.
#[derive(Debug)]
pub(crate) struct ExportPermit {
    permits: ExportPermits,
    org: OrgId,
}

impl ExportPermits {
    pub(crate) fn enter(&self, org: OrgId) -> Result<ExportPermit, Error> {
        let mut running = self.0.lock();
        if running.get(&org).is_some_and(|of_org| *of_org >= MAX_EXPORTS_OF_ORGANIZATION) {
            let detail = format!(
                "{MAX_EXPORTS_OF_ORGANIZATION} exports of the organization are running, as many as it may have. None was started; \
                 wait until one is over"
            );
            return Err(Error::too_many(Code::TooManyExports, detail, RETRY_SECONDS));
        }
        if running.values().sum::<usize>() >= MAX_EXPORTS {
            let detail = "The server has as many exports running as it may have. None was started; try again";
            return Err(Error::later(StatusCode::SERVICE_UNAVAILABLE, Code::Busy, detail, RETRY_SECONDS));
        }
        *running.entry(org).or_default() += 1;
        Ok(ExportPermit { permits: self.clone(), org })
    }
}

impl Drop for ExportPermit {
    fn drop(&mut self) {
        let mut running = self.permits.0.lock();
        if let Some(of_org) = running.get_mut(&self.org) {
            *of_org -= 1;
            if *of_org == 0 {
                running.remove(&self.org);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_delivery::Timestamp;

    #[test]
    fn an_organization_has_two_exports_and_the_server_four() {
        let org = |second: i64| OrgId::first_at(Timestamp::from_millis(1_700_000_000_000 + second * 1000));
        let permits = ExportPermits::default();
        let first = permits.enter(org(1)).unwrap();
        let _second = permits.enter(org(1)).unwrap();
        assert_eq!(permits.enter(org(1)).unwrap_err().summary().0, 429);
        let _others = [permits.enter(org(2)).unwrap(), permits.enter(org(3)).unwrap()];
        assert_eq!(permits.enter(org(4)).unwrap_err().summary().0, 503);
        drop(first);
        permits.enter(org(4)).unwrap();
    }
}
