//! The receiver as a tower layer.

use crate::body::read;
use crate::slot::Slot;
use crate::{Answer, Event, Failure, Ledger, Misplaced, Receiver};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::header::{CONTENT_LENGTH, RETRY_AFTER};
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use std::task::{Context, Poll};
use tower::{BoxError, Layer, Service};

/// Wraps a service in a [`Receiver`]. The service is called for new events only. It finds the [`Event`] in the request's
/// extensions and the exact body in the request.
///
/// A 2xx answer completes the event's work; the receiver sends its own answer. Any other status, an error, a panic (if
/// panics unwind) and a timeout are failures: the work is abandoned.
#[derive(Debug)]
pub struct ReceiverLayer<L>(Receiver<L>);

/// A service that is wrapped in a receiver.
#[derive(Debug)]
pub struct ReceiverService<S, L> {
    inner: S,
    receiver: Receiver<L>,
}

impl<L: Ledger> Receiver<L> {
    /// A layer that wraps a service in this receiver.
    pub fn layer(&self) -> ReceiverLayer<L> {
        ReceiverLayer(self.clone())
    }
}

impl<S, L> Layer<S> for ReceiverLayer<L> {
    type Service = ReceiverService<S, L>;

    fn layer(&self, inner: S) -> Self::Service {
        ReceiverService { inner, receiver: self.0.clone() }
    }
}

impl<S, L, B, R> Service<Request<B>> for ReceiverService<S, L>
where
    L: Ledger,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError> + Send,
    R: Send + 'static,
{
    type Response = Response<Full<Bytes>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if Event::of(request.extensions()).is_ok() {
            return async { Ok(nested()) }.boxed();
        }
        // Calls the service that has reported to be ready, not its clone.
        let next = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, next);
        let receiver = self.receiver.clone();
        async move { Ok(answer(receiver, inner, request).await.into()) }.boxed()
    }
}

async fn answer<S, L, B, R>(receiver: Receiver<L>, mut inner: S, request: Request<B>) -> Answer
where
    L: Ledger,
    B: Body,
    B::Error: Into<BoxError>,
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError> + Send,
    R: Send + 'static,
{
    let (mut parts, body) = request.into_parts();
    if let Some(answer) = receiver.challenge(&parts.method, parts.uri.query()) {
        return answer;
    }
    let body = match receiver.take_body(&parts, body).await {
        Ok(body) => body,
        Err(answer) => {
            receiver.0.counters.event(answer.outcome());
            return answer;
        }
    };
    let (method, headers) = (parts.method.clone(), parts.headers.clone());
    let call = async move |event: Event, slot: Slot<L::Work>| {
        let body = Full::new(event.body.clone());
        parts.extensions.insert(slot);
        parts.extensions.insert(event);
        match inner.call(Request::from_parts(parts, body)).await {
            // Drops the handler's body before its work is taken back: the body may hold the work.
            Ok(response) => verdict(&response),
            Err(error) => Err(Failure::new(error.into().to_string())),
        }
    };
    receiver.run(method, headers, body, call).await
}

/// The answer of a receiver below another receiver. The event is already claimed; a second claim would wait for the first.
fn nested() -> Response<Full<Bytes>> {
    tracing::error!("{}", Misplaced::Nested);
    let failure = Failure::telling(Misplaced::Nested.to_string());
    let mut response = Response::from(Answer::failed(failure.status, failure.told.clone(), None));
    response.extensions_mut().insert(failure);
    response
}

/// Translates the answer of a handler into success or failure.
fn verdict<R>(response: &Response<R>) -> Result<(), Failure> {
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let failure = match response.extensions().get::<Failure>() {
        Some(failure) => failure.clone(),
        None => Failure::new(format!("the handler answered {status}")),
    };
    Err(failure.with_status(status).with_retry_after(response.headers().get(RETRY_AFTER).cloned()))
}

impl<L: Ledger> Receiver<L> {
    /// Reads the body, after the checks that need no body.
    async fn take_body<B>(&self, parts: &Parts, body: B) -> Result<Bytes, Answer>
    where
        B: Body,
        B::Error: Into<BoxError>,
    {
        self.check_method(&parts.method)?;
        let told = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        self.check_length(told.unwrap_or(0))?;
        let options = &self.0.options;
        match tokio::time::timeout(options.body_time, read(body, options.max_body)).await {
            Ok(body) => body,
            Err(_) => Err(Answer::body_too_slow()),
        }
    }
}

impl<L> Clone for ReceiverLayer<L> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Clone, L> Clone for ReceiverService<S, L> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), receiver: self.receiver.clone() }
    }
}
