//! A server with the receiver's layer around a handler that obeys orders.

use super::Stage;
use super::client::{Body, Reply, Sent, inspector, send};
use super::counted::Counted;
use aldaba_receiver::{Builder, Event, Failure, Held, Receiver};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use std::collections::VecDeque;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;

/// How long a test waits for something that must come.
pub(crate) const PATIENT: Duration = Duration::from_secs(20);

/// What the handler does with the next event. Without an order it works.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Work,
    /// Fails before it has done anything.
    Refuse,
    WorkThenFail,
    /// Fails, and has something to say to the sender.
    FailTelling(&'static str),
    WorkThenPanic,
    WorkThenAnswer(StatusCode),
    /// Works, and ends when it is released.
    WorkThenWait,
    /// Waits until it is released, then fails.
    WaitThenFail,
    WorkThenHang,
    /// Gives its work to a task that outlives it.
    WorkThenKeep,
    /// Works, and leaves this for the time after the commit.
    WorkThenSequel(Sequel),
    /// Leaves something for after the commit, and fails.
    SequelThenFail,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Sequel {
    Done,
    Fails,
    Panics,
    Hangs,
}

pub(crate) struct Scene<S: Stage> {
    pub(crate) stage: Arc<S>,
    pub(crate) receiver: Receiver<S::Ledger>,
    pub(crate) counted: Counted,
    play: Arc<Play<S>>,
    address: SocketAddr,
    server: AbortHandle,
}

struct Play<S> {
    stage: Arc<S>,
    orders: Mutex<VecDeque<Act>>,
    gate: Semaphore,
    /// Handlers that have come to the gate.
    waiting: watch::Sender<u64>,
    begun: watch::Sender<u64>,
    ended: watch::Sender<u64>,
    /// What actions after the commit saw: the marks of their event.
    sequels: watch::Sender<Vec<u64>>,
}

impl<S: Stage> Scene<S> {
    pub(crate) async fn set(stage: S) -> Self {
        Self::set_with(stage, |builder| builder).await
    }

    /// Another receiver on the ledger of a scene.
    pub(crate) async fn set_again(scene: &Self) -> Self {
        Self::set_on(Arc::clone(&scene.stage), |builder| builder).await
    }

    pub(crate) async fn set_with(
        stage: S,
        options: impl FnOnce(Builder<S::Ledger>) -> Builder<S::Ledger>,
    ) -> Self {
        Self::set_on(Arc::new(stage), options).await
    }

    async fn set_on(stage: Arc<S>, options: impl FnOnce(Builder<S::Ledger>) -> Builder<S::Ledger>) -> Self {
        static SCENES: AtomicU64 = AtomicU64::new(0);
        let name = format!("scene-{}", SCENES.fetch_add(1, Ordering::Relaxed));
        let counted = Counted::of(&name);
        let receiver = options(Receiver::builder(inspector(), stage.ledger()).named(name)).build();
        let play = Arc::new(Play {
            stage: Arc::clone(&stage),
            orders: Mutex::default(),
            gate: Semaphore::new(0),
            waiting: watch::Sender::new(0),
            begun: watch::Sender::new(0),
            ended: watch::Sender::new(0),
            sequels: watch::Sender::new(Vec::new()),
        });
        let app = Router::new()
            .route("/webhooks", post(handle::<S>).layer(receiver.layer()))
            .with_state(Arc::clone(&play));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() }).abort_handle();
        Self { stage, receiver, counted, play, address, server }
    }

    /// Orders for the next events that come to the handler.
    pub(crate) fn next(&self, acts: impl IntoIterator<Item = Act>) {
        self.play.orders.lock().unwrap().extend(acts);
    }

    /// Lets this many handlers pass the gate.
    pub(crate) fn release(&self, handlers: usize) {
        self.play.gate.add_permits(handlers);
    }

    pub(crate) async fn send(&self, event: &Sent) -> Reply {
        self.send_as(event.request().body(event.whole()).unwrap()).await
    }

    pub(crate) async fn send_as(&self, request: http::Request<Body>) -> Reply {
        tokio::time::timeout(PATIENT, send(self.address, request)).await.expect("an answer in time")
    }

    /// In the background.
    pub(crate) fn sending(&self, event: &Sent) -> tokio::task::JoinHandle<Reply> {
        let (address, request) = (self.address, event.request().body(event.whole()).unwrap());
        tokio::spawn(async move { send(address, request).await })
    }

    /// How often the handler was called.
    pub(crate) fn runs(&self) -> u64 {
        *self.play.begun.borrow()
    }

    pub(crate) async fn runs_reach(&self, count: u64) {
        reach(&self.play.begun, |runs| *runs >= count).await;
    }

    /// Waits until this many handlers have come to the gate, after their work.
    pub(crate) async fn waits_reach(&self, count: u64) {
        reach(&self.play.waiting, |waits| *waits >= count).await;
    }

    /// Waits until this many handlers have ended, or were dropped.
    pub(crate) async fn ends_reach(&self, count: u64) {
        reach(&self.play.ended, |ends| *ends >= count).await;
    }

    /// Waits for this many actions after the commit, and says how many marks each has seen.
    pub(crate) async fn sequels(&self, count: usize) -> Vec<u64> {
        reach(&self.play.sequels, |seen| seen.len() >= count).await;
        self.play.sequels.borrow().clone()
    }

    /// Asserts how many effects and marks there are of an event.
    #[track_caller]
    pub(crate) fn left(&self, event: &Sent, effects: u64, marks: u64) -> impl Future<Output = ()> {
        let (id, at) = (event.id.clone(), std::panic::Location::caller());
        async move {
            let left = (self.stage.effects(&id).await, self.stage.marks(&id).await);
            assert_eq!(left, (effects, marks), "effects and marks of {id}, asked for at {at}");
        }
    }
}

