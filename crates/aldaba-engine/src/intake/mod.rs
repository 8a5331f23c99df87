//! Accepting an event: match it to its endpoints, one commit on disk, then the answer.

mod accept;
mod check;
mod commit;
mod dispatch;
mod event;
mod first;
mod many;
pub(crate) mod matching;
mod one;
mod quotas;
mod reopen;
mod sent;

pub use dispatch::{DispatchError, NewDispatch};
pub use event::{Direct, FromSource, NewEvent};
pub use matching::{Mismatch, mismatches};
pub use quotas::Quotas;
pub use sent::{SendError, Sent};

use crate::aside::Aside;
use crate::configuration::DirectoryAccess;
use crate::delivering::Contents;
use crate::scheduling::Inbox;
use crate::{Clock, Entropy, EventTypes};
use aldaba_store::{ApplicationRef, Store};
use std::sync::Arc;
use std::time::Duration;

/// How often matching is repeated when the configuration changes under it.
const MATCHINGS: usize = 16;

pub(crate) struct Intake {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) directory: DirectoryAccess,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) inbox: Inbox,
    pub(crate) contents: Contents,
    pub(crate) event_types: EventTypes,
    pub(crate) idempotency_kept: Duration,
    pub(crate) quotas: Quotas,
    pub(crate) matching: Aside,
    pub(crate) checking: Aside,
}

impl Intake {
    /// `patience`: how long a commit is waited for.
    pub(crate) async fn send(
        &self,
        which: &ApplicationRef,
        event: NewEvent,
        patience: Option<Duration>,
    ) -> Result<Sent, SendError> {
        let unfit = self.check(which, std::slice::from_ref(&event)).await.pop().flatten();
        self.send_checked(which, &event, unfit, patience).await
    }
}
