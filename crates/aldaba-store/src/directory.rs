//! Applications and their endpoints.

use crate::{
    ApiKey, AuditEntry, Done, EventType, EventTypeChange, HealthChange, HealthChangeNumber, IdempotencyKey,
    LastError, Notice, NoticeNumber, Order, Page, PortalCut, Read, Replay, RevokedToken, Source,
};
use aldaba_delivery::filter::{Facts, Filter, Filters};
use aldaba_delivery::{
    ApiKeyId, AppId, AttemptId, ConditionCause, EndpointId, GateScope, Health, HealthStatus, MessageId,
    Ordering, OrgId, Origin, Policy, ReplayId, SourceId, Timestamp, WhenDisabled,
};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    pub id: AppId,
    pub org: OrgId,
    pub uid: Option<String>,
    pub name: String,
    pub throttle_rate: Option<u16>,
    /// Where its people want to be told when something is wrong.
    pub alert_email: Option<String>,
    /// A JSON object of strings.
    pub metadata: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Application {
    /// Bytes.
    pub const LONGEST_NAME: usize = 4096;

    /// The names, as callers know them, of what is not as it was `before`.
    pub fn changed_since(&self, before: &Self) -> Vec<&'static str> {
        let fields = [
            ("uid", self.uid != before.uid),
            ("name", self.name != before.name),
            ("throttleRate", self.throttle_rate != before.throttle_rate),
            ("alertEmail", self.alert_email != before.alert_email),
            ("metadata", self.metadata != before.metadata),
        ];
        fields.into_iter().filter_map(|(name, changed)| changed.then_some(name)).collect()
    }
}

/// What an endpoint is asked to be: what its owner gives, and may give again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointConfig {
    pub uid: Option<String>,
    /// Without credentials: those are among the sealed secrets.
    pub url: String,
    pub description: String,
    pub version: u16,
    /// Turned off by its operator.
    pub disabled: bool,
    pub when_disabled: WhenDisabled,
    /// Sorted, without repeats; empty: all.
    pub event_types: Vec<String>,
    /// Sorted, without repeats; empty: all.
    pub channels: Vec<String>,
    /// `None`: it takes all that it subscribes to.
    pub filter: Option<Arc<Filter>>,
    pub throttle_rate: Option<u16>,
    pub policy: String,
    /// `None`: the server's default.
    pub profile: Option<String>,
    /// HTTP/2 is offered to the receiver.
    pub http2: bool,
    pub ordering: Ordering,
    /// A JSON object of strings.
    pub metadata: String,
}

impl EndpointConfig {
    /// Bytes.
    pub const LONGEST_URL: usize = 8192;
    /// Bytes.
    pub const LONGEST_DESCRIPTION: usize = 4096;
    pub const MOST_EVENT_TYPES: usize = 1000;
    pub const MOST_CHANNELS: usize = 10;

    /// One that takes everything, at this URL.
    pub fn new(url: impl Into<String>, policy: impl Into<String>) -> Self {
        Self {
            uid: None,
            url: url.into(),
            description: String::new(),
            version: 1,
            disabled: false,
            when_disabled: WhenDisabled::Skip,
            event_types: Vec::new(),
            channels: Vec::new(),
            filter: None,
            throttle_rate: None,
            policy: policy.into(),
            profile: None,
            http2: false,
            ordering: Ordering::None,
            metadata: "{}".into(),
        }
    }

    /// The names, as callers know them, of what is not as it was `before`.
    pub fn changed_since(&self, before: &Self) -> Vec<&'static str> {
        // All of them are named, so that a new one cannot be forgotten here.
        let Self {
            uid,
            url,
            description,
            version,
            disabled,
            when_disabled,
            event_types,
            channels,
            throttle_rate,
            policy,
            profile,
            http2,
            ordering,
            filter,
            metadata,
        } = self;
        let fields = [
            ("uid", *uid != before.uid),
            ("url", *url != before.url),
            ("description", *description != before.description),
            ("version", *version != before.version),
            ("disabled", *disabled != before.disabled),
            ("whenDisabled", *when_disabled != before.when_disabled),
            ("eventTypes", *event_types != before.event_types),
            ("channels", *channels != before.channels),
            ("throttleRate", *throttle_rate != before.throttle_rate),
            ("policy", *policy != before.policy),
            ("profile", *profile != before.profile),
            ("http2", *http2 != before.http2),
            ("ordering", *ordering != before.ordering),
            ("filter", *filter != before.filter),
            ("metadata", *metadata != before.metadata),
        ];
        fields.into_iter().filter_map(|(name, changed)| changed.then_some(name)).collect()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub id: EndpointId,
    pub app: AppId,
    pub org: OrgId,
    pub config: EndpointConfig,
    /// Signing keys, credentials, headers and the client certificate, encrypted. The store never looks inside.
    pub sealed: Vec<u8>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted: bool,
    /// Nobody has made it: something was dispatched to its address. It is on no list and hears of no event.
    pub direct: bool,
    pub health: Health,
    /// The newest failed attempt.
    pub last_error: Option<LastError>,
}

