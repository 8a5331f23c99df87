//! The writer's thread: a thin shell around [`Database::run_batch`].

use super::batch::Database;
use super::checkpoint::{self, Checkpoints, Log};
use super::copies;
use super::failure::Failure;
use super::lock::FolderLock;
use super::queue::WriteQueue;
use super::readers::{ReaderThreads, Readers};
use super::watermark::Watermark;
use crate::operations::{Op, OpOutcome};
use crate::{ErasureState, ErasureStepped, Error, panic_message};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// How long the writer waits after a panic before it answers the next batch, with the failure.
const PANIC_DELAY: Duration = Duration::from_millis(100);

/// What the thread owns. It lives until the store is closed and everything handed over is written.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) database: Database,
    pub(super) checkpoints: Checkpoints,
    pub(super) watermark: Watermark,
    pub(super) queue: Arc<WriteQueue>,
    pub(super) failure: Arc<Failure>,
    pub(super) log_pages: Arc<AtomicU32>,
    pub(super) readers: Arc<Readers>,
    pub(super) reader_threads: ReaderThreads,
    pub(super) lock: Arc<FolderLock>,
    pub(super) closed: watch::Sender<bool>,
    pub(super) folder: PathBuf,
}

impl Writer {
    /// The one thread that is not restarted after a panic: whether its commit is on disk may be uncertain then. The
    /// store has failed, so that the process ends, and all that wait for a write are told so.
    pub(super) fn run(mut self) {
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.run_once())) {
                Ok(true) => {}
                Ok(false) => break,
                Err(panic) => {
                    self.failure.mark(&format!("a bug: the writer panicked: {}", panic_message(&*panic)));
                    std::thread::sleep(PANIC_DELAY);
                }
            }
        }
        self.close();
    }

    /// One commit; `false`: the store is closed and there is nothing left to write.
    fn run_once(&mut self) -> bool {
        let timeout = self.database.live.due_in(&self.database.clock);
        let Some(batch) = self.queue.take(timeout) else { return false };
        if batch.ops.is_empty() {
            self.write_counts();
            return true;
        }
        let outcomes = self.commit(&batch.ops);
        if outcomes.iter().any(ends_erasure) {
            self.checkpoints.start_over();
        }
        for (reply, outcome) in batch.replies.into_iter().zip(outcomes) {
            reply.call(outcome);
        }
        // After the answers: nobody waits for it but the next commit.
        self.copy_log();
        true
    }

    fn commit(&mut self, ops: &[Op]) -> Vec<Result<OpOutcome, Error>> {
        let all = |error: Error| ops.iter().map(|_| Err(error.clone())).collect();
        if let Some(failed) = self.failure.get() {
            return all(failed);
        }
        let (committed, begun) = (self.database.committed, self.database.clock.now());
        let outcomes = catch_unwind(AssertUnwindSafe(|| self.database.run_batch(ops)))
            .unwrap_or_else(|_| all(Error::Failed("a bug: writing a batch panicked".into())));
        // Before the answers: what was answered is never missing without notice.
        let advanced = (committed..self.database.committed).try_for_each(|_| self.watermark.advance());
        let outcomes = match advanced {
            Ok(()) => outcomes,
            Err(error) => all(given_up(&error)),
        };
        if self.database.committed > committed {
            let took = self.database.clock.now().saturating_sub(begun);
            self.database.live.committed(took, ops.iter().map(Op::operations).sum());
        }
        for outcome in &outcomes {
            self.note(outcome);
        }
        outcomes
    }

    /// In a commit of its own, while there is nothing else to write.
    fn write_counts(&mut self) {
        if self.failure.get().is_some() {
            // They cannot be written any more, and must not be tried for ever.
            std::thread::sleep(PANIC_DELAY);
            return;
        }
        let written = self.database.write_counted(false);
        if let Err(error) = &written {
            tracing::debug!(%error, "the newest counts of organizations could not be written");
        }
        self.note(&written);
        self.copy_log();
    }

    fn copy_log(&mut self) {
        if self.failure.get().is_some() {
            return;
        }
        let log = self
            .checkpoints
            .after_commit(&self.database.connection, || copies::is_being_copied(&self.folder))
            .and_then(|log| note_copied(&mut self.watermark, log));
        self.note(&log);
        match log {
            Ok(log) => self.log_pages.store(log.pages, Ordering::Relaxed),
            Err(error) => tracing::warn!(%error, "the write-ahead log could not be copied over"),
        }
    }

    /// An error that nobody can promise anything after ends the store.
    fn note<T>(&self, result: &Result<T, Error>) {
        if let Err(Error::Failed(message)) = result {
            self.failure.mark(message);
        }
    }

    /// The readers end first: the log can only be emptied once nobody reads in it.
    fn close(mut self) {
        self.readers.close();
        self.reader_threads.join();
        if self.failure.get().is_none()
            && let Err(error) = self.database.write_counted(true)
        {
            tracing::warn!(%error, "the newest attempts are counted at the next start");
        }
        if self.failure.get().is_none()
            && let Err(error) = checkpoint::last(&self.database.connection)
                .and_then(|log| note_copied(&mut self.watermark, log))
        {
            tracing::warn!(%error, "the write-ahead log could not be emptied; it is read at the next start");
        }
        drop(self.database);
        self.watermark.sync();
        drop(self.lock);
        self.closed.send_replace(true);
    }
}

/// Whether an erasure is over with this: what it has removed must not stay in the log.
fn ends_erasure(outcome: &Result<OpOutcome, Error>) -> bool {
    let Ok(OpOutcome::StepErasure(ErasureStepped { erasure: Some(erasure), .. })) = outcome else {
        return false;
    };
    erasure.state == ErasureState::Finished
}

/// What has been copied as a whole is in the database file for good, whatever becomes of the log.
fn note_copied(watermark: &mut Watermark, log: Log) -> Result<Log, Error> {
    if log.is_copied {
        watermark.copied().map_err(|error| given_up(&error))?;
    }
    Ok(log)
}

fn given_up(error: &io::Error) -> Error {
    Error::Failed(format!("the file system takes no more writes: {error}"))
}
