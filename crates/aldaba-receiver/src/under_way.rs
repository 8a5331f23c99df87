use std::time::Duration;
use tokio::sync::watch;

/// How many handlers and actions are under way, so that a program can let them end before it does.
#[derive(Debug)]
pub(crate) struct UnderWay(watch::Sender<usize>);

/// One of them.
#[derive(Debug)]
pub(crate) struct Running(watch::Sender<usize>);

impl UnderWay {
    pub(crate) fn none() -> Self {
        Self(watch::Sender::new(0))
    }

    pub(crate) fn begin(&self) -> Running {
        self.0.send_modify(|count| *count += 1);
        Running(self.0.clone())
    }

    /// Waits until none is left, as long as the limit allows, and says how many there are then.
    pub(crate) async fn ended(&self, limit: Duration) -> usize {
        let mut count = self.0.subscribe();
        match tokio::time::timeout(limit, count.wait_for(|count| *count == 0)).await {
            Ok(_) => 0,
            Err(_) => *self.0.borrow(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
