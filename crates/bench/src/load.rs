//! The load: messages posted as fast as they are answered (closed loop), or at their due times (open loop).

use crate::Result;
use crate::api::{Api, ApiAnswer, Connection, Post};
use crate::clock::{self, Nanos, SECOND};
use crate::payload::Stamp;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// The timeout of a client.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const ACCEPTED: u16 = 202;
/// The server's `Retry-After`.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The messages to post.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    /// The paths of the messages, in rotation.
    pub(crate) paths: Vec<String>,
    /// The length of a payload.
    pub(crate) bytes: usize,
    /// Whether each has an idempotency key.
    pub(crate) keys: bool,
    /// The number of the first message.
    pub(crate) first: u64,
}

impl Traffic {
    pub(crate) fn to(path: &str) -> Self {
        Self { paths: vec![path.to_owned()], bytes: 1024, keys: false, first: 0 }
    }

    fn post(&self, number: u64, due: Nanos) -> Post {
        let turn = usize::try_from(number).unwrap_or_default() % self.paths.len();
        let payload = Stamp { sent_at: due, number }.payload(self.bytes);
        Post {
            path: self.paths[turn].clone(),
            key: self.keys.then(|| format!("bench-{number}")),
            body: format!(r#"{{"eventType":"bench.event","payload":{payload}}}"#),
        }
    }
}

/// The result of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentMessage {
    pub(crate) number: u64,
    /// The due time; from then on it waits for a connection.
    pub(crate) due: Nanos,
    pub(crate) began: Nanos,
    pub(crate) ended: Nanos,
    pub(crate) result: SendResult,
    /// How often it was refused and posted again before.
    pub(crate) refusals: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendResult {
    Accepted,
    Refused {
        status: u16,
        retry_after: bool,
    },
    /// A timeout, or a broken connection.
    Lost(io::ErrorKind),
}

impl SentMessage {
    pub(crate) fn accepted(&self) -> bool {
        self.result == SendResult::Accepted
    }

    /// The time from the request to its answer.
    pub(crate) fn took(&self) -> Nanos {
        self.ended.saturating_sub(self.began)
    }
}

/// Fails unless all were accepted.
pub(crate) fn all_accepted(sent: &[SentMessage]) -> Result<()> {
    match sent.iter().find(|sent| !sent.accepted()) {
        None => Ok(()),
        Some(one) => Err(format!("message {} was not accepted: {:?}", one.number, one.result).into()),
    }
}

/// The end of a closed loop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    Count(u64),
    Moment(Nanos),
}

/// Every connection posts the next message after the last answer.
pub(crate) async fn closed(
    api: &Api,
    traffic: Traffic,
    connections: usize,
    until: Until,
) -> Result<Vec<SentMessage>> {
    let (next, traffic) = (Arc::new(AtomicU64::new(0)), Arc::new(traffic));
    let mut workers = JoinSet::new();
    for _ in 0..connections {
        let (next, traffic, mut connection) = (Arc::clone(&next), Arc::clone(&traffic), api.connect().await?);
        let api = api.clone();
        workers.spawn(async move {
            let mut sent = Vec::new();
            loop {
                let (number, due) = (next.fetch_add(1, Ordering::Relaxed), clock::now());
                let over = match until {
                    Until::Count(count) => number >= count,
                    Until::Moment(moment) => due >= moment,
                };
                if over {
                    return sent;
                }
                let number = traffic.first + number;
                let mut refusals = 0;
                let mut answer = connection.post(&traffic.post(number, due)).await;
                // A sender that must deliver every message obeys `Retry-After`.
                while let (Until::Count(_), SendResult::Refused { retry_after: true, .. }) =
                    (until, result(&answer))
                {
                    refusals += 1;
                    tokio::time::sleep(RETRY_AFTER).await;
                    answer = connection.post(&traffic.post(number, due)).await;
                }
                let lost = answer.is_err();
                let (ended, result) = (clock::now(), result(&answer));
                sent.push(SentMessage { number, due, began: due, ended, result, refusals });
                if !connection.is_fresh() {
                    connection = match api.connect().await {
                        Ok(connection) if !lost => connection,
                        _ => return sent,
                    };
                }
            }
        });
    }
    let mut all = Vec::new();
    while let Some(sent) = workers.join_next().await {
        all.append(&mut sent?);
    }
    Ok(all)
}

