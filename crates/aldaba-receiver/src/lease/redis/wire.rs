//! How a script gets to the server and its answer back, in bounded time.

use crate::lease::keep::Trouble;
use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::{
    Client, Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, RetryMethod, ScriptInvocation,
    ServerErrorKind, Value,
};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tokio::time::{sleep, timeout};

/// How soon a server is asked again that was just lost or is just starting.
const PAUSE: Duration = Duration::from_millis(25);

/// How soon a connection is tried again: at first, and at last.
const FIRST_RECONNECT: Duration = Duration::from_millis(25);
const LONGEST_RECONNECT: Duration = Duration::from_millis(500);

/// How many questions may wait to be written.
const QUEUE: usize = 1024;

pub(super) struct Wire {
    connection: Connection,
    answer: Duration,
}

enum Connection {
    /// Made here, and made anew where it gives no answer.
    Own { client: Client, current: Mutex<Numbered> },
    /// The caller's, which sees to itself.
    Given(Box<dyn Fn() -> Shared + Send + Sync>),
}

/// A handle on a connection that many use at once.
struct Shared(Box<dyn ConnectionLike + Send + Sync>);

impl ConnectionLike for Shared {
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

struct Numbered {
    number: u64,
    manager: ConnectionManager,
}

#[derive(Debug, Error)]
enum WireError {
    #[error("Redis did not answer within {0:?}")]
    Late(Duration),
    #[error("Redis: {0}")]
    Said(#[source] RedisError),
    #[error(
        "Redis keeps keys in slots, and an event's two keys are in different ones: turn on `hash_tags` ({0})"
    )]
    CrossSlot(#[source] RedisError),
}

impl Wire {
    /// Connects when it is first asked.
    pub(super) fn to(client: &Client, answer: Duration) -> Result<Self, RedisError> {
        let connection = client.get_connection_info();
        let settings = connection.tcp_settings().clone().set_nodelay(true);
        let client = Client::open(connection.clone().set_tcp_settings(settings))?;
        let current = Mutex::new(Numbered { number: 0, manager: manager(&client, answer)? });
        Ok(Self { connection: Connection::Own { client, current }, answer })
    }

    pub(super) fn over<C>(connection: C, answer: Duration) -> Self
    where
        C: ConnectionLike + Clone + Send + Sync + 'static,
    {
        let connection = Connection::Given(Box::new(move || Shared(Box::new(connection.clone()))));
        Self { connection, answer }
    }

    /// Runs a script, again where the connection was lost before the answer: scripts may run twice.
    pub(super) async fn run<T>(&self, script: &ScriptInvocation<'_>) -> Result<T, Trouble>
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
                    // A server that was demoted. Behind the same name there is another one now.
                    self.replace(number);
                }
                sleep(PAUSE).await;
                (number, connection) = self.connection();
            }
        })
        .await;
        match answered {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) if !error.is_timeout() => Err(said(error).into()),
            Ok(Err(_)) | Err(_) => {
                // The network may have swallowed the connection without a word.
                self.replace(number);
                Err(WireError::Late(self.answer).into())
            }
        }
    }

    fn connection(&self) -> (u64, Shared) {
        match &self.connection {
            Connection::Given(clone) => (0, clone()),
            Connection::Own { current, .. } => {
                let current = current.lock().unwrap_or_else(PoisonError::into_inner);
                (current.number, Shared(Box::new(current.manager.clone())))
            }
        }
    }

    /// Makes the connection of this number anew, unless somebody has.
    fn replace(&self, number: u64) {
        let Connection::Own { client, current } = &self.connection else { return };
        let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.number != number {
            return;
        }
        if let Ok(manager) = manager(client, self.answer) {
            *current = Numbered { number: number + 1, manager };
        }
    }
}

fn manager(client: &Client, answer: Duration) -> Result<ConnectionManager, RedisError> {
    let settings = ConnectionManagerConfig::new()
        .set_min_delay(FIRST_RECONNECT)
        .set_max_delay(LONGEST_RECONNECT)
        .set_connection_timeout(Some(answer))
        .set_response_timeout(Some(answer))
        .set_pipeline_buffer_size(QUEUE);
    ConnectionManager::new_lazy_with_config(client.clone(), settings)
}

/// Whether it is worth asking again at once.
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
