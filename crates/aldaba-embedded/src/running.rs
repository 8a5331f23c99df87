//! The threads of an engine.
//!
//! They are separate from the program's runtime: a busy runtime would delay every step of every delivery (docs/adr/0005),
//! and it may end before the engine. The engine's runtime ends all its tasks when it is dropped.

use aldaba_engine::Engine;
use aldaba_engine::wire::Wire;
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;

/// How long a drop waits for the disk. After that the writes finish in the background.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a shutdown waits for the disk, after the requests in flight.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long tasks may take to reach a point where they can end.
const STEP_TIMEOUT: Duration = Duration::from_secs(1);

/// The result of a shutdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftover {
    /// The number of requests that were still in flight. They are sent again after the next start.
    pub in_flight: usize,
    /// Whether everything is written and the data folder is free. `false`: the disk was too slow. Writes continue in the
    /// background, and the folder is free after them.
    pub folder_is_free: bool,
}

/// The runtime of the engine. It cannot be dropped like tokio's, which blocks.
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

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.0.as_ref().expect("it is there until it is dropped").block_on(future)
    }

    /// Takes the runtime out, so that it is ended once.
    fn take(&mut self) -> Option<Self> {
        self.0.take().map(|runtime| Self(Some(runtime)))
    }

    /// Waits until its tasks have reached a point where they can end.
    fn end(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(STEP_TIMEOUT);
        }
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// An engine and its threads. Dropping it stops both, and waits until all submitted writes are on disk and the folder is
/// free.
#[derive(Debug)]
pub(crate) struct Running {
    runtime: OwnRuntime,
    engine: Engine,
    wire: Wire,
}

impl Running {
    pub(crate) fn new(runtime: OwnRuntime, engine: Engine, wire: Wire) -> Self {
        Self { runtime, engine, wire }
    }

    /// Shuts down on its own thread, even if nobody waits.
    pub(crate) fn shut_down(mut self, limit: Duration, ended: watch::Sender<Option<Leftover>>) {
        let Some(mut runtime) = self.runtime.take() else { return };
        let (engine, wire) = (self.engine.clone(), self.wire.clone());
        on_a_thread(move || {
            let in_flight = runtime.block_on(engine.drain(limit));
            let closing = async { tokio::time::timeout(CLOSE_TIMEOUT, engine.close()).await };
            let folder_is_free = runtime.block_on(closing).is_ok();
            if !folder_is_free {
                tracing::warn!("the disk is slow: the data folder becomes free later");
                ended.send_replace(Some(Leftover { in_flight, folder_is_free }));
                close(&runtime, &engine);
            }
            wire.shutdown();
            runtime.end();
            ended.send_if_modified(|said| {
                let is_first = said.is_none();
                said.get_or_insert(Leftover { in_flight, folder_is_free });
                is_first
            });
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(mut runtime) = self.runtime.take() else { return };
        // No further request starts whose result could not be recorded.
        self.engine.stop_sending();
        let engine = self.engine.clone();
        let (done, ended) = mpsc::channel();
        // From here on the store accepts nothing more; pending writes are completed.
        drop(engine.store().close());
        let begun = on_a_thread(move || {
            close(&runtime, &engine);
            runtime.end();
            let _ = done.send(());
        });
        if begun && ended.recv_timeout(DROP_TIMEOUT).is_err() {
            tracing::warn!("the disk is slow: the data folder becomes free later");
        }
    }
}

/// Waits until the store is closed.
fn close(runtime: &OwnRuntime, engine: &Engine) {
    if let Err(error) = runtime.block_on(engine.store().close()) {
        tracing::error!(%error, "the store did not close cleanly");
    }
}

/// Runs blocking work on a new thread. `false`: no thread could be started, and nothing was done.
fn on_a_thread(what: impl FnOnce() + Send + 'static) -> bool {
    thread::Builder::new().name("aldaba-ending".into()).spawn(what).is_ok()
}
