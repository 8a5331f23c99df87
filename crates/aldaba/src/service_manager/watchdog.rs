//! Signs of life, sent only while everything works that a restart could mend.

use super::ServiceManager;
use crate::api::StoreProbe;
use crate::runtimes::Threads;
use aldaba_engine::Engine;
use std::time::Duration;

/// The parts that must answer.
#[derive(Debug)]
pub(crate) struct Liveness {
    pub(crate) engine: Engine,
    pub(crate) store_probe: StoreProbe,
    pub(crate) threads: Threads,
}

impl Liveness {
    /// `Err`: what has not answered for this long. A store that refuses to write has answered: a restart would not help it.
    async fn check(&self, limit: Duration) -> Result<(), &'static str> {
        let store = async {
            match self.store_probe.hangs(&self.engine, limit).await {
                false => Ok(()),
                true => Err("the store's writer"),
            }
        };
        let dispatcher = answer(limit, self.engine.progress(), "the task that delivers");
        let api = answer(limit, self.threads.api.spawn(async {}), "the threads of the API");
        let accept =
            answer(limit, self.threads.accept.spawn(async {}), "the thread that accepts connections");
        tokio::try_join!(store, dispatcher, api, accept).map(drop)
    }
}

async fn answer<T>(
    limit: Duration,
    answer: impl Future<Output = T>,
    part: &'static str,
) -> Result<(), &'static str> {
    tokio::time::timeout(limit, answer).await.map(drop).map_err(|_| part)
}

impl ServiceManager {
    /// Sends a sign of life in every half of the time that the service manager waits for one, without end.
    pub(crate) async fn watch(&self, liveness: Liveness) {
        let Some(interval) = self.0.as_ref().and_then(|manager| manager.watchdog) else {
            return std::future::pending().await;
        };
        let mut hangs = false;
        let mut ticks = tokio::time::interval(interval / 2);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match liveness.check(interval / 4).await {
                Ok(()) => {
                    self.send("WATCHDOG=1");
                    if std::mem::take(&mut hangs) {
                        tracing::info!("all parts of the server answer again");
                        self.status("all parts answer again");
                    }
                }
                Err(part) => {
                    if !std::mem::replace(&mut hangs, true) {
                        tracing::error!(
                            part,
                            "a part of the server does not answer, so the service manager gets no sign of life"
                        );
                    }
                    self.status(&format!("{part} does not answer"));
                }
            }
        }
    }
}
