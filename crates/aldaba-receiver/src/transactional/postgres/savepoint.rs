use super::connection::Connection;
use futures_util::FutureExt;
use std::ops::Deref;
use tokio_postgres::{Client, Error};

/// A part of a transaction that can be taken back without the rest. Dropping it takes it back.
#[derive(Debug)]
pub struct Savepoint<'a> {
    connection: &'a Connection,
    depth: u32,
    open: bool,
}

impl<'a> Savepoint<'a> {
    pub(super) async fn set(connection: &'a Connection, depth: u32) -> Result<Self, Error> {
        // Whoever gives this up has sent it, with the first poll, and takes it back.
        let mut part = Self { connection, depth, open: true };
        let set = connection.batch_execute(&format!("SAVEPOINT aldaba_{depth}")).await;
        part.open = set.is_ok();
        set.map(|()| part)
    }

    /// A part of this part.
    pub async fn savepoint(&mut self) -> Result<Savepoint<'_>, Error> {
        Savepoint::set(self.connection, self.depth + 1).await
    }

    /// What was done in it stays, if the transaction does. A part that has failed cannot stay: that is an error, and the
    /// part is taken back.
    pub async fn release(mut self) -> Result<(), Error> {
        // Whoever gives this up has sent it, with the first poll. To take it back then would take back more than it.
        self.open = false;
        let released =
            self.connection.batch_execute(&format!("RELEASE SAVEPOINT aldaba_{}", self.depth)).await;
        self.open = released.is_err();
        released
    }

    /// What was done in it is taken back.
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
            // It is sent at the first poll, before whatever comes next over this connection. If it fails, so has the
            // transaction, and the commit will say so.
            let _ = self.connection.batch_execute(&self.taking_back()).now_or_never();
        }
    }
}