impl Endpoint {
    /// The same one with a part of its configuration changed.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut EndpointConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// What becomes of the health when this configuration takes the place of `before`, where anything does.
    pub fn switched(&self, before: &Self, resume: bool) -> Option<(Health, ConditionCause)> {
        let (health, at) = (&before.health, self.updated_at);
        match (before.config.disabled, self.config.disabled) {
            (false, true) => Some((health.turned_off(at), ConditionCause::TurnedOff)),
            (true, false) => Some((health.resumed(at), ConditionCause::TurnedOn)),
            (false, false) if resume && health.status != HealthStatus::Active => {
                Some((health.resumed(at), ConditionCause::Resumed))
            }
            _ => None,
        }
    }
}

impl Endpoint {
    /// It waits for its owner, because a delivery ended without success. That counts only as long as the
    /// ordering asks for it.
    pub fn is_blocked(&self) -> bool {
        self.health.status == HealthStatus::Blocked && self.config.ordering.blocks()
    }

    /// Nothing is sent until someone resumes it.
    pub fn waits_for_its_owner(&self) -> bool {
        match self.health.status {
            HealthStatus::Blocked => self.is_blocked(),
            HealthStatus::Active | HealthStatus::Failed | HealthStatus::Gone => {
                self.health.waits_for_its_owner()
            }
        }
    }
}

/// An application with all that is needed to match a message: one version of it.
#[derive(Clone, Debug)]
pub struct Tenant {
    pub application: Application,
    pub version: u64,
    pub endpoints: Vec<Subscription>,
    /// Those of the endpoints, by their places; `None`: not one has any.
    pub filters: Option<Filters>,
    /// The one that it belongs to, from its beginning to its end.
    pub source: Option<SourceId>,
}

impl Tenant {
    /// A filter counts as one more endpoint for so many bytes of it.
    const FILTER_BYTES: usize = 256;

    pub fn new(application: Application, version: u64, endpoints: Vec<Subscription>) -> Self {
        let filters = Filters::new(endpoints.iter().map(|endpoint| endpoint.filter.clone()));
        Self { application, version, endpoints, filters, source: None }
    }

    #[must_use]
    pub fn of_source(self, source: Option<SourceId>) -> Self {
        Self { source, ..self }
    }

    /// How much of the memory it takes, counted in endpoints.
    pub fn weight(&self) -> usize {
        let filter = |endpoint: &Subscription| {
            endpoint.filter.as_ref().map_or(0, |filter| filter.as_str().len().div_ceil(Self::FILTER_BYTES))
        };
        self.endpoints.len() + self.endpoints.iter().map(filter).sum::<usize>()
    }
}

/// What of an endpoint decides whether it gets a message. It is kept in memory for very many of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    pub id: EndpointId,
    pub disabled: bool,
    /// Its deliveries go out in the order of their numbers.
    pub ordered: bool,
    /// While it is disabled, messages wait for it.
    pub holds: bool,
    /// Sorted, without repeats; empty: all.
    pub event_types: Box<[String]>,
    /// Sorted, without repeats; empty: all.
    pub channels: Box<[String]>,
    pub filter: Option<Arc<Filter>>,
    /// It gets what is dispatched to it, and nothing else.
    pub direct: bool,
}

impl Subscription {
    /// Whether a message of this type and these channels is for it, as far as its lists go.
    pub fn lists(&self, event_type: &str, channels: &[String]) -> bool {
        let of_type = self.event_types.is_empty() || self.event_types.iter().any(|name| name == event_type);
        of_type && (self.channels.is_empty() || self.channels.iter().any(|name| channels.contains(name)))
    }

    /// Whether a message is for it. Who asks for all endpoints of an application asks [`Tenant::filters`].
    pub fn wants(&self, facts: &Facts<'_>) -> bool {
        self.lists(facts.event_type, facts.channels)
            && self.filter.as_ref().is_none_or(|filter| filter.holds(facts))
    }
}

impl From<&Endpoint> for Subscription {
    fn from(endpoint: &Endpoint) -> Self {
        Self {
            id: endpoint.id,
            disabled: endpoint.config.disabled,
            ordered: endpoint.config.ordering.is_fifo(),
            holds: endpoint.config.when_disabled == WhenDisabled::Hold,
            event_types: endpoint.config.event_types.clone().into(),
            channels: endpoint.config.channels.clone().into(),
            filter: endpoint.config.filter.clone(),
            direct: endpoint.direct,
        }
    }
}

