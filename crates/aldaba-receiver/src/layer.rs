//! The receiver around any tower service that handles the event.

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

/// Puts a [`Receiver`] around a service. The service is called for new events only, and finds the
/// [`Event`] in the request's extensions and the exact body in the request.
///
/// If it answers 2xx, the event's work is completed and the answer is the receiver's own. Anything else is a failure, and
/// so are an error, a panic (where panics unwind) and a handler that takes too long: the work is abandoned.
#[derive(Debug)]
pub struct ReceiverLayer<L>(Receiver<L>);

/// A service with a receiver around it.
#[derive(Debug)]
pub struct ReceiverService<S, L> {
    inner: S,
    receiver: Receiver<L>,
}

impl<L: Ledger> Receiver<L> {
    /// A layer that puts this receiver around a service.
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
        // The one that said it is ready is the one to call.
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
            // The body that the handler gave is dropped here, before its work is asked back, should it hold it.
            Ok(response) => verdict(&response),
            Err(error) => Err(Failure::new(error.into().to_string())),
        }
    };
    receiver.run(method, headers, body, call).await
}

/// What a receiver is told by another one below it: the event is claimed already, and its own claim would wait for that.
fn nested() -> Response<Full<Bytes>> {
    tracing::error!("{}", Misplaced::Nested);
    let failure = Failure::telling(Misplaced::Nested.to_string());
    let mut response = Response::from(Answer::failed(failure.status, failure.told.clone(), None));
    response.extensions_mut().insert(failure);
    response
}

/// What a handler's answer means.
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
    /// What can be refused without the body is refused before it is read.
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
