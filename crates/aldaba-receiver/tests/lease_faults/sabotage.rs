//! Planted bugs, which show that the trials can fail. They are in the connection: to Redis it is as if the ledger had
//! them.

use crate::millis;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Arg, Cmd, Pipeline, RedisFuture, Value};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// An owner deletes the lock without looking whose it is.
    PlainDelete,
    /// A lease is never renewed, and its owner believes that it is.
    NoRenewal,
    /// It is looked first whether there is a lock or a mark, and then the lock is set.
    CheckThenSet,
}

impl Sabotage {
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::PlainDelete, Self::NoRenewal, Self::CheckThenSet]
            .into_iter()
            .find(|sabotage| format!("{sabotage:?}") == name)
    }
}

#[derive(Clone)]
pub(crate) struct Saboteur {
    inner: MultiplexedConnection,
    sabotage: Sabotage,
    granted: Arc<Mutex<HashSet<Vec<u8>>>>,
}

impl Saboteur {
    pub(crate) async fn at(address: &str, sabotage: Sabotage) -> Self {
        let inner = redis::Client::open(address).unwrap().get_multiplexed_async_connection().await.unwrap();
        Self { inner, sabotage, granted: Arc::default() }
    }

    async fn check_then_set(&mut self, lock_key: &[u8], mark_key: &[u8], lock: &[u8], life: &[u8]) -> Value {
        let there: Vec<Option<String>> =
            redis::cmd("MGET").arg(mark_key).arg(lock_key).query_async(&mut self.inner).await.unwrap();
        match (&there[0], &there[1]) {
            (Some(mark), _) => words(&["marked", mark]),
            (None, Some(lock)) => words(&["held", lock]),
            (None, None) => {
                tokio::time::sleep(millis(2)).await;
                let mut set = redis::cmd("SET");
                set.arg(lock_key).arg(lock).arg("PX").arg(life).exec_async(&mut self.inner).await.unwrap();
                words(&["granted"])
            }
        }
    }
}

fn words(words: &[&str]) -> Value {
    Value::Array(words.iter().map(|word| Value::BulkString(word.as_bytes().to_vec())).collect())
}

impl ConnectionLike for Saboteur {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        let words: Vec<Vec<u8>> = command
            .args_iter()
            .map(|word| match word {
                Arg::Simple(bytes) => bytes.to_vec(),
                _ => Vec::new(),
            })
            .collect();
        Box::pin(async move {
            // EVALSHA, script, 2, and the keys of lock and mark; then what the lock holds, and more.
            if words[0] != b"EVALSHA" {
                return self.inner.req_packed_command(command).await;
            }
            let (lock_key, mark_key, arguments) = (&words[3], &words[4], &words[5..]);
            let asks = arguments.len() == 2 && !self.granted.lock().unwrap().contains(&arguments[0]);
            let renews = arguments.len() == 2 && !asks;
            let releases = arguments.len() == 1;
            let answer = match self.sabotage {
                Sabotage::PlainDelete if releases => {
                    redis::cmd("DEL").arg(lock_key).exec_async(&mut self.inner).await?;
                    Value::SimpleString("ours".into())
                }
                Sabotage::NoRenewal if renews => Value::SimpleString("ours".into()),
                Sabotage::CheckThenSet if asks => {
                    self.check_then_set(lock_key, mark_key, &arguments[0], &arguments[1]).await
                }
                _ => self.inner.req_packed_command(command).await?,
            };
            if asks && format!("{answer:?}").contains("granted") {
                self.granted.lock().unwrap().insert(arguments[0].clone());
            }
            Ok(answer)
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.inner.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.inner.get_db()
    }
}
