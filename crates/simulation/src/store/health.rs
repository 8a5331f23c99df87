//! The health of endpoints on disk.

use super::disk::Disk;
use super::query::paged;
use aldaba_delivery::{AppId, ConditionCause, EndpointId, HealthStatus, OrgId, Timestamp, WhenDisabled};
use aldaba_store::{
    Changed, Endpoint, HEALTH_CHANGES_KEPT, HealthChange, HealthChangeNumber, LastError, Order, Page, Record,
    Replay,
};

impl Disk {
    /// What an attempt makes of its endpoint, unless a hand has changed that since.
    pub(super) fn health_after(&mut self, record: &Record) {
        let Some(endpoint) = self.endpoints.get_mut(&record.endpoint) else {
            return;
        };
        if let Some(attempt) = record.attempt.as_ref().filter(|attempt| attempt.is_own_failure()) {
            let at = attempt.started_at + attempt.duration;
            if endpoint.last_error.as_ref().is_none_or(|last| last.at <= at) {
                let (status_code, text) = (attempt.status_code, attempt.error.clone());
                endpoint.last_error = Some(LastError { at, status_code, text });
            }
        }
        let Some(health) = &record.health else { return };
        if health.epoch == endpoint.health.epoch {
            let before = endpoint.clone();
            endpoint.health = health.clone();
            let detail = record.attempt.as_ref().map_or("", |attempt| &attempt.error);
            self.note(&before, ConditionCause::of_attempt(health.status), record.at, detail);
        } else {
            endpoint.health.quiet_until = endpoint.health.quiet_until.max(health.quiet_until);
        }
    }

    pub(super) fn resume(
        &mut self,
        app: AppId,
        id: EndpointId,
        at: Timestamp,
        recovery: Option<&Replay>,
    ) -> Changed {
        let has_room = recovery.is_none() || self.has_room_for_replay(app);
        let Some(endpoint) = self.endpoints.get_mut(&id).filter(|row| row.app == app && !row.deleted) else {
            return Changed::NotFound;
        };
        if endpoint.health.status == HealthStatus::Active {
            return Changed::Unchanged;
        }
        if !has_room {
            return Changed::TooMany;
        }
        let before = endpoint.clone();
        endpoint.health = before.health.resumed(at);
        self.note(&before, ConditionCause::Resumed, at, "");
        let failing_since = before.health.outage_began();
        let recovery = recovery.zip(failing_since).and_then(|(planned, began)| self.recover(planned, began));
        Changed::Resumed { failing_since, recovery }
    }

    /// Keeps a change of condition from what it was `before`.
    pub(super) fn note(&mut self, before: &Endpoint, cause: ConditionCause, at: Timestamp, detail: &str) {
        let after = &self.endpoints[&before.id];
        let was = before.health.lasting_condition(before.config.disabled);
        let became = after.health.lasting_condition(after.config.disabled);
        if was == became {
            return;
        }
        let changes = self.health_changes.entry(before.id).or_default();
        let number = HealthChangeNumber(changes.last().map_or(0, |last| last.number.0) + 1);
        changes.push(HealthChange { number, at, was, became, cause, detail: detail.to_owned() });
        changes.drain(..changes.len().saturating_sub(HEALTH_CHANGES_KEPT));
    }

    pub(super) fn health_changes(
        &self,
        endpoint: EndpointId,
        page: Page<HealthChangeNumber>,
        order: Order,
    ) -> Vec<HealthChange> {
        let changes = self.health_changes.get(&endpoint).map_or(&[][..], |changes| changes);
        paged(changes.iter(), |change| change.number, page, order)
    }

    pub(super) fn has_endpoints_at(&self, org: OrgId, app: Option<AppId>, starts: &[String]) -> Vec<bool> {
        let ours = |row: &&Endpoint| row.org == org && !row.deleted && app.is_none_or(|app| app == row.app);
        let at = |start: &String| {
            self.endpoints.values().filter(ours).any(|row| row.config.url.starts_with(start))
        };
        starts.iter().map(at).collect()
    }

    /// Which of these endpoints are off, and skip what comes meanwhile.
    pub(super) fn skipping(&self, endpoints: &[EndpointId]) -> Vec<EndpointId> {
        let skips = |id: &&EndpointId| {
            // An address is made with what is dispatched to it.
            let off = |row: &Endpoint| row.config.disabled && row.config.when_disabled == WhenDisabled::Skip;
            self.endpoints.get(*id).is_some_and(off)
        };
        endpoints.iter().filter(skips).copied().collect()
    }

    pub(super) fn are_of(&self, org: OrgId, apps: &[AppId]) -> Vec<bool> {
        let ours = |app: &AppId| {
            self.applications.get(app).is_some_and(|row| row.application.org == org && !row.deleted)
        };
        apps.iter().map(ours).collect()
    }
}