/// A policy that an organization has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPolicy {
    pub org: OrgId,
    pub policy: Policy,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A wire profile that an organization has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnProfile {
    pub org: OrgId,
    pub name: String,
    /// What it is, as JSON. The store never looks inside.
    pub body: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// How a caller names an application, an endpoint or a message: by id or by its own name for it.
pub type Key = String;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WhichApplication {
    pub org: OrgId,
    pub key: Key,
}

/// What an endpoint was when it was read. It keeps two callers from undoing each other's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    pub updated_at: Timestamp,
    pub sealed: Vec<u8>,
}

impl From<&Endpoint> for Fence {
    fn from(endpoint: &Endpoint) -> Self {
        Self { updated_at: endpoint.updated_at, sealed: endpoint.sealed.clone() }
    }
}

/// A change of the directory, or of what somebody wants to be forgotten. Each of the directory raises the
/// version of its application.
#[derive(Clone, Debug)]
pub enum Change {
    CreateApplication {
        application: Application,
        idempotency: Option<IdempotencyKey>,
    },
    /// Puts other values in the place of those that the caller has read, at `was`.
    UpdateApplication {
        application: Application,
        was: Timestamp,
    },
    /// The API keys that are for it alone go with it. Refused while a source owns it.
    DeleteApplication {
        app: AppId,
        at: Timestamp,
    },
    CreateEndpoint {
        endpoint: Endpoint,
        idempotency: Option<IdempotencyKey>,
        notices: Vec<Notice>,
    },
    /// Puts another configuration in the place of the one that the caller has read, and leaves the
    /// health alone: that belongs to the endpoint's lane. Only where the endpoint is turned off or on, or
    /// `resume` says so, does the health change as by a hand; and a block ends with the ordering that asked for
    /// it. What waits for an endpoint that becomes an ordered one waits in its order from then on.
    UpdateEndpoint {
        endpoint: Endpoint,
        was: Fence,
        resume: bool,
        notices: Vec<Notice>,
    },
    /// Makes an endpoint active that its policy has given up or whose receiver was gone, and lets go what
    /// is held for it. One that its operator has turned off stays off.
    ResumeEndpoint {
        app: AppId,
        endpoint: EndpointId,
        at: Timestamp,
        recovery: Option<Recovery>,
        notices: Vec<Notice>,
    },
    /// Opens gates.
    ReleaseGates {
        gates: Vec<(Origin, GateScope)>,
    },
    DeleteEndpoint {
        app: AppId,
        endpoint: EndpointId,
        at: Timestamp,
        notices: Vec<Notice>,
    },
    /// Puts other secrets in the place of those that the caller has read. The fence `was` keeps two
    /// callers from undoing each other's change.
    ReplaceSecrets {
        app: AppId,
        endpoint: EndpointId,
        was: Vec<u8>,
        sealed: Vec<u8>,
        at: Timestamp,
        idempotency: Option<IdempotencyKey>,
        notices: Vec<Notice>,
    },
    /// Its steps follow, until it is over. An application has [`Replay::MOST_RUNNING`] at most.
    StartReplay {
        replay: Replay,
        idempotency: Option<IdempotencyKey>,
    },
    /// What it has opened stays open.
    CancelReplay {
        org: OrgId,
        replay: ReplayId,
        at: Timestamp,
    },
    /// These have been accepted as messages, or there is nobody who wants them. If others were left out for want
    /// of room, a notice of that takes their place.
    ForgetNotices {
        org: OrgId,
        notices: Vec<NoticeNumber>,
    },
    /// Deletes the payload of a message. What waits of it is left to whoever ends it.
    ExpungeMessage {
        app: AppId,
        message: MessageId,
    },
    /// Deletes what came back to an attempt.
    ExpungeAttempt {
        app: AppId,
        message: MessageId,
        attempt: AttemptId,
    },
    CreatePolicy {
        policy: OwnPolicy,
    },
    ReplacePolicy {
        policy: OwnPolicy,
    },
    /// Refused while an endpoint names it.
    DeletePolicy {
        org: OrgId,
        name: String,
    },
    CreateProfile {
        profile: OwnProfile,
    },
    ReplaceProfile {
        profile: OwnProfile,
    },
    /// Refused while an endpoint names it.
    DeleteProfile {
        org: OrgId,
        name: String,
    },
    CreateApiKey {
        key: ApiKey,
        idempotency: Option<IdempotencyKey>,
    },
    RenameApiKey {
        org: OrgId,
        id: ApiKeyId,
        name: String,
    },
    RevokeApiKey {
        org: OrgId,
        id: ApiKeyId,
    },
    /// About when keys were last used. Those that are gone meanwhile are passed over.
    NoteKeyUses {
        uses: Vec<(ApiKeyId, Timestamp)>,
    },
    /// Changes nothing: the token that is issued after it is kept nowhere. It is made for the audit log.
    GrantPortalAccess {
        app: AppId,
    },
    /// All of them are the application's. Each takes the place of those that it covers.
    EndPortalTokens {
        app: AppId,
        cuts: Vec<PortalCut>,
        at: Timestamp,
    },
    RevokeToken {
        token: RevokedToken,
    },
    /// Stale if one of them is no longer what it was when the caller read it.
    WriteEventTypes(EventTypeChange),
    /// Makes its application too.
    CreateSource {
        source: Source,
        application: Application,
        idempotency: Option<IdempotencyKey>,
    },
    /// Puts other values in the place of those that the caller has read, at `was`: tokens too.
    UpdateSource {
        source: Source,
        was: Timestamp,
    },
    /// The same, where a token takes the place of the one before.
    RotateSourceToken {
        source: Source,
        was: Timestamp,
        idempotency: Option<IdempotencyKey>,
    },
    /// Deletes its application as [`Change::DeleteApplication`] does.
    DeleteSource {
        source: SourceId,
        app: AppId,
        at: Timestamp,
    },
}

