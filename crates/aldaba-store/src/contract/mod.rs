//! What the server may ask of a store: a trait and a file for each thing, and the values that they speak of.

/// Declares a part of the contract, with the operation behind each call: what it takes, what comes of it, and for a write the
/// [`Op`](crate::operations::Op) that the writer gets, for a read how and by which operation the answer is found.
macro_rules! contract {
    (
        $(#[$trait_doc:meta])*
        pub trait $trait:ident {
            $(writes {
                $($(#[$write_doc:meta])*
                $write:ident($($given:ident: $given_type:ty),+) -> $outcome:ty = $op:ident($($operand:expr),+);)+
            })?
            $(reads {
                $($(#[$read_doc:meta])*
                $how:ident $read:ident($($asked:ident: $asked_type:ty),*) -> $answer:ty = |$($scope:ident),+| $find:expr;)+
            })?
        }
    ) => {
        $(#[$trait_doc])*
        pub trait $trait {
            $($($(#[$write_doc])* fn $write(&self, $($given: $given_type,)+ done: $crate::Done<$outcome>);)+)?
            $($($(#[$read_doc])* fn $read(&self, $($asked: $asked_type),*) -> $crate::Read<$answer>;)+)?
        }

        impl<B: $crate::Backend> $trait for B {
            $($(fn $write(&self, $($given: $given_type,)+ done: $crate::Done<$outcome>) {
                self.write($crate::operations::Op::$op($($operand),+), $crate::operations::Reply::$op(done));
            })+)?
            $($(fn $read(&self, $($asked: $asked_type),*) -> $crate::Read<$answer> {
                self.$how(move |$($scope),+| $find)
            })+)?
        }
    };
}

mod alerts;
mod audit;
mod content;
mod credentials;
mod deliveries;
mod directory;
mod dispatch;
mod erasure;
mod error;
mod event_type;
mod export;
pub(crate) mod health;
mod history;
mod lanes;
mod listing;
mod mail;
mod notices;
mod organization_counts;
mod overviews;
mod replay;
mod retention;
mod source;
mod statistics;
mod write;

pub use alerts::{Alert, Alerts, AlertsQuery, PendingAlert};
pub use audit::{
    Actor, ActorFilter, ActorIdentity, ActorKind, AuditAction, AuditEntry, AuditPage, AuditQuery,
    AuditSubject, Audits, FieldChange, FieldValues, MASK,
};
pub use content::{Content, Message, NewMessage};
pub use credentials::{ApiKey, Credentials, KeyScope, PortalExpiry, RevokedToken};
pub use deliveries::{
    Deliveries, DeliveriesPage, DeliveriesQuery, DeliveryFilter, DeliveryList, DeliveryPosition,
    DeliveryView, LastAttempt, Phase,
};
pub use directory::{
    Application, ApplicationRef, Change, Changed, Directory, Endpoint, EndpointConfig, Fence,
    OrderingObstacle, OwnPolicy, OwnProfile, Recovery, Rescheduled, ResourceKey, Subscription, Tenant,
};
pub use dispatch::{Dispatch, DispatchKind, DispatchState, Dispatches, DispatchesQuery};
pub use erasure::{
    Erasable, ErasedCounts, Erasure, ErasureCount, ErasureState, ErasureStep, ErasureStepped, Erasures,
    ErasuresQuery,
};
pub use error::Error;
pub use event_type::{EventType, EventTypeChange, EventTypeWrite};
pub use export::{ExportCursor, ExportPage, ExportQuery, Exported, Exports};
pub use health::{HEALTH_CHANGES_KEPT, HealthChange, HealthChangeNumber, LastError};
pub use history::{
    Attempt, AttemptScope, AttemptsQuery, DeliveryState, DeliveryStatus, History, Order, Page, Trigger,
};
pub use lanes::{
    DueQuery, FoundLane, FutureDelivery, GateRecord, LanePosition, LaneTarget, Lanes, LanesCursor, LanesPage,
    LanesQuery, OrphansCursor, OrphansPage, OrphansQuery, PendingDelivery, Seq, Sequenced, StartedCursor,
    StartedPage, StartedQuery,
};
pub use listing::{
    AttemptFilter, BoundedCount, EndpointMessage, EndpointMessagesQuery, ListPage, ListRange, MessageFilter,
    MessageProgress, MessagesQuery, Payloads, TimeRange,
};
pub use mail::{
    Mail, MailApplication, MailBatch, MailChange, MailChanged, MailEndpoint, MailNumber, MailPermission,
    MailRecipient, MailSubscription, Mails, NewMail, NextMail, OutageMail,
};
pub use notices::{Notice, NoticeNumber};
pub use organization_counts::{
    ATTEMPT_MILLIS, CertificateDate, CountKind, CountedSpans, CountedTimes, DeadLetterCounts,
    ExpiringCertificate, FailedEndpoints, LATENCY_MILLIS, OrganizationCounts, OrganizationCountsQuery,
    OrganizationStatistics, SealedSecrets, WaitingLanes,
};
pub use overviews::{
    ANSWER_CLASSES, DeadLetterGroup, DeadLetterGroups, DeadLetterOf, ENDPOINT_MILLIS, EndpointCounts,
    Overviews,
};
pub use replay::{
    Replay, ReplayCount, ReplayEnd, ReplayFilter, ReplayKind, ReplayState, ReplayStep, ReplayStepped,
    Replays, ReplaysQuery,
};
pub use retention::{
    Expired, KeptEndpoint, RemovedCounts, RemovedCredential, Retention, RetentionBudget, RetentionPolicies,
    RetentionRules,
};
pub use source::{
    DeliveryRound, EventState, ReopenEvent, Source, SourceConfig, SourceEvent, SourceEventsQuery,
    SourceToken, Sources,
};
pub use statistics::{ApplicationAttemptsQuery, AttemptCounts, Hour, Statistics, SumUp};
pub use write::{
    Accept, Accepted, Accepts, Done, IdempotencyKey, InlineApplication, ManualRecord, NewAttempt,
    NewDelivery, Quota, QuotaOf, Record, Recorded, Records, RequestDigest,
};

use crate::{LiveCounts, RestartedTask};
use std::pin::Pin;

/// A read under way.
pub type Read<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// What is known of the disk, a second old at most. `None`: the store has no such thing, or the disk does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskState {
    /// The write-ahead log.
    pub log_bytes: Option<u64>,
    pub free_bytes: Option<u64>,
    /// There is too little room to accept messages.
    pub is_low: bool,
}

/// Everything that the server needs of a database.
pub trait Store:
    Accepts
    + Records
    + Lanes
    + Directory
    + Credentials
    + Alerts
    + Audits
    + History
    + Deliveries
    + Dispatches
    + Sources
    + Replays
    + Erasures
    + Exports
    + Statistics
    + OrganizationStatistics
    + Overviews
    + Retention
    + Mails
    + Send
    + Sync
    + 'static
{
    /// A short sign of life: an error if the store can no longer do its work.
    fn check(&self) -> Read<()>;

    /// What is known of the disk. It is not looked at for that.
    fn disk(&self) -> DiskState {
        DiskState::default()
    }

    /// The counts in memory. To read them costs no access to the database.
    fn live_counts(&self) -> LiveCounts;

    /// Resolves once the store has failed for good, with the reason. The process should end with it: what the disk
    /// holds is uncertain, and only a fresh start reads it again.
    fn failed(&self) -> Pin<Box<dyn Future<Output = String> + Send>> {
        Box::pin(std::future::pending())
    }

    /// The store's own threads that were restarted lately.
    fn restarted(&self) -> Vec<RestartedTask> {
        Vec::new()
    }

    /// Finishes what has been handed over, then closes. Later writes fail with [`Error::Closed`].
    fn close(&self) -> Read<()>;
}
