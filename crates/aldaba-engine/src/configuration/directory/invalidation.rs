//! Invalidates caches and lanes after a change was committed.

use super::DirectoryCore;
use super::event_types::EventTypeInvalidation;
use super::policies::PolicyInvalidation;
use super::profiles::ProfileInvalidation;
use super::sources::SourceInvalidation;
use crate::configuration::credentials::CredentialsInvalidation;
use crate::scheduling::SchedulingEvent;
use aldaba_delivery::{AppId, EndpointId, GateKey};
use aldaba_store::{Application, Change, Changed, Erasure};
use std::sync::Arc;

/// Derived before the change is given to the store, which consumes it.
pub(super) struct Invalidation {
    core: Arc<DirectoryCore>,
    /// The change has notices.
    has_notices: bool,
    /// An application as it is now; `None`: it was deleted.
    application: Option<(AppId, Option<Application>)>,
    policies: Option<PolicyInvalidation>,
    profiles: Option<ProfileInvalidation>,
    event_types: Option<EventTypeInvalidation>,
    credentials: Option<CredentialsInvalidation>,
    sources: Option<SourceInvalidation>,
    lanes: Option<LaneInvalidation>,
}

impl Invalidation {
    pub(super) fn of(change: &Change, core: &Arc<DirectoryCore>) -> Self {
        let application = match change {
            Change::CreateApplication { application, .. } | Change::UpdateApplication { application, .. } => {
                Some((application.id, Some(application.clone())))
            }
            Change::DeleteApplication { app, .. } => Some((*app, None)),
            Change::StartErasure { erasure, .. } => Some((erasure.app, None)),
            _ => None,
        };
        Self {
            has_notices: !change.notices().is_empty(),
            application,
            policies: PolicyInvalidation::of(change, &core.policies),
            profiles: ProfileInvalidation::of(change, &core.profiles),
            event_types: EventTypeInvalidation::of(change, &core.event_types),
            credentials: CredentialsInvalidation::of(change, &core.credentials),
            sources: SourceInvalidation::of(change, &core.source_cache, &core.source_counters),
            lanes: LaneInvalidation::of(change),
            core: core.clone(),
        }
    }

    /// Whether requests could contradict the change until the lanes apply it.
    pub(super) fn affects_lanes(&self) -> bool {
        self.lanes.is_some() || self.profiles.is_some() || self.policies.is_some()
    }

    pub(super) fn apply(self, changed: &Changed) {
        let Self {
            core,
            has_notices,
            application,
            policies,
            profiles,
            event_types,
            credentials,
            sources,
            lanes,
        } = self;
        if has_notices && changed.is_change() {
            core.listeners.notices_pending.notify_one();
        }
        if let Changed::Done { .. } = changed {
            match application {
                Some((_, Some(application))) => core.listeners.put(&application),
                Some((app, None)) => core.listeners.remove(app),
                None => {}
            }
            if let Some(invalidation) = policies {
                invalidation.apply(&core.inbox);
            }
            if let Some(invalidation) = profiles {
                invalidation.apply(&core.inbox);
            }
            if let Some(invalidation) = event_types {
                invalidation.apply();
            }
            if let Some(invalidation) = credentials {
                invalidation.apply();
            }
            if let Some(invalidation) = sources {
                invalidation.apply();
            }
        }
        // Lanes are notified in commit order, before anything that follows.
        if let Some(invalidation) = lanes {
            invalidation.apply(changed, &core);
        }
    }
}

/// What a change invalidates in the lanes.
enum LaneInvalidation {
    Altered(EndpointId),
    /// An endpoint of the application was deleted.
    Emptied(AppId),
    ApplicationChanged(AppId),
    ApplicationGone(AppId),
    ErasureStarted(Box<Erasure>),
    Resumed(AppId, EndpointId),
    Released(Vec<GateKey>),
}

impl LaneInvalidation {
    fn of(change: &Change) -> Option<Self> {
        Some(match change {
            Change::ReplaceSecrets { endpoint, .. } => Self::Altered(*endpoint),
            Change::UpdateEndpoint { endpoint, .. } => Self::Altered(endpoint.id),
            Change::DeleteEndpoint { app, .. } => Self::Emptied(*app),
            Change::UpdateApplication { application, .. } => Self::ApplicationChanged(application.id),
            Change::DeleteApplication { app, .. } | Change::DeleteSource { app, .. } => {
                Self::ApplicationGone(*app)
            }
            Change::StartErasure { erasure, .. } => Self::ErasureStarted(erasure.clone()),
            Change::ResumeEndpoint { app, endpoint, .. } => Self::Resumed(*app, *endpoint),
            Change::ReleaseGates { gates } => Self::Released(gates.clone()),
            _ => return None,
        })
    }

    fn apply(self, changed: &Changed, core: &DirectoryCore) {
        match (self, changed) {
            (Self::Resumed(app, endpoint), Changed::Resumed { recovery, .. }) => {
                core.inbox.send(SchedulingEvent::EndpointResumed(app, endpoint));
                if let Some(replay) = recovery {
                    core.replays.run(replay);
                }
            }
            (Self::ApplicationGone(app), Changed::Done { .. }) => application_gone(core, app),
            (Self::ErasureStarted(erasure), Changed::Done { .. }) => {
                application_gone(core, erasure.app);
                let _ = core.erasures.send(*erasure);
            }
            (Self::Emptied(app), Changed::Done { removed }) => {
                core.inbox.send(SchedulingEvent::EndpointsDeleted(app, removed.clone()));
            }
            (Self::ApplicationChanged(app), Changed::Done { .. }) => {
                core.inbox.send(SchedulingEvent::ApplicationChanged(app));
            }
            (Self::Altered(endpoint), Changed::Done { .. }) => {
                core.inbox.send(SchedulingEvent::EndpointChanged(endpoint));
            }
            (Self::Released(gates), Changed::Done { .. }) => {
                core.inbox.send(SchedulingEvent::GatesOpened(gates));
            }
            _ => {}
        }
    }
}

fn application_gone(core: &DirectoryCore, app: AppId) {
    core.tenants.forget_application(app);
    core.inbox.send(SchedulingEvent::ApplicationDeleted(app));
    let _ = core.orphans.send(app);
}
