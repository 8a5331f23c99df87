//! What is kept of a piece of work that is over.

use super::context::{SpanId, TraceId};
use super::message_trace::MessageTrace;
use crate::delivering::AttemptRequest;
use aldaba_delivery::{AppId, EndpointId, MessageId, Outcome};
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
    pub(super) name: Cow<'static, str>,
    pub(super) kind: SpanKind,
    pub(super) from: Duration,
    pub(super) to: Duration,
    pub(super) attributes: Vec<(&'static str, AttributeValue)>,
    /// Spans of other traces that it has to do with.
    pub(super) links: Vec<(TraceId, SpanId)>,
    /// It ended in an error.
    pub(crate) failed: bool,
}

impl Span {
    pub(super) fn new(
        trace: TraceId,
        (id, parent): (SpanId, Option<SpanId>),
        name: impl Into<Cow<'static, str>>,
        kind: SpanKind,
    ) -> Self {
        let (from, to) = (Duration::ZERO, Duration::ZERO);
        let (name, attributes, links) = (name.into(), Vec::with_capacity(8), Vec::new());
        Self { trace, id, parent, name, kind, from, to, attributes, links, failed: false }
    }

    pub(crate) fn text(&mut self, key: &'static str, value: impl Into<Cow<'static, str>>) {
        self.attributes.push((key, AttributeValue::Text(value.into())));
    }

    pub(crate) fn number(&mut self, key: &'static str, value: i64) {
        self.attributes.push((key, AttributeValue::Number(value)));
    }

    pub(super) fn endpoint(&mut self, app: AppId, endpoint: EndpointId) {
        self.text("aldaba.application.id", app.to_string());
        self.text("aldaba.endpoint.id", endpoint.to_string());
    }

    pub(super) fn message(&mut self, message: MessageId) {
        self.text("aldaba.message.id", message.to_string());
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
    span.endpoint(request.target.app, request.endpoint);
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