impl Change {
    /// What is to be kept with it, if it is made.
    pub fn notices(&self) -> &[Notice] {
        match self {
            Self::CreateEndpoint { notices, .. }
            | Self::UpdateEndpoint { notices, .. }
            | Self::ResumeEndpoint { notices, .. }
            | Self::DeleteEndpoint { notices, .. }
            | Self::ReplaceSecrets { notices, .. } => notices,
            _ => &[],
        }
    }
}

/// A replay of what has died in an outage, to be started by the resume that ends it: in its commit, so that
/// there is never the one without the other.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// What it looks back to is for the store to say: see [`Replay::of_outage`].
    pub replay: Replay,
    pub idempotency: Option<IdempotencyKey>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Made. An endpoint that was deleted with it is named, so that its lane can end. Those of a deleted application
    /// are not: there may be very many. They count as deleted from this commit on.
    Done {
        removed: Vec<EndpointId>,
    },
    /// The idempotency key was used before; nothing was changed. The bytes of the id made then.
    Repeated {
        resource: [u8; 20],
    },
    /// The uid belongs to another one (an application's, a source's, or an endpoint's of the application); or a
    /// policy or profile has the name.
    UidTaken,
    NotFound,
    /// The application, endpoint or event type is no longer what the change was made for. Nothing was changed.
    Stale,
    /// The application has as many endpoints, or running replays, or the organization as many keys or sources, as it
    /// may have.
    TooMany,
    /// The endpoint names a policy that is not there.
    NoSuchPolicy,
    /// The endpoint names a wire profile that is not there.
    NoSuchProfile,
    /// The endpoint cannot become an ordered one now. Nothing was changed.
    NotOrderable(Obstacle),
    /// An endpoint names the policy or the profile; a source owns the application.
    InUse,
    /// The endpoint was not active before, and is now. Since when it had failed, as far as that is known, and
    /// the replay that was asked for, if anything has died since then.
    Resumed {
        failing_since: Option<Timestamp>,
        recovery: Option<Box<Replay>>,
    },
    /// There was nothing to change.
    Unchanged,
}

impl Changed {
    /// Whether there is something new that a repeat of the request must not make again.
    pub fn made_something(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Resumed { recovery: Some(_), .. })
    }

    /// Whether anything is different now. Only then does the audit log get a row, and are notices kept.
    pub fn is_change(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Resumed { .. })
    }
}

/// Why an endpoint cannot become an ordered one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// More deliveries wait for it than one commit can put in order.
    TooManyWait,
    /// One that was never tried is due later than now: it would hold up all that come after it.
    OneIsDelayed,
}

impl Obstacle {
    /// How many waiting deliveries one commit puts in order.
    pub const MOST_WAITING: usize = 10_000;
}

pub trait Directory {
    /// One change, one transaction. If anything is different afterwards, the entry is in the audit log too.
    fn change(&self, change: Change, audit: Option<Arc<AuditEntry>>, done: Done<Changed>);

    fn tenant(&self, which: WhichApplication) -> Read<Option<Tenant>>;

    fn application(&self, which: WhichApplication) -> Read<Option<Application>>;

    /// The version of its configuration, which every change of it or of its endpoints raises; `None`: there is no
    /// such application in any organization.
    fn application_version(&self, app: AppId) -> Read<Option<u64>>;

    fn applications(&self, org: OrgId, page: Page<AppId>, order: Order) -> Read<Vec<Application>>;

    /// By id or uid; deleted ones are not found.
    fn endpoint(&self, app: AppId, key: Key) -> Read<Option<Endpoint>>;

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

    /// Whether any other organization has an endpoint at an origin, given as above.
    fn others_have_endpoints_at(&self, org: OrgId, start: String) -> Read<bool>;

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
