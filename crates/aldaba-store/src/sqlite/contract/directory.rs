//! Applications, endpoints, and every change.

use crate::sqlite::op::Reply;
use crate::sqlite::{Op, SqliteStore, directory, event_type, health, notice, policy, profile, setting};
use crate::{
    Application, AuditEntry, Change, Changed, Directory, Done, Endpoint, EventType, HealthChange,
    HealthChangeNumber, Key, Notice, NoticeNumber, Order, OwnPolicy, OwnProfile, Page, Read, Tenant,
    WhichApplication,
};
use aldaba_delivery::{AppId, EndpointId, OrgId};
use std::sync::Arc;

impl Directory for SqliteStore {
    fn change(&self, change: Change, audit: Option<Arc<AuditEntry>>, done: Done<Changed>) {
        self.write(Op::Change(Box::new(change), audit), Reply::Change(done));
    }

    fn tenant(&self, which: WhichApplication) -> Read<Option<Tenant>> {
        self.read(move |connection| directory::tenant(connection, &which))
    }

    fn application(&self, which: WhichApplication) -> Read<Option<Application>> {
        self.read(move |connection| directory::application(connection, &which))
    }

    fn application_version(&self, app: AppId) -> Read<Option<u64>> {
        self.read(move |connection| directory::application_version(connection, app))
    }

    fn applications(&self, org: OrgId, page: Page<AppId>, order: Order) -> Read<Vec<Application>> {
        self.read(move |connection| directory::applications(connection, org, page, order))
    }

    fn endpoint(&self, app: AppId, key: Key) -> Read<Option<Endpoint>> {
        self.read(move |connection| directory::endpoint(connection, app, &key))
    }

    fn endpoints(&self, app: AppId, page: Page<EndpointId>, order: Order) -> Read<Vec<Endpoint>> {
        self.read(move |connection| directory::endpoints(connection, app, page, order))
    }

    fn health_changes(
        &self,
        endpoint: EndpointId,
        page: Page<HealthChangeNumber>,
        order: Order,
    ) -> Read<Vec<HealthChange>> {
        self.read(move |connection| health::changes(connection, endpoint, page, order))
    }

    fn has_endpoints_at(&self, org: OrgId, app: Option<AppId>, starts: Vec<String>) -> Read<Vec<bool>> {
        self.read(move |connection| health::has_endpoints_at(connection, org, app, &starts))
    }

    fn are_of(&self, org: OrgId, apps: Vec<AppId>) -> Read<Vec<bool>> {
        self.read(move |connection| health::are_of(connection, org, &apps))
    }

    fn policies(&self) -> Read<Vec<OwnPolicy>> {
        self.read(policy::all)
    }

    fn profiles(&self) -> Read<Vec<OwnProfile>> {
        self.read(profile::all)
    }

    fn notice_organizations(&self, after: Option<OrgId>, limit: usize) -> Read<Vec<OrgId>> {
        self.read(move |connection| notice::organizations(connection, after, limit))
    }

    fn notices(&self, org: OrgId, limit: usize) -> Read<Vec<(NoticeNumber, Notice)>> {
        self.read(move |connection| notice::oldest(connection, org, limit))
    }

    fn event_types(&self) -> Read<Vec<EventType>> {
        self.read(event_type::all)
    }

    fn setting(&self, name: &'static str) -> Read<Option<Vec<u8>>> {
        self.read(move |connection| setting::read(connection, name))
    }

    fn settle_setting(&self, name: &'static str, value: Vec<u8>, done: Done<Vec<u8>>) {
        self.write(Op::SettleSetting { name, value }, Reply::SettleSetting(done));
    }
}
