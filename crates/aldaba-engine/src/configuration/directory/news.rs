//! What a change means for the memory and for the lanes, once it is on disk.

use super::Core;
use super::event_types::EventTypeNews;
use super::policies::PolicyNews;
use super::profiles::ProfileNews;
use super::sources::SourceNews;
use crate::configuration::credentials;
use crate::scheduling::Event;
use aldaba_delivery::{AppId, EndpointId, GateKey};
use aldaba_store::{Application, Change, Changed};
use std::sync::Arc;

/// Found before the change goes to the store, which keeps it meanwhile.
pub(super) struct News {
    core: Arc<Core>,
    /// Somebody is to be told of it.
    noticed: bool,
    /// An application as it is from now on; `None`: it is gone.
    application: Option<(AppId, Option<Application>)>,
    policies: Option<PolicyNews>,
    profiles: Option<ProfileNews>,
    event_types: Option<EventTypeNews>,
    credentials: Option<credentials::News>,
    sources: Option<SourceNews>,
    lanes: Option<LaneNews>,
}

impl News {
    pub(super) fn of(change: &Change, core: &Arc<Core>) -> Self {
        let application = match change {
            Change::CreateApplication { application, .. } | Change::UpdateApplication { application, .. } => {
                Some((application.id, Some(application.clone())))
            }
            Change::DeleteApplication { app, .. } => Some((*app, None)),
            _ => None,
        };
        Self {
            noticed: !change.notices().is_empty(),
            application,
            policies: PolicyNews::of(change, &core.policies),
            profiles: ProfileNews::of(change, &core.profiles),
            event_types: EventTypeNews::of(change, &core.event_types),
            credentials: credentials::News::of(change, &core.credentials),
            sources: SourceNews::of(change, &core.doors, &core.tally),
            lanes: LaneNews::of(change),
            core: core.clone(),
        }
    }

    /// Whether requests might leave that go against it, as long as the lanes have not heard.
    pub(super) fn concerns_lanes(&self) -> bool {
        self.lanes.is_some() || self.profiles.is_some() || self.policies.is_some()
    }

    pub(super) fn take_effect(self, changed: &Changed) {
        let Self { core, noticed, application, policies, profiles, event_types, credentials, sources, lanes } =
            self;
        if noticed && changed.is_change() {
            core.listeners.news.notify_one();
        }
        if let Changed::Done { .. } = changed {
            match application {
                Some((_, Some(application))) => core.listeners.put(&application),
                Some((app, None)) => core.listeners.remove(app),
                None => {}
            }
            if let Some(news) = policies {
                news.take_effect(&core.inbox);
            }
            if let Some(news) = profiles {
                news.take_effect(&core.inbox);
            }
            if let Some(news) = event_types {
                news.take_effect();
            }
            if let Some(news) = credentials {
                news.take_effect();
            }
            if let Some(news) = sources {
                news.take_effect();
            }
        }
        // Lanes hear of it in the order of the commits, before anything that follows.
        if let Some(news) = lanes {
            news.take_effect(changed, &core);
        }
    }
}

/// What the lanes hear of a change.
enum LaneNews {
    Altered(EndpointId),
    /// An endpoint of it is gone.
    Emptied(AppId),
    ApplicationChanged(AppId),
    ApplicationGone(AppId),
    Resumed(AppId, EndpointId),
    Released(Vec<GateKey>),
}

impl LaneNews {
    fn of(change: &Change) -> Option<Self> {
        Some(match change {
            Change::ReplaceSecrets { endpoint, .. } => Self::Altered(*endpoint),
            Change::UpdateEndpoint { endpoint, .. } => Self::Altered(endpoint.id),
            Change::DeleteEndpoint { app, .. } => Self::Emptied(*app),
            Change::UpdateApplication { application, .. } => Self::ApplicationChanged(application.id),
            Change::DeleteApplication { app, .. } | Change::DeleteSource { app, .. } => {
                Self::ApplicationGone(*app)
            }
            Change::ResumeEndpoint { app, endpoint, .. } => Self::Resumed(*app, *endpoint),
            Change::ReleaseGates { gates } => Self::Released(gates.clone()),
            _ => return None,
        })
    }

    fn take_effect(self, changed: &Changed, core: &Core) {
        match (self, changed) {
            (Self::Resumed(app, endpoint), Changed::Resumed { recovery, .. }) => {
                core.inbox.send(Event::Resumed(app, endpoint));
                if let Some(replay) = recovery {
                    core.replays.run(replay);
                }
            }
            (Self::ApplicationGone(app), Changed::Done { .. }) => {
                core.tenants.forget_application(app);
                core.inbox.send(Event::ApplicationRemoved(app));
                let _ = core.orphans.send(app);
            }
            (Self::Emptied(app), Changed::Done { removed }) => {
                core.inbox.send(Event::Removed(app, removed.clone()));
            }
            (Self::ApplicationChanged(app), Changed::Done { .. }) => {
                core.inbox.send(Event::ApplicationChanged(app));
            }
            (Self::Altered(endpoint), Changed::Done { .. }) => core.inbox.send(Event::Altered(endpoint)),
            (Self::Released(gates), Changed::Done { .. }) => core.inbox.send(Event::Released(gates)),
            _ => {}
        }
    }
}
