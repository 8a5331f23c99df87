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
mod result;

pub use dispatch::{DispatchError, NewDispatch};
pub use event::{Direct, FromSource, NewEvent};
pub use matching::{Mismatch, mismatches};
pub use quotas::Quotas;
pub use result::{SendError, SendReceipt};

use crate::blocking_pool::BlockingPool;
use crate::configuration::DirectoryAccess;
use crate::delivering::ContentBudget;
use crate::scheduling::Inbox;
use crate::{Clock, Entropy, EventTypes};
use aldaba_store::{ApplicationRef, Store};
use std::sync::Arc;
use std::time::Duration;

/// How often matching is repeated when the configuration changes under it.
const MAX_MATCH_ROUNDS: usize = 16;

pub(crate) struct Intake {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) directory: DirectoryAccess,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) inbox: Inbox,
    pub(crate) contents: ContentBudget,
    pub(crate) event_types: EventTypes,
    pub(crate) idempotency_kept: Duration,
    pub(crate) quotas: Quotas,
    pub(crate) matching: BlockingPool,
    pub(crate) checking: BlockingPool,
}

impl Intake {
    /// `commit_timeout`: how long a commit is waited for.
    pub(crate) async fn send(
        &self,
        which: &ApplicationRef,
        event: NewEvent,
        commit_timeout: Option<Duration>,
    ) -> Result<SendReceipt, SendError> {
        let unfit = self.check(which, std::slice::from_ref(&event)).await.pop().flatten();
        self.send_checked(which, &event, unfit, commit_timeout).await
    }
}
