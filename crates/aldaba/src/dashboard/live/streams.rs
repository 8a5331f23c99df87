//! How many streams there are: few, and they end with the server.

use aldaba_delivery::AppId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Streams of all callers.
const MAX_STREAMS: usize = 64;
/// Streams of callers who are for one application.
const MAX_OF_APPLICATION: usize = 8;

#[derive(Debug)]
pub(crate) struct Streams {
    open: Arc<Mutex<OpenStreams>>,
    stopping: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct OpenStreams {
    all: usize,
    applications: HashMap<AppId, usize>,
}

/// The right to have a stream, until it is dropped.
#[derive(Debug)]
pub(super) struct StreamPermit {
    open: Arc<Mutex<OpenStreams>>,
    app: Option<AppId>,
    stopping: watch::Receiver<bool>,
}

impl Default for Streams {
    fn default() -> Self {
        Self { open: Arc::default(), stopping: watch::Sender::new(false) }
    }
}

impl Streams {
    /// `None`: there are as many as may be.
    pub(super) fn admit(&self, app: Option<AppId>) -> Option<StreamPermit> {
        let mut open = self.open.lock();
        let of_app = app.map_or(0, |app| open.applications.get(&app).copied().unwrap_or(0));
        if open.all >= MAX_STREAMS || of_app >= MAX_OF_APPLICATION || *self.stopping.borrow() {
            return None;
        }
        open.all += 1;
        if let Some(app) = app {
            open.applications.insert(app, of_app + 1);
        }
        let stopping = self.stopping.subscribe();
        Some(StreamPermit { open: self.open.clone(), app, stopping })
    }

    /// Ends them all, and admits no more.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }
}

impl StreamPermit {
    /// Resolves when the server stops.
    pub(super) async fn stopped(&mut self) {
        let _ = self.stopping.wait_for(|stopping| *stopping).await;
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        open.all -= 1;
        if let Some(app) = self.app {
            let left = open.applications.get(&app).map_or(0, |open| open - 1);
            match left {
                0 => drop(open.applications.remove(&app)),
                left => drop(open.applications.insert(app, left)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(number: u8) -> Option<AppId> {
        Some(AppId::from_bytes([number; 20]))
    }

    #[test]
    fn streams_are_few_for_an_application_and_in_all() {
        let streams = Streams::default();
        let of_one: Vec<_> = std::iter::from_fn(|| streams.admit(app(1))).collect();
        assert_eq!(of_one.len(), MAX_OF_APPLICATION);
        let others: Vec<_> = std::iter::from_fn(|| streams.admit(None)).collect();
        assert_eq!(of_one.len() + others.len(), MAX_STREAMS);
        drop(of_one);
        assert!(streams.admit(app(1)).is_some());
        assert!(streams.open.lock().applications.is_empty(), "nothing stays of those that have ended");
        streams.stop();
        assert!(streams.admit(app(1)).is_none());
    }
}
