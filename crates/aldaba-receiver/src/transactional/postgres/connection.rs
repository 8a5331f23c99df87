use super::errors::no_connection;
use crate::LedgerError;
use deadpool_postgres::{Client, ClientWrapper, Object, Pool};
use std::ops::Deref;
use tokio::runtime::Handle;

/// A connection of the pool, perhaps with an open transaction. It returns to the pool after the transaction has ended.
#[derive(Debug)]
pub(super) struct Connection(Option<Client>);

impl Connection {
    pub(super) async fn take(pool: &Pool) -> Result<Self, LedgerError> {
        let client = pool.get().await.map_err(|error| no_connection(&error))?;
        Ok(Self(Some(client)))
    }

    /// Returns a connection without an open transaction to the pool.
    pub(super) fn give_back(mut self) {
        drop(self.0.take());
    }

    /// Rolls back. A connection that cannot roll back is closed.
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
            None => unreachable!("the connection is present until it is given back"),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Some(client) = self.0.take() else { return };
        // A statement may still run. The connection returns to the pool after its end and the rollback, so that the pool's
        // limit holds.
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(Rollback(Some(client)).run())),
            Err(_) => drop(Object::take(client)),
        }
    }
}

/// The rollback of a dropped connection. If the runtime ends before it, the connection is closed.
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
