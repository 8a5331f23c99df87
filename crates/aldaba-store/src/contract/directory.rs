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

use crate::{
    AuditEntry, Done, EventType, HealthChange, HealthChangeNumber, Notice, NoticeNumber, Order, Page, Read,
};
use aldaba_delivery::{AppId, EndpointId, OrgId};
use std::sync::Arc;

/// How a caller names an application, an endpoint or a message: by id or by its own name for it.
pub type ResourceKey = String;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ApplicationRef {
    pub org: OrgId,
    pub key: ResourceKey,
}

pub trait Directory {
    /// One change, one transaction. If anything is different afterwards, the entry is in the audit log too.
    fn change(&self, change: Change, audit: Option<Arc<AuditEntry>>, done: Done<Changed>);

    fn tenant(&self, which: ApplicationRef) -> Read<Option<Tenant>>;

    fn application(&self, which: ApplicationRef) -> Read<Option<Application>>;

    /// The version of its configuration, which every change of it or of its endpoints raises; `None`: there is no
    /// such application in any organization.
    fn application_version(&self, app: AppId) -> Read<Option<u64>>;

    fn applications(&self, org: OrgId, page: Page<AppId>, order: Order) -> Read<Vec<Application>>;

    /// By id or uid; deleted ones are not found.
    fn endpoint(&self, app: AppId, key: ResourceKey) -> Read<Option<Endpoint>>;

    fn endpoints(&self, app: AppId, page: Page<EndpointId>, order: Order) -> Read<Vec<Endpoint>>;

    /// How the condition of an endpoint has changed: the newest [`HEALTH_CHANGES_KEPT`] times.
    ///
    /// [`HEALTH_CHANGES_KEPT`]: crate::HEALTH_CHANGES_KEPT
    fn health_changes(
        &self,
        endpoint: EndpointId,
        page: Page<HealthChangeNumber>,
        order: Order,
    ) -> Read<Vec<HealthChange>>;

    /// For each origin, as URLs begin with it (`https://example.com/`), whether the organization, or only this
    /// application of it, has an endpoint there.
    fn has_endpoints_at(&self, org: OrgId, app: Option<AppId>, starts: Vec<String>) -> Read<Vec<bool>>;

    /// For each application whether it is one of the organization's.
    fn are_of(&self, org: OrgId, apps: Vec<AppId>) -> Read<Vec<bool>>;

    /// The policies of all organizations, by organization and name.
    fn policies(&self) -> Read<Vec<OwnPolicy>>;

    /// The wire profiles of all organizations, by organization and name.
    fn profiles(&self) -> Read<Vec<OwnProfile>>;

    /// The organizations of which notices wait, by id.
    fn notice_organizations(&self, after: Option<OrgId>, limit: usize) -> Read<Vec<OrgId>>;

    /// The oldest notices of an organization that nobody has taken care of, in the order of their commits.
    fn notices(&self, org: OrgId, limit: usize) -> Read<Vec<(NoticeNumber, Notice)>>;

    /// The event types of all organizations, by organization and name.
    fn event_types(&self) -> Read<Vec<EventType>>;

    /// A small value that belongs to the installation as a whole.
    fn setting(&self, name: &'static str) -> Read<Option<Vec<u8>>>;

    /// Stores it unless one is there; returns the one that is there afterwards.
    fn settle_setting(&self, name: &'static str, value: Vec<u8>, done: Done<Vec<u8>>);
}
