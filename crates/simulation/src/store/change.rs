//! Changes of the directory reach the disk.

use super::disk::{ApplicationRow, Disk};
use aldaba_delivery::policy::BUILTIN_NAMES;
use aldaba_delivery::{AppId, EndpointId, OrgId, Timestamp};
use aldaba_store::{
    Application, Change, Changed, Endpoint, Fence, IdempotencyKey, Notice, NoticeNumber, Obstacle, OwnPolicy,
};

impl Disk {
    pub(super) fn change(&mut self, change: &Change) -> Changed {
        let changed = self.make(change);
        if changed.is_change() {
            self.keep_notices(change.notices());
        }
        changed
    }

    pub(super) fn keep_notices(&mut self, notices: &[Notice]) {
        for of_one in notices.chunk_by(|a, b| a.org == b.org) {
            let org = of_one[0].org;
            let room = Notice::MOST_WAITING.saturating_sub(self.waiting_notices(org));
            let (kept, left_out) = of_one.split_at(of_one.len().min(room as usize));
            kept.iter().for_each(|notice| self.keep_notice(notice.clone()));
            if !left_out.is_empty() {
                *self.left_out_notices.entry(org).or_default() += left_out.len() as u32;
            }
        }
    }

    fn waiting_notices(&self, org: OrgId) -> u32 {
        self.notices.keys().filter(|(of, _)| *of == org).count() as u32
    }

    fn keep_notice(&mut self, notice: Notice) {
        self.last_notice += 1;
        self.notices.insert((notice.org, NoticeNumber(self.last_notice)), notice);
    }

    fn forget_notices(&mut self, org: OrgId, numbers: &[NoticeNumber]) -> Changed {
        for number in numbers {
            self.notices.remove(&(org, *number));
        }
        if self.waiting_notices(org) < Notice::MOST_WAITING
            && let Some(count) = self.left_out_notices.remove(&org)
        {
            self.keep_notice(Notice::left_out(org, count));
        }
        Changed::Done { removed: Vec::new() }
    }

