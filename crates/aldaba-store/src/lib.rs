//! Where Aldaba keeps what it promised.
//!
//! This crate is a contract ([`Store`]), the rules behind it ([`operations`]), a backend that runs them ([`sqlite`]) and one suite
//! (`conformance`) that every backend passes. Simulations wrap faults around the real one.
//!
//! # Writes
//!
//! A write is handed over together with what to do once its fate is known ([`Done`]). The rules
//! that the engine builds on:
//!
//! 1. One call is one transaction, and its operations each have a result of their own: neither a conflict nor a value that
//!    the database refuses fails a neighbour.
//! 2. `Done` is called exactly once, after the commit is on disk (or the write has failed).
//! 3. **`Done` calls come in the order of the commits of an application.** A lane relies on it: news of a row always
//!    reaches it before news of that row's next change. A call that is about several applications is ordered with each of
//!    them, and one that names none (an organization's policies, settings, retention, due times) with all. Those of
//!    different applications may come in any order.
//! 4. `Done` must not block: it runs on the backend's writer.
//! 5. A read that starts after a `Done` was called sees that write.
//!
//! Reads are snapshots: they may lag behind writes that commit while they run.

mod audit;
mod backend;
mod content;
mod credentials;
mod deliveries;
mod directory;
mod dispatch;
mod error;
mod event_type;
mod health;
mod history;
mod lanes;
mod listing;
mod notices;
mod opening;
pub mod operations;
mod replay;
mod restarts;
mod retention;
mod source;
mod statistics;
mod write;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
#[cfg(any(test, feature = "conformance"))]
pub mod postgres;
pub mod sqlite;

pub use audit::{
    Actor, ActorFilter, ActorKind, AuditEntry, AuditPage, AuditQuery, AuditWalk, Audits, Deed, FieldChange,
    MASK, Subject, Values, Who,
};
pub use backend::{Backend, HotReads};
pub use content::{Content, Message, NewMessage};
pub use credentials::{ApiKey, Credentials, PortalCut, RevokedToken, Scope};
pub use deliveries::{
    Deliveries, DeliveriesPage, DeliveriesQuery, DeliveryFilter, DeliveryList, DeliveryView, LastAttempt,
    Phase, Place,
};
pub use directory::{
    Application, Change, Changed, Directory, Endpoint, EndpointConfig, Fence, Key, Obstacle, OwnPolicy,
    OwnProfile, Recovery, Rescheduled, Subscription, Tenant, WhichApplication,
};
pub use dispatch::{Dispatch, DispatchState, Dispatched, Dispatches, DispatchesQuery};
pub use error::Error;
pub use event_type::{EventType, EventTypeChange, EventTypeWrite};
pub use health::{HEALTH_CHANGES_KEPT, HealthChange, HealthChangeNumber, LastError};
pub use history::{
    Attempt, AttemptScope, AttemptsQuery, DeliveryState, DeliveryStatus, History, Order, Page, Trigger,
};
pub use lanes::{
    DueQuery, FoundLane, GateRecord, LaneTarget, Lanes, LanesCursor, LanesPage, LanesQuery, NotDue,
    OrphansCursor, OrphansPage, OrphansQuery, Placed, Seq, StartedCursor, StartedPage, StartedQuery, Turn,
    Waiting,
};
pub use listing::{
    AttemptFilter, Count, EndpointMessage, EndpointMessagesQuery, Found, MessageFilter, MessagesQuery, Part,
    Payloads, Progress, Within,
};
pub use notices::{Notice, NoticeNumber};
pub use opening::{Opening, StoreOptions, has_database, open};
pub use operations::Monotonic;
pub use replay::{
    Replay, ReplayCount, ReplayEnd, ReplayFilter, ReplayKind, ReplayState, ReplayStep, ReplayStepped,
    Replays, ReplaysQuery,
};
pub use restarts::{RestartedTask, Restarts, panic_message};
pub use retention::{
    Cut, KeptEndpoint, MessagesCursor, PayloadsCursor, Removal, Removed, RemovedCounts, Retention, Settled,
    Stale, StoredKey, Walked,
};
pub use source::{
    EventState, ReopenEvent, Round, Source, SourceConfig, SourceEvent, SourceEventsQuery, SourceToken,
    Sources,
};
pub use sqlite::OpenError;
pub use statistics::{ApplicationAttemptsQuery, AttemptCounts, Hour, Statistics, SumUp};
pub use write::{
    Accept, Accepted, Accepts, Done, IdempotencyKey, InlineApplication, NewAttempt, NewDelivery, Quota,
    QuotaOf, Record, Recorded, Records, RequestDigest, Resent,
};

use std::pin::Pin;

/// A read under way.
pub type Read<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// Everything that the server needs of a database.
pub trait Store:
    Accepts
    + Records
    + Lanes
    + Directory
    + Credentials
    + Audits
    + History
    + Deliveries
    + Dispatches
    + Sources
    + Replays
    + Statistics
    + Retention
    + Send
    + Sync
    + 'static
{
    /// A short sign of life: an error if the store can no longer do its work.
    fn check(&self) -> Read<()>;

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
