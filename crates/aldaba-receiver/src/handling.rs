//! One event from its request to its answer, including panics and timeouts of the handler.

use crate::begun::Begun;
use crate::slot::Slot;
use crate::{Answer, Event, Failure, Held, Ledger, Opening, Outcome, Receiver, WhenSenderLeaves};
use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, Method};
use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use tracing::Instrument;

impl<L: Ledger> Receiver<L> {
    /// Opens the request, runs the handler if the event is new, ends the event and returns the answer. For frameworks that
    /// are not built on tower; it does what the layer does once it has the body. Method and headers are copied, because the
    /// handler may outlive the request.
    ///
    /// The handler must drop the work before it returns.
    pub async fn handle<H, F>(&self, method: &Method, headers: &HeaderMap, body: Bytes, handler: H) -> Answer
    where
        H: FnOnce(Event, Held<L>) -> F + Send + 'static,
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let lend = async move |event, slot: Slot<L::Work>| match slot.take() {
            Some(work) => handler(event, Held::of_taken(work)).await,
            None => unreachable!("the work has not been taken yet"),
        };
        self.run(method.clone(), headers.clone(), body, lend).await
    }

    pub(crate) async fn run<H, F>(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
        handler: H,
    ) -> Answer
    where
        H: FnOnce(Event, Slot<L::Work>) -> F + Send + 'static,
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let receiver = self.clone();
        let work = async move {
            match receiver.open(&method, &headers, body).await {
                Opening::Answered(answer) => answer,
                Opening::Begun(begun) => receiver.run_begun(begun, handler).await,
            }
        };
        match self.0.options.when_sender_leaves {
            WhenSenderLeaves::Stop => work.await,
            // A task continues when nobody waits for it. It includes the claim, so that a claim is never cancelled halfway.
            WhenSenderLeaves::Finish => match tokio::spawn(work.in_current_span()).await {
                Ok(answer) => answer,
                Err(error) => {
                    tracing::error!(%error, "the task of an event did not finish");
                    self.0.counters.event(Outcome::Unavailable);
                    Answer::unavailable()
                }
            },
        }
    }

    async fn run_begun<H, F>(&self, begun: Begun<L>, handler: H) -> Answer
    where
        H: FnOnce(Event, Slot<L::Work>) -> F,
        F: Future<Output = Result<(), Failure>>,
    {
        let (task, work) = begun.split();
        let (owner, slot) = Slot::holding(work);
        let event = task.event().clone();
        let call = AssertUnwindSafe(async move { handler(event, slot).await }).catch_unwind();
        let limit = self.0.options.handler_time;
        let result = match tokio::time::timeout(limit, call).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => Err(Failure::new(format!("the handler panicked: {}", panic_text(&*panic)))),
            Err(_) => Err(Failure::new(format!(
                "the handler exceeded its time limit of {limit:?} and was cancelled"
            ))),
        };
        task.end(owner.close(), result).await
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