/// Messages at a fixed rate, independent of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub(crate) begin: Nanos,
    pub(crate) a_second: f64,
    pub(crate) seconds: f64,
    /// The maximum number of concurrent requests; the next one waits.
    pub(crate) connections: usize,
    /// Whether messages that still wait at the end are dropped, so that the load ends on time.
    pub(crate) ends_sharply: bool,
}

impl Schedule {
    pub(crate) fn count(&self) -> u64 {
        (self.a_second * self.seconds).round() as u64
    }

    fn due(&self, number: u64) -> Nanos {
        self.begin + (number as f64 / self.a_second * SECOND as f64) as Nanos
    }

    pub(crate) fn end(&self) -> Nanos {
        self.due(self.count())
    }
}

/// Posts each message at its due time. Dropped messages are not in the result.
pub(crate) async fn open(api: &Api, traffic: Traffic, schedule: Schedule) -> Result<Vec<SentMessage>> {
    let traffic = Arc::new(traffic);
    let (permits, idle) =
        (Arc::new(Semaphore::new(schedule.connections)), Arc::<Mutex<Vec<Connection>>>::default());
    let mut due = pace(schedule);
    let mut requests = JoinSet::new();
    let mut all = Vec::new();
    while let Some(number) = due.recv().await {
        let permit = Arc::clone(&permits).acquire_owned().await?;
        while let Some(sent) = requests.try_join_next() {
            all.push(sent?);
        }
        let (due, began) = (schedule.due(number), clock::now());
        if schedule.ends_sharply && began > schedule.end() {
            break;
        }
        let (traffic, idle, api) = (Arc::clone(&traffic), Arc::clone(&idle), api.clone());
        requests.spawn(async move {
            let number = traffic.first + number;
            let post = traffic.post(number, due);
            let kept = idle.lock().pop().filter(Connection::is_fresh);
            let answer = tokio::time::timeout(REQUEST_TIMEOUT, post_on(kept, &api, &post)).await;
            let answer =
                answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map(|(connection, answer)| {
                    idle.lock().push(connection);
                    answer
                });
            drop(permit);
            SentMessage { number, due, began, ended: clock::now(), result: result(&answer), refusals: 0 }
        });
    }
    while let Some(sent) = requests.join_next().await {
        all.push(sent?);
    }
    Ok(all)
}

async fn post_on(kept: Option<Connection>, api: &Api, post: &Post) -> io::Result<(Connection, ApiAnswer)> {
    let mut connection = match kept {
        Some(connection) => connection,
        None => api.connect().await?,
    };
    let answer = connection.post(post).await?;
    Ok((connection, answer))
}

/// Emits each message's number at its due time. On its own thread, whose timer is finer than the runtime's: the
/// difference would be counted as the server's.
fn pace(schedule: Schedule) -> mpsc::UnboundedReceiver<u64> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for number in 0..schedule.count() {
            clock::sleep_until(schedule.due(number));
            if sender.send(number).is_err() {
                return;
            }
        }
    });
    receiver
}

fn result(answer: &io::Result<ApiAnswer>) -> SendResult {
    match answer {
        Ok(ApiAnswer { status: ACCEPTED, .. }) => SendResult::Accepted,
        Ok(ApiAnswer { status, retry_after, .. }) => {
            SendResult::Refused { status: *status, retry_after: *retry_after }
        }
        Err(error) => SendResult::Lost(error.kind()),
    }
}
