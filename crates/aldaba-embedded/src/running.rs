//! The threads that an engine runs on.
//!
//! They are its own, not the program's: a program that keeps its runtime busy would stand before every step of
//! every delivery (docs/adr/0005), and its runtime may end before the engine does. And with the runtime everything
//! ends that runs on it: no task of an engine outlives it.

use aldaba_engine::Engine;
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

/// How long a drop waits for the disk. What it holds up then ends by itself.
const LONGEST_DROP: Duration = Duration::from_secs(10);
/// How long tasks may take to come to a place where they can end.
const LONGEST_STEP: Duration = Duration::from_secs(1);

/// A runtime of the engine's own. It must not be dropped as tokio's are, which wait where nobody may.
#[derive(Debug)]
pub(crate) struct OwnRuntime(Option<Runtime>);

impl OwnRuntime {
    pub(crate) fn start(threads: usize) -> io::Result<Self> {
        let several = &mut Builder::new_multi_thread();
        several
            .worker_threads(threads)
            .enable_all()
            .thread_name("aldaba-engine")
            .build()
            .map(|made| Self(Some(made)))
    }

    pub(crate) fn handle(&self) -> Handle {
        self.0.as_ref().expect("it is there until it is dropped").handle().clone()
    }

    fn take(&mut self) -> Option<Runtime> {
        self.0.take()
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.take() {
            runtime.shutdown_background();
        }
    }
}

/// An engine and its threads. Dropping it stops both, and waits until what was handed to the
/// store is on disk and its folder free.
#[derive(Debug)]
pub(crate) struct Running {
    runtime: OwnRuntime,
    engine: Engine,
}

impl Running {
    pub(crate) fn new(runtime: OwnRuntime, engine: Engine) -> Self {
        Self { runtime, engine }
    }

    /// Ends the threads of an engine that has been shut down.
    pub(crate) async fn end(mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let (done, ended) = oneshot::channel();
        // Elsewhere: it waits.
        let waiting = thread::Builder::new().name("aldaba-ending".into()).spawn(move || {
            runtime.shutdown_timeout(LONGEST_STEP);
            let _ = done.send(());
        });
        if waiting.is_ok() {
            let _ = ended.await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        // Nothing more begins that could not be written down.
        self.engine.stop_sending();
        // From here on the store takes nothing more; what it has is written.
        let closing = self.engine.store().close();
        let (done, ended) = mpsc::channel();
        let waiting = thread::Builder::new().name("aldaba-ending".into()).spawn(move || {
            if let Err(error) = runtime.block_on(closing) {
                tracing::error!(%error, "the store did not close cleanly");
            }
            runtime.shutdown_timeout(LONGEST_STEP);
            let _ = done.send(());
        });
        if waiting.is_ok() && ended.recv_timeout(LONGEST_DROP).is_err() {
            tracing::warn!("the disk is slow: the data folder becomes free later");
        }
    }
}
