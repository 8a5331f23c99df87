use std::time::Duration;
use tokio::sync::watch;

/// Counts running handlers and actions, so that a program can wait for them before it ends.
#[derive(Debug)]
pub(crate) struct RunningTasks(watch::Sender<usize>);

/// Counts one task until it is dropped.
#[derive(Debug)]
pub(crate) struct RunningTask(watch::Sender<usize>);

impl RunningTasks {
    pub(crate) fn none() -> Self {
        Self(watch::Sender::new(0))
    }

    pub(crate) fn begin(&self) -> RunningTask {
        self.0.send_modify(|count| *count += 1);
        RunningTask(self.0.clone())
    }

    /// Waits until no task runs, up to `limit`, and returns how many still run.
    pub(crate) async fn ended(&self, limit: Duration) -> usize {
        let mut count = self.0.subscribe();
        match tokio::time::timeout(limit, count.wait_for(|count| *count == 0)).await {
            Ok(_) => 0,
            Err(_) => *self.0.borrow(),
        }
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
