//! Threads of the store that must not stop: after a panic they run again.
//!
//! | name | what it does | after a panic |
//! | --- | --- | --- |
//! | `aldaba-writer` | commits | not restarted: the store has failed, and the process ends (`writer.rs`) |
//! | `aldaba-reader-N` | reads | runs again; a read that panics costs only its caller (`readers.rs`) |
//! | `aldaba-watch` | ends reads that take too long | runs again |
//! | `aldaba-space` | looks at the room on the disk | runs again |

use super::Monotonic;
use crate::{RestartedTask, Restarts};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// A close of the store waits for its threads, so none of them may wait longer than this to run again.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Starts threads that are restarted, and knows which have been lately.
#[derive(Clone, Debug)]
pub(super) struct Threads {
    restarts: Restarts,
    clock: Monotonic,
}

impl Threads {
    pub(super) fn new(clock: Monotonic) -> Self {
        Self { restarts: Restarts::default(), clock }
    }

    /// Starts a thread that ends when `run` returns. When it panics, it is called again.
    pub(super) fn spawn(
        &self,
        kind: &'static str,
        name: String,
        mut run: impl FnMut() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let Self { restarts, clock } = self.clone();
        Builder::new().name(name).spawn(move || {
            while let Err(panic) = catch_unwind(AssertUnwindSafe(&mut run)) {
                let delay = restarts.panicked(kind, &*panic, clock.now());
                std::thread::sleep(delay.min(MAX_DELAY));
            }
        })
    }

    pub(super) fn restarted(&self) -> Vec<RestartedTask> {
        self.restarts.recent(self.clock.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_thread_that_panics_runs_again_and_is_named() {
        let threads = Threads::new(Monotonic::default());
        let (sender, runs) = mpsc::channel();
        let mut count = 0;
        let run = move || {
            count += 1;
            sender.send(count).unwrap();
            assert!(count > 1, "on purpose");
        };
        assert_eq!(threads.restarted(), []);
        threads.spawn("store-test", "aldaba-test".into(), run).unwrap().join().unwrap();
        assert_eq!(runs.iter().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(threads.restarted(), [RestartedTask { name: "store-test", restarts: 1 }]);
    }
}
