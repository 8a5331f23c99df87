//! What is kept of a piece of work that is over.

use super::context::{SpanId, TraceContext, TraceId};
use super::message_trace::{EventTrace, MessageTrace};
use crate::delivering::AttemptRequest;
use aldaba_delivery::{MessageId, Outcome};
use http::HeaderValue;
use std::borrow::Cow;
use std::time::Duration;

/// The values of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttributeValue {
    Text(Cow<'static, str>),
    Number(i64),
}

/// A span that has ended. Its times are of the monotonic clock.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(super) trace: TraceId,
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) name: &'static str,
    pub(super) kind: SpanKind,
    pub(super) from: Duration,
    pub(super) to: Duration,
    pub(super) attributes: Vec<(&'static str, AttributeValue)>,
    /// It ended in an error.
    pub(crate) failed: bool,
}

impl Span {
    pub(super) fn new(
        trace: &MessageTrace,
        id: SpanId,
        parent: Option<SpanId>,
        name: &'static str,
        kind: SpanKind,
    ) -> Self {
        let (from, to) = (Duration::ZERO, Duration::ZERO);
        let attributes = Vec::with_capacity(8);
        Self { trace: trace.id, id, parent, name, kind, from, to, attributes, failed: false }
    }

    pub(crate) fn text(&mut self, key: &'static str, value: impl Into<Cow<'static, str>>) {
        self.attributes.push((key, AttributeValue::Text(value.into())));
    }

    pub(crate) fn number(&mut self, key: &'static str, value: i64) {
        self.attributes.push((key, AttributeValue::Number(value)));
    }

    pub(super) fn message(&mut self, message: MessageId) {
        self.text("aldaba.message.id", message.to_string());
    }
}

/// A request to the API that submits a message, until its answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestTrace {
    /// `None`: no span is made.
    pub(super) from: Option<Duration>,
    pub(super) context: Option<TraceContext>,
}

impl RequestTrace {
    /// What its event gets of it, if the request tells [`Tracer::answered`](super::Tracer::answered) of its end.
    pub fn event(&self) -> EventTrace {
        EventTrace { has_request: self.from.is_some(), ..self.shared() }
    }

    /// What each of its events gets, if there are several.
    pub fn shared(&self) -> EventTrace {
        EventTrace { context: self.context, has_request: false }
    }
}

/// An attempt under way.
#[derive(Clone, Debug)]
pub(crate) struct AttemptTrace {
    pub(super) trace: MessageTrace,
    pub(super) id: SpanId,
    /// What the receiver is told, if it is.
    pub(crate) header: Option<HeaderValue>,
}

/// What is known of an attempt. Nothing that its receiver or its tenant has written: no path, no header, no error text.
pub(crate) fn describe_attempt(span: &mut Span, request: &AttemptRequest, outcome: &Outcome) {
    span.text("http.request.method", "POST");
    span.text("aldaba.application.id", request.target.app.to_string());
    span.text("aldaba.endpoint.id", request.endpoint.to_string());
    span.number("aldaba.attempt", i64::from(request.pending.attempts) + 1);
    if let Ok(address) = &request.target.address {
        span.text("server.address", address.url.host_str().unwrap_or_default().to_owned());
        span.number("server.port", address.url.port_or_known_default().unwrap_or(0).into());
    }
    match outcome {
        Outcome::Response(head) => {
            span.number("http.response.status_code", head.status.into());
            span.failed = !(200..300).contains(&head.status);
        }
        Outcome::Failed(failure) => {
            span.text("error.type", failure.kind.name());
            span.failed = true;
        }
    }
}
