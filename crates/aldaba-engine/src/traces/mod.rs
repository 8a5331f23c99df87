//! Traces of messages, from their requests to the attempts that deliver them.
//!
//! The [trace of a message](message_trace) is derived from the message's id, so nothing of it is stored: an attempt a week and
//! three restarts later belongs to the same trace. A message whose sender names a trace of its own ([context]) joins that one,
//! as long as memory knows of it ([joined]). Whether a message is sampled is decided once, by its trace id; nothing is made of
//! one that is not. Ended [spans](span) go into a bounded [queue], and from there to a [collector] by OTLP ([encode]), in a
//! background task ([export]).

mod collector;
mod context;
mod encode;
mod export;
mod joined;
mod message_trace;
mod queue;
mod span;

pub use collector::{Collector, CollectorError, CollectorUrl};
pub(crate) use context::TRACEPARENT;
pub use context::TraceContext;
pub(crate) use export::TraceExport;
pub use message_trace::{EventTrace, SampleRate};
pub use span::RequestTrace;
pub(crate) use span::{AttemptTrace, describe_attempt};

use crate::{Clock, Entropy};
use aldaba_delivery::MessageId;
use context::SpanId;
use http::HeaderMap;
use joined::JoinedTraces;
use message_trace::MessageTrace;
use queue::SpanQueue;
use span::{Span, SpanKind};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What is traced, and where the spans go.
#[derive(Clone, Debug, Default)]
pub struct TraceOptions {
    /// `None`: no spans are made.
    pub collector: Option<Collector>,
    /// The share of messages that are traced, unless their senders have decided.
    pub sample: SampleRate,
    /// Whether receivers get a `traceparent`.
    pub pass_on: bool,
}

/// Makes the spans of one engine. Clones share everything.
#[derive(Clone)]
pub struct Tracer(Option<Arc<TracerState>>);

struct TracerState {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    sample: SampleRate,
    pass_on: bool,
    joined: JoinedTraces,
    /// `None`: nothing is exported.
    queue: Option<Arc<SpanQueue>>,
}

/// How the export has fared since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceCounts {
    pub exported: u64,
    /// Spans that found the queue full, or that the collector has refused.
    pub dropped: u64,
}

impl Tracer {
    /// The tracer, and the task that exports its spans.
    pub(crate) fn start(
        options: TraceOptions,
        clock: &Arc<dyn Clock>,
        entropy: &Arc<dyn Entropy>,
    ) -> (Self, Option<TraceExport>) {
        let TraceOptions { collector, sample, pass_on } = options;
        if collector.is_none() && !pass_on {
            return (Self(None), None);
        }
        let export = collector.map(|collector| TraceExport::new(collector, clock.clone()));
        let state = TracerState {
            clock: clock.clone(),
            entropy: entropy.clone(),
            sample,
            pass_on,
            joined: JoinedTraces::default(),
            queue: export.as_ref().map(TraceExport::queue),
        };
        (Self(Some(Arc::new(state))), export)
    }

    /// How the export has fared.
    pub fn counts(&self) -> TraceCounts {
        let queue = self.0.as_ref().and_then(|state| state.queue.as_ref());
        queue.map(|queue| queue.counts()).unwrap_or_default()
    }

    /// A request that may submit a message, as it begins.
    pub fn request(&self, headers: &HeaderMap) -> RequestTrace {
        let Some(state) = self.0.as_deref() else { return RequestTrace::default() };
        let from = state.queue.is_some().then(|| state.clock.monotonic());
        RequestTrace { from, context: TraceContext::of(headers) }
    }