    fn make(&mut self, change: &Change) -> Changed {
        match change {
            Change::CreateApplication { application, idempotency } => {
                let (owner, id) = (*application.org.as_bytes(), *application.id.as_bytes());
                self.once(owner, *idempotency, id, |disk| disk.create_application(application))
            }
            Change::CreateEndpoint { endpoint, idempotency, .. } => {
                let (owner, id) = (*endpoint.app.as_bytes(), *endpoint.id.as_bytes());
                self.once(owner, *idempotency, id, |disk| disk.create_endpoint(endpoint))
            }
            Change::UpdateApplication { application, was } => self.update_application(application, *was),
            Change::DeleteApplication { app, at } => match self.source_of_application(*app) {
                Some(_) => Changed::InUse { endpoint: None },
                None => self.delete_application(*app, *at),
            },
            Change::UpdateEndpoint { endpoint, was, resume, .. } => {
                self.update_endpoint(endpoint, was, *resume)
            }
            Change::ResumeEndpoint { app, endpoint, at, recovery, .. } => {
                let idempotency = recovery.as_ref().and_then(|recovery| recovery.idempotency);
                let replay = recovery.as_ref().map(|recovery| &recovery.replay);
                let resource = replay.map_or(*endpoint.as_bytes(), |replay| *replay.id.as_bytes());
                self.once(*app.as_bytes(), idempotency, resource, |disk| {
                    disk.resume(*app, *endpoint, *at, replay)
                })
            }
            Change::ReleaseGates { gates } => {
                self.gates.retain(|key, _| !gates.contains(key));
                Changed::Done { removed: Vec::new() }
            }
            Change::DeleteEndpoint { app, endpoint, at, .. } => self.delete_endpoint(*app, *endpoint, *at),
            Change::ReplaceSecrets { app, endpoint, was, sealed, at, idempotency, .. } => {
                let (owner, id) = (*app.as_bytes(), *endpoint.as_bytes());
                self.once(owner, *idempotency, id, |disk| {
                    disk.replace_secrets((*app, *endpoint), was, sealed, *at)
                })
            }
            Change::StartReplay { replay, idempotency } => {
                let (owner, id) = (*replay.app.as_bytes(), *replay.id.as_bytes());
                self.once(owner, *idempotency, id, |disk| disk.start_replay(replay))
            }
            Change::CancelReplay { org, replay, at } => self.cancel_replay(*org, *replay, *at),
            Change::ForgetNotices { org, notices } => self.forget_notices(*org, notices),
            Change::ExpungeMessage { app, message } => self.expunge_message(*app, *message),
            Change::ExpungeAttempt { message, attempt, .. } => self.expunge_attempt(*message, *attempt),
            Change::CreatePolicy { policy } => self.create_policy(policy),
            Change::ReplacePolicy { policy } => self.replace_policy(policy),
            Change::DeletePolicy { org, name } => self.delete_policy(*org, name),
            Change::CreateProfile { profile } => self.create_profile(profile),
            Change::ReplaceProfile { profile } => self.replace_profile(profile),
            Change::DeleteProfile { org, name } => self.delete_profile(*org, name),
            Change::CreateApiKey { key, idempotency } => {
                let (owner, id) = (*key.org.as_bytes(), *key.id.as_bytes());
                self.once(owner, *idempotency, id, |disk| disk.create_api_key(key))
            }
            Change::RenameApiKey { org, id, name } => self.rename_api_key(*org, *id, name),
            Change::RevokeApiKey { org, id } => self.revoke_api_key(*org, *id),
            Change::NoteKeyUses { uses } => self.note_key_uses(uses),
            Change::PutSetting { name, value } => self.put_setting(name, value),
            Change::Reschedule { deliveries } => self.reschedule(deliveries),
            Change::TakePlaces { now, limit } => self.take_places(*now, *limit, false),
            Change::GrantPortalAccess { app } => self.grant_portal_access(*app),
            Change::EndPortalTokens { app, cuts, at } => self.end_portal_tokens(*app, cuts, *at),
            Change::RevokeToken { token } => self.revoke_token(token),
            Change::WriteEventTypes(change) => {
                let (owner, id) = (*change.org.as_bytes(), *change.resource.as_bytes());
                self.once(owner, change.idempotency, id, |disk| disk.write_event_types(change))
            }
            Change::CreateSource { source, application, idempotency } => {
                let (owner, id) = (*source.org.as_bytes(), *source.id.as_bytes());
                self.once(owner, *idempotency, id, |disk| disk.create_source(source, application))
            }
            Change::UpdateSource { source, was } => self.replace_source(source, *was),
            Change::RotateSourceToken { source, was, idempotency } => {
                let (owner, id) = (*source.org.as_bytes(), *source.id.as_bytes());
                self.once(owner, *idempotency, id, |disk| disk.replace_source(source, *was))
            }
            Change::DeleteSource { source, app, at } => self.delete_source(*source, *app, *at),
        }
    }

    pub(super) fn settle_setting(&mut self, name: &'static str, value: &[u8]) -> Vec<u8> {
        self.settings.entry(name).or_insert_with(|| value.to_vec()).clone()
    }

    fn put_setting(&mut self, name: &'static str, value: &[u8]) -> Changed {
        self.settings.insert(name, value.to_vec());
        Changed::Done { removed: Vec::new() }
    }

    /// Runs `create` unless the key has been used; keeps the key if something was made.
    fn once(
        &mut self,
        owner: [u8; 20],
        idempotency: Option<IdempotencyKey>,
        resource: [u8; 20],
        create: impl FnOnce(&mut Self) -> Changed,
    ) -> Changed {
        let Some(used) = idempotency else {
            return create(self);
        };
        if let Some(resource) = self.request(owner, used.digest) {
            return Changed::Repeated { resource };
        }
        let changed = create(self);
        if changed.made_something() {
            self.keep_request(owner, used, resource);
        }
        changed
    }

