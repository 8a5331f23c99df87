//! Runs scripts on the server, with a timeout.

use crate::lease::stored_lease::StoreError;
use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::{
    Client, Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, RetryMethod, ScriptInvocation,
    ServerErrorKind, Value,
};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tokio::time::{sleep, timeout};

/// The delay before a script is repeated after a lost connection or during a start of the server.
const RETRY_DELAY: Duration = Duration::from_millis(25);

/// The delay before a reconnection: the first, and the maximum.
const FIRST_RECONNECT_DELAY: Duration = Duration::from_millis(25);
const MAX_RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// Commands that may wait to be written.
const MAX_QUEUED_COMMANDS: usize = 1024;

pub(super) struct Wire {
    connection: Connection,
    answer: Duration,
}

enum Connection {
    /// Opened here, and replaced after a timeout.
    Own { client: Client, current: Mutex<NumberedConnection> },
    /// The caller's, which reconnects by itself.
    Caller(Box<dyn Fn() -> SharedConnection + Send + Sync>),
}

/// A handle on a multiplexed connection.
struct SharedConnection(Box<dyn ConnectionLike + Send + Sync>);

impl ConnectionLike for SharedConnection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        self.0.req_packed_command(command)
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.0.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.0.get_db()
    }
}

struct NumberedConnection {
    number: u64,
    manager: ConnectionManager,
}

#[derive(Debug, Error)]
enum WireError {
    #[error("Redis did not answer within {0:?}")]
    Late(Duration),
    #[error("Redis: {0}")]
    Said(#[source] RedisError),
    #[error("the two keys of an event are in different slots of Redis Cluster: turn on `hash_tags` ({0})")]
    CrossSlot(#[source] RedisError),
}

impl Wire {
    /// Connects with the first script.
    pub(super) fn to(client: &Client, answer: Duration) -> Result<Self, RedisError> {
        let connection = client.get_connection_info();
        let settings = connection.tcp_settings().clone().set_nodelay(true);
        let client = Client::open(connection.clone().set_tcp_settings(settings))?;
        let current = Mutex::new(NumberedConnection { number: 0, manager: manager(&client, answer)? });
        Ok(Self { connection: Connection::Own { client, current }, answer })
    }

    pub(super) fn over<C>(connection: C, answer: Duration) -> Self
    where
        C: ConnectionLike + Clone + Send + Sync + 'static,
    {
        let connection = Connection::Caller(Box::new(move || SharedConnection(Box::new(connection.clone()))));
        Self { connection, answer }
    }

    /// Runs a script, repeatedly if the connection is lost before the answer: scripts are idempotent.
    pub(super) async fn run<T>(&self, script: &ScriptInvocation<'_>) -> Result<T, StoreError>
    where
        T: redis::FromRedisValue,
    {
        let (mut number, mut connection) = self.connection();
        let answered = timeout(self.answer, async {
            loop {
                let error = match script.invoke_async(&mut connection).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) => error,
                };
                if error.is_timeout() || !is_passing(&error) {
                    return Err(error);
                }
                if error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly) {
                    // The server was demoted; the address may now lead to another one.
                    self.replace(number);
                }
                sleep(RETRY_DELAY).await;
                (number, connection) = self.connection();
            }
        })
        .await;
        match answered {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) if !error.is_timeout() => Err(said(error).into()),
            Ok(Err(_)) | Err(_) => {
                // The network may have dropped the connection silently.
                self.replace(number);
                Err(WireError::Late(self.answer).into())
            }
        }
    }

    fn connection(&self) -> (u64, SharedConnection) {
        match &self.connection {
            Connection::Caller(clone) => (0, clone()),
            Connection::Own { current, .. } => {
                let current = current.lock().unwrap_or_else(PoisonError::into_inner);
                (current.number, SharedConnection(Box::new(current.manager.clone())))
            }
        }
    }

    /// Replaces the connection with this number, unless that was done.
    fn replace(&self, number: u64) {
        let Connection::Own { client, current } = &self.connection else { return };
        let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.number != number {
            return;
        }
        if let Ok(manager) = manager(client, self.answer) {
            *current = NumberedConnection { number: number + 1, manager };
        }
    }
}

fn manager(client: &Client, answer: Duration) -> Result<ConnectionManager, RedisError> {
    let settings = ConnectionManagerConfig::new()
        .set_min_delay(FIRST_RECONNECT_DELAY)
        .set_max_delay(MAX_RECONNECT_DELAY)
        .set_connection_timeout(Some(answer))
        .set_response_timeout(Some(answer))
        .set_pipeline_buffer_size(MAX_QUEUED_COMMANDS);
    ConnectionManager::new_lazy_with_config(client.clone(), settings)
}

/// Whether an immediate retry may succeed.
fn is_passing(error: &RedisError) -> bool {
    error.is_connection_dropped()
        || matches!(error.retry_method(), RetryMethod::WaitAndRetry | RetryMethod::RetryImmediately)
        || error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
}

fn said(error: RedisError) -> WireError {
    match error.kind() {
        ErrorKind::Server(ServerErrorKind::CrossSlot) => WireError::CrossSlot(error),
        _ => WireError::Said(error),
    }
}
