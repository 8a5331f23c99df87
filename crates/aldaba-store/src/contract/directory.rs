//! Applications and their endpoints, and all that somebody can change.

mod application;
mod change;
mod changed;
mod endpoint;
mod own;
mod tenant;

pub use application::Application;
pub use change::{Change, Recovery, Rescheduled};
pub use changed::{Changed, OrderingObstacle};
pub use endpoint::{Endpoint, EndpointConfig, Fence};
pub use own::{OwnPolicy, OwnProfile};
pub use tenant::{Subscription, Tenant};

use crate::operations::{self, event_type, health, notice, policy, profile, setting};
use crate::{AuditEntry, EventType, HealthChange, HealthChangeNumber, Notice, NoticeNumber, Order, Page};
use aldaba_delivery::{AppId, EndpointId, OrgId};
use std::sync::Arc;

/// How a caller names an application, an endpoint or a message: by id or by its own name for it.
pub type ResourceKey = String;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ApplicationRef {
    pub org: OrgId,
    pub key: ResourceKey,
}

contract! {
    pub trait Directory {
        writes {
            /// One change, one transaction. If anything is different afterwards, the entry is in the audit log too.
            change(change: Change, audit: Option<Arc<AuditEntry>>) -> Changed
                = Change(Box::new(change), audit);

            /// Stores it unless one is there; returns the one that is there afterwards.
            settle_setting(name: &'static str, value: Vec<u8>) -> Vec<u8> = SettleSetting(name, value);
        }
        reads {
            read tenant(which: ApplicationRef) -> Option<Tenant>
                = |reading| operations::application::tenant(reading, &which);
            read application(which: ApplicationRef) -> Option<Application>
                = |reading| operations::application::find(reading, &which);

            /// The version of its configuration, which every change of it or of its endpoints raises; `None`: there is no
            /// such application in any organization.
            read application_version(app: AppId) -> Option<u64>
                = |reading| operations::application::version(reading, app);

            read applications(org: OrgId, page: Page<AppId>, order: Order) -> Vec<Application>
                = |reading| operations::application::list(reading, org, page, order);

            /// By id or uid; deleted ones are not found.
            read endpoint(app: AppId, key: ResourceKey) -> Option<Endpoint>
                = |reading| operations::endpoint::find(reading, app, &key);

            read endpoints(app: AppId, page: Page<EndpointId>, order: Order) -> Vec<Endpoint>
                = |reading| operations::endpoint::list(reading, app, page, order);

            /// How the condition of an endpoint has changed: the newest [`HEALTH_CHANGES_KEPT`] times.
            ///
            /// [`HEALTH_CHANGES_KEPT`]: crate::HEALTH_CHANGES_KEPT
            read health_changes(
                endpoint: EndpointId, page: Page<HealthChangeNumber>, order: Order
            ) -> Vec<HealthChange> = |reading| health::changes(reading, endpoint, page, order);

            /// For each origin, as URLs begin with it (`https://example.com/`), whether the organization, or only this
            /// application of it, has an endpoint there.
            read has_endpoints_at(org: OrgId, app: Option<AppId>, starts: Vec<String>) -> Vec<bool>
                = |reading| operations::endpoint::has_endpoints_at(reading, org, app, &starts);

            /// For each application whether it is one of the organization's.
            read are_of(org: OrgId, apps: Vec<AppId>) -> Vec<bool>
                = |reading| operations::application::are_of(reading, org, &apps);

            /// The policies of all organizations, by organization and name.
            read policies() -> Vec<OwnPolicy> = |reading| policy::all(reading);

            /// The wire profiles of all organizations, by organization and name.
            read profiles() -> Vec<OwnProfile> = |reading| profile::all(reading);

            /// The organizations of which notices wait, by id.
            background_read notice_organizations(after: Option<OrgId>, limit: usize) -> Vec<OrgId>
                = |reading| notice::organizations(reading, after, limit);

            /// The oldest notices of an organization that nobody has taken care of, in the order of their commits.
            background_read notices(org: OrgId, limit: usize) -> Vec<(NoticeNumber, Notice)>
                = |reading| notice::oldest(reading, org, limit);

            /// The event types of all organizations, by organization and name.
            read event_types() -> Vec<EventType> = |reading| event_type::all(reading);

            /// A small value that belongs to the installation as a whole.
            read setting(name: &'static str) -> Option<Vec<u8>> = |reading| setting::read(reading, name);
        }
    }
}