    /// Whether another application of the organization has its uid.
    pub(super) fn has_taken_uid(&self, application: &Application) -> bool {
        let same_name = |row: &ApplicationRow| {
            row.application.org == application.org && row.application.uid == application.uid
        };
        application.uid.is_some() && self.applications.values().any(same_name)
    }

    pub(super) fn create_application(&mut self, application: &Application) -> Changed {
        if self.has_taken_uid(application) {
            return Changed::UidTaken;
        }
        if self.applications.contains_key(&application.id) {
            return Changed::Repeated { resource: *application.id.as_bytes() };
        }
        let row = ApplicationRow { application: application.clone(), version: 1, deleted: false };
        self.applications.insert(application.id, row);
        Changed::Done { removed: Vec::new() }
    }

    fn update_application(&mut self, application: &Application, was: Timestamp) -> Changed {
        let same_name = |row: &ApplicationRow| {
            let other = &row.application;
            other.org == application.org && other.uid == application.uid && other.id != application.id
        };
        let taken = application.uid.is_some() && self.applications.values().any(same_name);
        let there = |row: &&mut ApplicationRow| row.application.org == application.org && !row.deleted;
        let Some(row) = self.applications.get_mut(&application.id).filter(there) else {
            return Changed::NotFound;
        };
        if row.application.updated_at != was {
            return Changed::Stale;
        }
        if taken {
            return Changed::UidTaken;
        }
        row.version += 1;
        row.application = Application { created_at: row.application.created_at, ..application.clone() };
        Changed::Done { removed: Vec::new() }
    }

    /// Whether the policy that an endpoint names is there.
    pub(super) fn knows_policy(&self, endpoint: &Endpoint) -> bool {
        BUILTIN_NAMES.contains(&endpoint.config.policy.as_str())
            || self.policies.contains_key(&(endpoint.org, endpoint.config.policy.clone()))
    }

    fn create_endpoint(&mut self, endpoint: &Endpoint) -> Changed {
        let same_name = |row: &Endpoint| row.app == endpoint.app && row.config.uid == endpoint.config.uid;
        let taken = endpoint.config.uid.is_some() && self.endpoints.values().any(same_name);
        let (policy, profile) = (self.knows_policy(endpoint), self.knows_profile(endpoint));
        let Some(owner) = self.applications.get_mut(&endpoint.app) else {
            return Changed::NotFound;
        };
        if owner.deleted || owner.application.org != endpoint.org {
            return Changed::NotFound;
        }
        if taken {
            return Changed::UidTaken;
        }
        if !policy {
            return Changed::NoSuchPolicy;
        }
        if !profile {
            return Changed::NoSuchProfile;
        }
        if self.endpoints.contains_key(&endpoint.id) {
            return Changed::Repeated { resource: *endpoint.id.as_bytes() };
        }
        owner.version += 1;
        self.endpoints.insert(endpoint.id, endpoint.clone());
        Changed::Done { removed: Vec::new() }
    }

    fn update_endpoint(&mut self, endpoint: &Endpoint, was: &Fence, resume: bool) -> Changed {
        let same_name = |row: &Endpoint| {
            row.app == endpoint.app && row.config.uid == endpoint.config.uid && row.id != endpoint.id
        };
        let taken = endpoint.config.uid.is_some() && self.endpoints.values().any(same_name);
        let (policy, profile) = (self.knows_policy(endpoint), self.knows_profile(endpoint));
        let there = |row: &&mut Endpoint| row.app == endpoint.app && !row.deleted;
        let Some(row) = self.endpoints.get_mut(&endpoint.id).filter(there) else {
            return Changed::NotFound;
        };
        if Fence::from(&*row) != *was {
            return Changed::Stale;
        }
        if taken {
            return Changed::UidTaken;
        }
        if !policy {
            return Changed::NoSuchPolicy;
        }
        if !profile {
            return Changed::NoSuchProfile;
        }
        let orders = endpoint.config.ordering.is_fifo() && !row.config.ordering.is_fifo();
        let health = match row.config.ordering.blocks() && endpoint.config.ordering.blocks() {
            true => row.health.clone(),
            false => row.health.unblocked(endpoint.updated_at),
        };
        let waiting = || self.lanes.iter().filter(|((lane, _), _)| *lane == endpoint.id);
        if orders && waiting().count() > Obstacle::MOST_WAITING {
            return Changed::NotOrderable(Obstacle::TooManyWait);
        }
        let before = row.clone();
        *row = Endpoint { health, last_error: before.last_error.clone(), ..endpoint.clone() };
        if let Some((health, cause)) = endpoint.switched(&before, resume) {
            row.health = health;
            self.note(&before, cause, endpoint.updated_at, "");
        }
        if let Some(owner) = self.applications.get_mut(&endpoint.app) {
            owner.version += 1;
        }
        if orders {
            self.put_in_order(endpoint.id, endpoint.updated_at);
        }
        Changed::Done { removed: Vec::new() }
    }

