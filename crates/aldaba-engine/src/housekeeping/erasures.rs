//! Erases applications: removes everything that is stored of one, for good.
//!
//! An erasure is stored with its progress. Its first commit deletes the application; then the deliveries that wait are ended
//! as those of every deleted application (`orphans.rs`), and this task removes rows in slices of the writer, with pauses, so
//! that nothing else is delayed. After a restart or a panic it continues where the last commit left each erasure.

use crate::housekeeping::background::{StoreClosed, Task};
use crate::{Clock, Credentials, Engine, Entropy};
use aldaba_delivery::{AppId, AuditId, ErasureId};
use aldaba_store::{
    Done, ErasedCounts, Erasure, ErasureState, ErasureStep, ErasureStepped, Error, RemovedCredential, Store,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The shortest pause between two steps. A longer step is followed by a longer pause.
const MIN_STEP_PAUSE: Duration = Duration::from_millis(5);
const PAUSE_FACTOR: u32 = 3;
/// How long until a failed step is repeated, and until deliveries that still wait are looked at again.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Rows of one read of a count, and of a whole count.
const COUNT_PAGE_ROWS: usize = 20_000;
const MAX_COUNTED_ROWS: usize = 1_000_000;
/// The longest time of a count: a caller waits for it.
const COUNT_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct Erasures {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) credentials: Credentials,
    /// Takes applications whose deliveries are to end.
    pub(crate) orphans: mpsc::UnboundedSender<AppId>,
    /// Erasures that were started.
    pub(crate) started: mpsc::UnboundedReceiver<Erasure>,
}

/// An erasure that is running, with when its next step may be made, by the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct Turn {
    id: ErasureId,
    app: AppId,
    from: Duration,
}

impl Task for Erasures {
    const NAME: &'static str = "erasures";

    async fn run(&mut self) -> StoreClosed {
        let mut turns = match self.all_running().await {
            Ok(turns) => turns,
            Err(StoreClosed) => return StoreClosed,
        };
        loop {
            while let Ok(started) = self.started.try_recv() {
                self.add(&mut turns, &started);
            }
            let Some(next) = (0..turns.len()).min_by_key(|number| turns[*number].from) else {
                match self.started.recv().await {
                    Some(started) => self.add(&mut turns, &started),
                    None => return StoreClosed,
                }
                continue;
            };
            let mut turn = turns.swap_remove(next);
            tokio::time::sleep(turn.from.saturating_sub(self.clock.monotonic())).await;
            match self.step(turn).await {
                Ok(Some(pause)) => {
                    turn.from = self.clock.monotonic() + pause;
                    turns.push(turn);
                }
                Ok(None) => {}
                Err(StoreClosed) => return StoreClosed,
            }
        }
    }
}

impl Erasures {
    /// Those that were running before the restart.
    async fn all_running(&self) -> Result<Vec<Turn>, StoreClosed> {
        loop {
            match self.store.running_erasures().await {
                Ok(running) => return Ok(running.iter().map(|erasure| self.turn(erasure)).collect()),
                Err(Error::Closed) => return Err(StoreClosed),
                Err(error) => {
                    tracing::warn!(%error, "cannot read which applications are being erased; trying again");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    fn turn(&self, erasure: &Erasure) -> Turn {
        Turn { id: erasure.id, app: erasure.app, from: self.clock.monotonic() }
    }

    fn add(&self, turns: &mut Vec<Turn>, started: &Erasure) {
        // It may have been read as a running one.
        if turns.iter().all(|turn| turn.id != started.id) {
            turns.push(self.turn(started));
        }
    }

    /// One step, and how long to pause after it. `None`: the erasure is over.
    async fn step(&self, turn: Turn) -> Result<Option<Duration>, StoreClosed> {
        let (answer, answered) = oneshot::channel();
        let done = Done::new(move |result: Result<ErasureStepped, Error>| drop(answer.send(result)));
        let now = self.clock.now();
        let step = ErasureStep { id: turn.id, entry: AuditId::new(now, self.entropy.bytes()), now };
        self.store.step_erasure(step, done);
        match answered.await.unwrap_or(Err(Error::Closed)) {
            Ok(ErasureStepped { erasure: Some(erasure), waits, took }) => Ok(match erasure.state {
                ErasureState::Finished => {
                    self.credentials.forget(&[RemovedCredential::Application(turn.app)]);
                    log_end(&erasure);
                    None
                }
                ErasureState::Running if waits => {
                    // What was in flight may wait again since its attempt.
                    let _ = self.orphans.send(turn.app);
                    Some(RETRY_DELAY)
                }
                ErasureState::Running => Some(MIN_STEP_PAUSE.max(took * PAUSE_FACTOR)),
            }),
            Ok(_) => Ok(None),
            Err(Error::Closed) => Err(StoreClosed),
            Err(error) => {
                tracing::warn!(%error, erasure = %turn.id, "cannot erase an application; trying again");
                Ok(Some(RETRY_DELAY))
            }
        }
    }
}

fn log_end(erasure: &Erasure) {
    let ErasedCounts { messages, deliveries, attempts, endpoints, others, audit } = erasure.removed;
    tracing::info!(erasure = %erasure.id, app = %erasure.app, messages, deliveries, attempts, endpoints, others, audit,
        "an application is erased");
}

/// How much there is of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErasureCount {
    pub counts: ErasedCounts,
    /// There is more, which was not counted.
    pub at_least: bool,
}

impl Engine {
    /// Counts what an erasure would remove, without removing anything.
    pub async fn count_erasure(&self, app: AppId) -> Result<ErasureCount, Error> {
        let begun = self.clock().monotonic();
        let is_over = || self.clock().monotonic().saturating_sub(begun) >= COUNT_TIMEOUT;
        let (mut counts, mut rows, mut after) = (ErasedCounts::default(), 0, None);
        // A read may return fewer rows.
        while rows < MAX_COUNTED_ROWS && !is_over() {
            let page = self.store().count_erasure(app, after, COUNT_PAGE_ROWS).await?;
            counts += page.counts;
            rows += page.rows;
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(ErasureCount { counts, at_least: false }),
            }
        }
        Ok(ErasureCount { counts, at_least: true })
    }
}
