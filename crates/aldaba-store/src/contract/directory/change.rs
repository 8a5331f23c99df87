//! Everything that somebody can change. What each is called in the audit log is in `audit.rs`.

use crate::{
    Alert, ApiKey, Application, CertificateDate, Endpoint, Erasure, EventTypeChange, Fence, IdempotencyKey,
    NewMail, Notice, NoticeNumber, OwnPolicy, OwnProfile, PendingAlert, PendingDelivery, PortalExpiry,
    Replay, RevokedToken, Source,
};
use aldaba_delivery::alert::AlertRule;
use aldaba_delivery::{
    AlertId, ApiKeyId, AppId, AttemptId, EndpointId, GateKey, MessageId, OrgId, ReplayId, SourceId, Timestamp,
};

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
    /// is held for it. One that its operator has turned off is refused.
    ResumeEndpoint {
        app: AppId,
        endpoint: EndpointId,
        at: Timestamp,
        recovery: Option<Recovery>,
        notices: Vec<Notice>,
    },
    /// Opens gates.
    ReleaseGates {
        gates: Vec<GateKey>,
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
        /// When the first certificate among the new ones expires.
        certificate_expires_at: Option<Timestamp>,
        at: Timestamp,
        idempotency: Option<IdempotencyKey>,
        notices: Vec<Notice>,
    },
    /// When client certificates expire, of endpoints whose secrets are still those.
    DateCertificates {
        dates: Vec<CertificateDate>,
    },
    /// Its steps follow, until it is over. An application has [`Replay::MAX_RUNNING`] at most.
    StartReplay {
        replay: Replay,
        idempotency: Option<IdempotencyKey>,
    },
    /// Deletes its application, and its source with it; a deleted application stays deleted. The steps that remove
    /// everything follow. An application that is being erased is not erased twice: `Changed::Repeated` names that erasure.
    StartErasure {
        erasure: Box<Erasure>,
        source: Option<SourceId>,
        idempotency: Option<IdempotencyKey>,
    },
    /// Changes nothing: an export is a read. It is made for the audit log.
    NoteExport {
        app: AppId,
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
    /// Deletes the payload of a message. Its pending deliveries are left to the caller.
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
        cuts: Vec<PortalExpiry>,
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
    /// Rules have fired, or are resolved.
    WriteAlerts {
        fired: Vec<Alert>,
        resolved: Vec<(AlertId, Timestamp)>,
        notices: Vec<Notice>,
        mails: Vec<NewMail>,
    },
    /// Since when rules are beyond their thresholds that do not fire yet. `judged_at`: when somebody has looked last.
    WritePendingAlerts {
        pending: Vec<PendingAlert>,
        over: Vec<(OrgId, AlertRule)>,
        judged_at: Timestamp,
    },
    /// The alerts of those of these endpoints are resolved that are well under the rules in force: the rules may have changed
    /// since they fired.
    SettleEndpointAlerts {
        endpoints: Vec<EndpointId>,
        at: Timestamp,
    },
    /// Somebody has taken note of an alert. One that is resolved, or that was noted before, stays as it is.
    AcknowledgeAlert {
        org: OrgId,
        alert: AlertId,
        at: Timestamp,
        by: String,
    },
    /// Stores a small value of the installation, in the place of the one before.
    PutSetting {
        name: &'static str,
        value: Vec<u8>,
    },
    /// Corrects due times. A delivery that has changed since it was read is passed over.
    Reschedule {
        deliveries: Vec<Rescheduled>,
    },
    /// Deliveries of ordered endpoints whose messages were for later, and that are due at `now`, take their places in
    /// the order: behind all that have one. Those that are due first come first.
    SequenceDue {
        now: Timestamp,
        limit: usize,
    },
}

/// Another due time for a waiting delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rescheduled {
    pub endpoint: EndpointId,
    /// As it was read: the fence.
    pub was: PendingDelivery,
    pub due_at: Timestamp,
    /// What its stop date counts from, from now on.
    pub clock_start: Timestamp,
}

impl Change {
    /// What is to be kept with it, if it is made.
    pub fn notices(&self) -> &[Notice] {
        match self {
            Self::CreateEndpoint { notices, .. }
            | Self::UpdateEndpoint { notices, .. }
            | Self::ResumeEndpoint { notices, .. }
            | Self::DeleteEndpoint { notices, .. }
            | Self::ReplaceSecrets { notices, .. }
            | Self::WriteAlerts { notices, .. } => notices,
            _ => &[],
        }
    }

    /// What is to be queued with it, if it is made.
    pub fn mails(&self) -> &[NewMail] {
        match self {
            Self::WriteAlerts { mails, .. } => mails,
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