    fn create_policy(&mut self, own: &OwnPolicy) -> Changed {
        let key = (own.org, own.policy.name.clone());
        if self.policies.contains_key(&key) {
            return Changed::UidTaken;
        }
        self.policies.insert(key, own.clone());
        Changed::Done { removed: Vec::new() }
    }

    fn replace_policy(&mut self, own: &OwnPolicy) -> Changed {
        let Some(row) = self.policies.get_mut(&(own.org, own.policy.name.clone())) else {
            return Changed::NotFound;
        };
        row.policy = own.policy.clone();
        row.updated_at = own.updated_at;
        Changed::Done { removed: Vec::new() }
    }

    fn delete_policy(&mut self, org: OrgId, name: &str) -> Changed {
        let uses = |row: &&Endpoint| row.org == org && row.config.policy == name && !row.deleted;
        if let Some(row) = self.endpoints.values().find(uses) {
            return Changed::InUse { endpoint: Some(row.id) };
        }
        match self.policies.remove(&(org, name.to_owned())) {
            Some(_) => Changed::Done { removed: Vec::new() },
            None => Changed::NotFound,
        }
    }

    pub(super) fn delete_application(&mut self, app: AppId, at: Timestamp) -> Changed {
        let Some(row) = self.applications.get_mut(&app).filter(|row| !row.deleted) else {
            return Changed::NotFound;
        };
        row.deleted = true;
        row.version += 1;
        row.application.uid = None;
        row.application.updated_at = at;
        self.endpoints.values_mut().filter(|row| row.app == app).for_each(|row| remove(row, at));
        self.api_keys.retain(|_, key| key.app != Some(app));
        Changed::Done { removed: Vec::new() }
    }

    fn delete_endpoint(&mut self, app: AppId, id: EndpointId, at: Timestamp) -> Changed {
        let Some(endpoint) = self.endpoints.get_mut(&id).filter(|row| is_owned(row, app)) else {
            return Changed::NotFound;
        };
        remove(endpoint, at);
        if let Some(owner) = self.applications.get_mut(&app) {
            owner.version += 1;
        }
        Changed::Done { removed: vec![id] }
    }

    fn replace_secrets(
        &mut self,
        (app, id): (AppId, EndpointId),
        was: &[u8],
        sealed: &[u8],
        at: Timestamp,
    ) -> Changed {
        let Some(endpoint) = self.endpoints.get_mut(&id).filter(|row| is_owned(row, app)) else {
            return Changed::NotFound;
        };
        if endpoint.sealed != was {
            return Changed::Stale;
        }
        endpoint.sealed = sealed.to_vec();
        endpoint.updated_at = at;
        if let Some(owner) = self.applications.get_mut(&app) {
            owner.version += 1;
        }
        Changed::Done { removed: Vec::new() }
    }
}

/// Whether somebody of the application has made it.
fn is_owned(endpoint: &Endpoint, app: AppId) -> bool {
    endpoint.app == app && !endpoint.deleted && !endpoint.direct
}

fn remove(endpoint: &mut Endpoint, at: Timestamp) {
    endpoint.deleted = true;
    endpoint.config.uid = None;
    endpoint.updated_at = at;
}
