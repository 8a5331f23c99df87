use std::fmt;
use std::future::Future;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// A transaction in a connection whose settings were changed for it.
pub(crate) trait Open: fmt::Debug + Send + 'static {
    /// Rolls back and restores the connection: no transaction is open, sqlx knows that, and the settings are as before.
    fn roll_back(self) -> impl Future<Output = ()> + Send;

    /// Returns the connection to the pool after a commit.
    fn give_back(self) -> impl Future<Output = ()> + Send;
}

/// A transaction that is lent to a handler. Unless it is committed, it is rolled back, wherever it is dropped. The rollback
/// always runs to its end, so that the connection is restored before it returns to the pool.
#[derive(Debug)]
pub(crate) struct Lent<O: Open> {
    // `None` only after its end.
    open: Option<O>,
    runtime: Handle,
}

impl<O: Open> Lent<O> {
    pub(crate) fn new(open: O) -> Self {
        Self { open: Some(open), runtime: Handle::current() }
    }

    pub(crate) fn open(&mut self) -> &mut O {
        match &mut self.open {
            Some(open) => open,
            None => unreachable!("the transaction is present until its end"),
        }
    }

    /// Ends a committed transaction.
    pub(crate) async fn give_back(mut self) {
        if let Some(open) = self.open.take() {
            open.give_back().await;
        }
    }

    pub(crate) async fn roll_back(mut self) {
        if let Some(rollback) = self.begin_rollback() {
            // A runtime that ends meanwhile closes its connections.
            let _ = rollback.await;
        }
    }

    fn begin_rollback(&mut self) -> Option<JoinHandle<()>> {
        let open = self.open.take()?;
        // sqlx needs a runtime context to drop a connection, even if the runtime has ended.
        let _context = self.runtime.enter();
        Some(self.runtime.spawn(open.roll_back()))
    }
}

impl<O: Open> Drop for Lent<O> {
    fn drop(&mut self) {
        drop(self.begin_rollback());
    }
}
