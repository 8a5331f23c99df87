use super::trouble::no_connection;
use crate::LedgerError;
use deadpool_postgres::{Client, ClientWrapper, Object, Pool};
use std::ops::Deref;
use tokio::runtime::Handle;

/// A connection of the pool, in which a transaction may be open. It goes back when that is over, and never before.
#[derive(Debug)]
pub(super) struct Connection(Option<Client>);

impl Connection {
    pub(super) async fn take(pool: &Pool) -> Result<Self, LedgerError> {
        let client = pool.get().await.map_err(|error| no_connection(&error))?;
        Ok(Self(Some(client)))
    }

    /// For a connection without a transaction.
    pub(super) fn give_back(mut self) {
        drop(self.0.take());
    }

    /// One that cannot even roll back is closed.
    pub(super) async fn roll_back(self) {
        if self.batch_execute("ROLLBACK").await.is_ok() {
            self.give_back();
        } else {
            self.close();
        }
    }

    fn close(mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}

impl Deref for Connection {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        match &self.0 {
            Some(client) => client,
            None => unreachable!("the connection is there until it is given back"),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Some(client) = self.0.take() else { return };
        // A statement may still be running. Until it has ended and is rolled back, the connection counts as taken, so
        // that there are never more of them than the pool allows.
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(Rollback(Some(client)).run())),
            Err(_) => drop(Object::take(client)),
        }
    }
}

/// The rollback of a connection that was dropped. If the runtime ends before, the connection is closed.
struct Rollback(Option<Client>);

impl Rollback {
    async fn run(mut self) {
        let rolled_back = match &self.0 {
            Some(client) => client.batch_execute("ROLLBACK").await.is_ok(),
            None => false,
        };
        if rolled_back {
            drop(self.0.take());
        }
    }
}

impl Drop for Rollback {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}
