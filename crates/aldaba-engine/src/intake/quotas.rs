//! How many messages may be sent. The store counts them.

use super::{Intake, SendError};
use aldaba_delivery::{OrgId, Timestamp};
use aldaba_store::{Quota, QuotaOf};

/// How many messages may be sent on a day (UTC); `None`: any number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// By all applications of an organization together.
    pub organization: Option<u64>,
    pub application: Option<u64>,
}

impl Quotas {
    pub(super) fn of(self, org: OrgId) -> Option<Quota> {
        let Self { organization, application } = self;
        let any = organization.is_some() || application.is_some();
        any.then_some(Quota { org, organization, application })
    }
}

impl Intake {
    pub(super) fn over_quota(&self, whose: QuotaOf, now: Timestamp) -> SendError {
        let most = match whose {
            QuotaOf::Organization => self.quotas.organization,
            QuotaOf::Application => self.quotas.application,
        };
        let (at, until) = (now, Quota::next_day(now));
        SendError::OverQuota { whose, most: most.unwrap_or_default(), at, until }
    }
}
