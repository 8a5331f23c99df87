use super::connection::Connection;
use futures_util::FutureExt;
use std::ops::Deref;
use tokio_postgres::{Client, Error};

/// A part of a transaction that can be rolled back separately. Dropping it rolls it back.
#[derive(Debug)]
pub struct Savepoint<'a> {
    connection: &'a Connection,
    depth: u32,
    open: bool,
}

impl<'a> Savepoint<'a> {
    pub(super) async fn set(connection: &'a Connection, depth: u32) -> Result<Self, Error> {
        // The first poll sends the statement. If this future is dropped then, the savepoint is rolled back.
        let mut part = Self { connection, depth, open: true };
        let set = connection.batch_execute(&format!("SAVEPOINT aldaba_{depth}")).await;
        part.open = set.is_ok();
        set.map(|()| part)
    }

    /// A nested savepoint.
    pub async fn savepoint(&mut self) -> Result<Savepoint<'_>, Error> {
        Savepoint::set(self.connection, self.depth + 1).await
    }

    /// Keeps the changes, if the transaction commits. After a failed statement this is an error, and the part is rolled back.
    pub async fn release(mut self) -> Result<(), Error> {
        // The first poll sends the statement. After that a rollback would undo more than this part.
        self.open = false;
        let released =
            self.connection.batch_execute(&format!("RELEASE SAVEPOINT aldaba_{}", self.depth)).await;
        self.open = released.is_err();
        released
    }

    /// Rolls the changes back.
    pub async fn roll_back(mut self) -> Result<(), Error> {
        self.open = false;
        self.connection.batch_execute(&self.taking_back()).await
    }

    fn taking_back(&self) -> String {
        format!("ROLLBACK TO SAVEPOINT aldaba_{0}; RELEASE SAVEPOINT aldaba_{0}", self.depth)
    }
}

impl Deref for Savepoint<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.connection
    }
}

impl Drop for Savepoint<'_> {
    fn drop(&mut self) {
        if self.open {
            // The first poll sends it, before any later statement of this connection. If it fails, the transaction has failed,
            // and the commit reports that.
            let _ = self.connection.batch_execute(&self.taking_back()).now_or_never();
        }
    }
}
