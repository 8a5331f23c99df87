use std::fmt;
use std::future::Future;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// A transaction in a connection that was changed for it.
pub(crate) trait Open: fmt::Debug + Send + 'static {
    /// Rolls back, and leaves a connection with which all is well: nothing is open in it, sqlx knows that, and it is as it
    /// was before.
    fn roll_back(self) -> impl Future<Output = ()> + Send;

    /// Leaves a connection with which all is well, after a commit.
    fn give_back(self) -> impl Future<Output = ()> + Send;
}

/// A transaction in the hands of a handler. However it ends, by whom and wherever it is dropped, it is rolled back unless it
/// was committed; and that goes on to its end, whether or not anybody waits for it. A connection that went back before
/// would not be as it was.
#[derive(Debug)]
pub(crate) struct Lent<O: Open> {
    // `None` at its end only.
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
            None => unreachable!("the transaction is there until its end"),
        }
    }

    /// It was committed.
    pub(crate) async fn give_back(mut self) {
        if let Some(open) = self.open.take() {
            open.give_back().await;
        }
    }

    pub(crate) async fn roll_back(mut self) {
        if let Some(rollback) = self.begin_rollback() {
            // A runtime that ends meanwhile ends its connections.
            let _ = rollback.await;
        }
    }

    fn begin_rollback(&mut self) -> Option<JoinHandle<()>> {
        let open = self.open.take()?;
        // sqlx looks for a runtime where a connection is dropped, also where this one has ended and takes no more tasks.
        let _context = self.runtime.enter();
        Some(self.runtime.spawn(open.roll_back()))
    }
}

impl<O: Open> Drop for Lent<O> {
    fn drop(&mut self) {
        drop(self.begin_rollback());
    }
}