    /// Such a request is answered: its message, as far as it has one, and the status.
    pub fn answered(&self, request: &RequestTrace, route: &'static str, message: MessageId, status: u16) {
        let Some((state, queue)) = self.exporting() else { return };
        let (Some(from), Some(trace)) = (request.from, state.sampled(message)) else { return };
        let mut span = Span::new(&trace, trace.root, trace.caller, route, SpanKind::Server);
        (span.from, span.to) = (from, state.clock.monotonic());
        span.failed = status >= 500;
        span.text("http.request.method", "POST");
        span.text("http.route", route.trim_start_matches("POST "));
        span.number("http.response.status_code", i64::from(status));
        span.message(message);
        queue.push(span);
    }

    /// The moment at which a commit begins, where spans are made at all.
    pub(crate) fn commit_begins(&self) -> Option<Duration> {
        self.exporting().map(|(state, _)| state.clock.monotonic())
    }

    /// Notes the trace that a message joins. Before its commit, because attempts may begin before its sender has the answer.
    pub(crate) fn joins(&self, message: MessageId, trace: &EventTrace) {
        if let (Some(state), Some(context)) = (&self.0, trace.context) {
            state.joined.insert(message, context);
        }
    }

    /// A message was committed.
    pub(crate) fn committed(&self, from: Option<Duration>, message: MessageId, event: &EventTrace) {
        let (Some((state, queue)), Some(from)) = (self.exporting(), from) else { return };
        let Some(trace) = state.sampled(message) else { return };
        // Without a request of its own the commit is the first thing that is known of a message.
        let (own, parent) = match event.has_request {
            true => (state.span_id(), Some(trace.root)),
            false => (trace.root, trace.caller),
        };
        let mut span = Span::new(&trace, own, parent, "accept commit", SpanKind::Internal);
        (span.from, span.to) = (from, state.clock.monotonic());
        span.message(message);
        queue.push(span);
    }

    /// The trace of an attempt that begins. `None`: it is not traced, and its receiver is not told.
    pub(crate) fn attempt(&self, message: MessageId) -> Option<AttemptTrace> {
        let state = self.0.as_ref()?;
        if !state.pass_on && !state.may_be_sampled(message) {
            return None;
        }
        let trace = state.trace(message);
        if !state.pass_on && !trace.sampled {
            return None;
        }
        let id = state.span_id();
        let header = state.pass_on.then(|| trace.context(id).header());
        Some(AttemptTrace { trace, id, header })
    }

    /// The attempt is over. `describe` adds what is known of it.
    pub(crate) fn attempted(
        &self,
        attempt: &AttemptTrace,
        message: MessageId,
        (from, to): (Duration, Duration),
        describe: impl FnOnce(&mut Span),
    ) {
        let AttemptTrace { trace, id, .. } = attempt;
        let Some((_, queue)) = self.exporting().filter(|_| trace.sampled) else { return };
        let mut span = Span::new(trace, *id, Some(trace.root), "attempt", SpanKind::Client);
        (span.from, span.to) = (from, to);
        span.message(message);
        describe(&mut span);
        queue.push(span);
    }

    fn exporting(&self) -> Option<(&TracerState, &SpanQueue)> {
        let state = self.0.as_deref()?;
        Some((state, state.queue.as_deref()?))
    }
}

impl TracerState {
    /// The trace of a message: its sender's where memory knows it, else its own.
    fn trace(&self, message: MessageId) -> MessageTrace {
        match self.joined.get(message) {
            Some(context) => MessageTrace::joining(message, context),
            None => MessageTrace::own(message, self.sample),
        }
    }

    /// Cheap: most messages are not sampled.
    fn may_be_sampled(&self, message: MessageId) -> bool {
        !self.joined.is_empty() || self.sample.takes(message)
    }

    fn sampled(&self, message: MessageId) -> Option<MessageTrace> {
        if !self.may_be_sampled(message) {
            return None;
        }
        Some(self.trace(message)).filter(|trace| trace.sampled)
    }

    fn span_id(&self) -> SpanId {
        SpanId::random(&*self.entropy)
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tracer").field(&self.0.is_some()).finish()
    }
}

#[cfg(test)]
mod tests;