impl<S: Stage> Drop for Scene<S> {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn reach<T>(watched: &watch::Sender<T>, enough: impl FnMut(&T) -> bool) {
    let mut watched = watched.subscribe();
    tokio::time::timeout(PATIENT, watched.wait_for(enough)).await.expect("it comes in time").unwrap();
}

/// Says that a handler is over, however it ends.
struct Ending(watch::Sender<u64>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.send_modify(|ended| *ended += 1);
    }
}

async fn handle<S: Stage>(
    State(play): State<Arc<Play<S>>>,
    event: Event,
    mut held: Held<S::Ledger>,
) -> Result<Response, Failure> {
    let _ending = Ending(play.ended.clone());
    let act = play.orders.lock().unwrap().pop_front().unwrap_or(Act::Work);
    play.begun.send_modify(|begun| *begun += 1);
    if !matches!(act, Act::Refuse | Act::WaitThenFail | Act::SequelThenFail | Act::FailTelling(_)) {
        play.stage.work(&event, &mut held).await?;
    }
    match act {
        Act::Work => {}
        Act::Refuse | Act::WorkThenFail => return Err(Failure::new("table orders of host db-7 is locked")),
        Act::FailTelling(text) => return Err(Failure::telling(text)),
        Act::WorkThenPanic => panic!("a panic that the test has ordered"),
        Act::WorkThenAnswer(status) => return Ok((status, [("retry-after", "77")]).into_response()),
        Act::WorkThenWait => play.pass().await,
        Act::WaitThenFail => {
            play.pass().await;
            return Err(Failure::new("ordered to fail"));
        }
        Act::WorkThenHang => pending().await,
        Act::WorkThenKeep => {
            tokio::spawn(async move {
                let _held = held;
                pending::<()>().await;
            });
        }
        Act::WorkThenSequel(sequel) => play.leave(&event, sequel),
        Act::SequelThenFail => {
            play.leave(&event, Sequel::Done);
            return Err(Failure::new("ordered to fail"));
        }
    }
    // The receiver replaces the body of the answer.
    Ok("something else".into_response())
}

impl<S: Stage> Play<S> {
    async fn pass(&self) {
        self.waiting.send_modify(|waiting| *waiting += 1);
        self.gate.acquire().await.unwrap().forget();
    }

    fn leave(self: &Arc<Self>, event: &Event, sequel: Sequel) {
        let (play, id) = (Arc::clone(self), event.id.clone());
        event.after_commit(async move {
            let marks = play.stage.marks(&id).await;
            play.sequels.send_modify(|seen| seen.push(marks));
            match sequel {
                Sequel::Done => Ok(()),
                Sequel::Fails => Err("the mail was not taken"),
                Sequel::Panics => panic!("a panic that the test has ordered"),
                Sequel::Hangs => pending().await,
            }
        });
    }
}
