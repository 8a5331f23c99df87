//! Answers questions about what is stored: who asks, and what for.
//!
//! This layer decides what a caller may reach, and nothing else does. Questions begin with a caller ([`Questions`]).
//! Questions about an application or a source go through [`ApplicationQuestions`] and [`source::SourceQuestions`], which
//! callers only get for what they may reach. Answers are plain values: the API renders them as JSON, and pages can
//! render them as HTML.

mod alert;
mod api_key;
mod application;
mod attempt;
mod audit;
mod catalog;
mod delivery;
mod delivery_id;
mod dispatch;
mod endpoint;
mod erasure;
mod event_type;
pub(crate) mod explain;
mod export;
mod host;
mod message;
mod overview;
mod process;
mod public;
mod replay;
mod source;
mod statistics;

pub(crate) use application::ApplicationQuestions;
pub(crate) use attempt::{AttemptFields, AttemptSelection, AttemptsOf, AttemptsPage};
pub(crate) use delivery::{DeliveryQuestions, DeliverySelection, ExplainedDelivery};
pub(crate) use delivery_id::{Cursor, DeliveryIds, InvalidCursor};
pub(crate) use endpoint::EndpointMessagesPage;
pub(crate) use event_type::is_operational;
pub(crate) use explain::{Cause, Failure, Why};
pub(crate) use message::Destination;
pub(crate) use overview::MOST_COUNTED;
pub(crate) use process::ProcessQuestions;
pub(crate) use public::PublicQuestions;
pub(crate) use source::{SourceDetails, SourceQuestions};

use crate::token::Caller;
use aldaba_engine::{Engine, VaultError};
use aldaba_store::{Error as StoreError, Order, Page, Store};

/// What one caller may ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Questions<'a> {
    engine: &'a Engine,
    caller: &'a Caller,
}

impl<'a> Questions<'a> {
    pub(crate) fn new(engine: &'a Engine, caller: &'a Caller) -> Self {
        Self { engine, caller }
    }

    fn store(&self) -> &'a dyn Store {
        &**self.engine.store()
    }
}

/// Why a question has no answer.
#[derive(Debug)]
pub(crate) enum Error {
    NotFound(Missing),
    /// A whole host is held, and the caller is for one application.
    HostOfOthers,
    Store(StoreError),
    /// A stored secret cannot be opened.
    Secret(VaultError),
}

impl From<Missing> for Error {
    fn from(missing: Missing) -> Self {
        Self::NotFound(missing)
    }
}

impl From<VaultError> for Error {
    fn from(error: VaultError) -> Self {
        Self::Secret(error)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What does not exist, as far as the caller can tell: another tenant's things do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Alert,
    ApiKey,
    Application,
    /// The application that the caller's own token or key is for.
    CallerApplication,
    /// An application that anybody may name, by its id alone.
    PublicApplication,
    Attempt,
    AttemptEndpoint,
    Delivery,
    Dispatch,
    Endpoint,
    /// An endpoint of any application, which only its id names.
    EndpointId,
    EventType,
    HeldHost,
    Job,
    Message,
    Policy,
    Profile,
    Replay,
    Source,
    SourceEvent,
}

/// The page of a list in memory, which is in ascending order.
pub(crate) fn cut<T, Id: Ord>(
    mut items: Vec<T>,
    page: &Page<Id>,
    order: Order,
    id: impl Fn(&T) -> Id,
) -> Vec<T> {
    match (&page.after, order) {
        (None, _) => {}
        (Some(after), Order::Ascending) => items.retain(|item| id(item) > *after),
        (Some(after), Order::Descending) => items.retain(|item| id(item) < *after),
    }
    if order == Order::Descending {
        items.reverse();
    }
    items.truncate(page.limit);
    items
}

/// The keys without repetition, for one read of all of them.
fn distinct<Key: Ord>(keys: impl IntoIterator<Item = Key>) -> Vec<Key> {
    let mut keys: Vec<_> = keys.into_iter().collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}
