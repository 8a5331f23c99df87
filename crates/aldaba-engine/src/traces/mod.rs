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
mod request_trace;
mod span;

pub use collector::{Collector, CollectorError, CollectorUrl};
pub(crate) use context::TRACEPARENT;
pub use context::TraceContext;
pub(crate) use export::TraceExport;
pub use message_trace::{EventTrace, SampleRate};
pub use request_trace::RequestTrace;
pub(crate) use span::{AttemptTrace, describe_attempt};

use crate::{Clock, Entropy};
use aldaba_delivery::MessageId;
use context::{SpanId, TraceId};
use joined::JoinedTraces;
use message_trace::MessageTrace;
use queue::SpanQueue;
use request_trace::RequestSpan;
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

/// Messages that the span of one request is linked with.
const MAX_LINKS: usize = 128;

/// Makes the spans of one engine. Clones share everything.
#[derive(Clone)]
pub struct Tracer(Arc<TracerState>);

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
        let export = collector.map(|collector| TraceExport::new(collector, clock.clone()));
        let state = TracerState {
            clock: clock.clone(),
            entropy: entropy.clone(),
            sample,
            pass_on,
            joined: JoinedTraces::default(),
            queue: export.as_ref().map(TraceExport::queue),
        };
        (Self(Arc::new(state)), export)
    }

    /// How the export has fared.
    pub fn counts(&self) -> TraceCounts {
        self.0.queue.as_ref().map(|queue| queue.counts()).unwrap_or_default()
    }

    /// Whether spans are made.
    pub fn exports(&self) -> bool {
        self.0.queue.is_some()
    }

    /// A request that may change something, as it begins. `context`: the trace that its caller names, who is trusted with that.
    pub fn request(&self, context: Option<TraceContext>) -> RequestTrace {
        let Some((state, _)) = self.exporting() else { return RequestTrace { context, span: None } };
        let span = RequestSpan {
            from: state.clock.monotonic(),
            trace: context.map_or_else(|| TraceId::random(&*state.entropy), |context| context.trace),
            id: state.span_id(),
            subject: parking_lot::Mutex::default(),
        };
        RequestTrace { context, span: Some(Arc::new(span)) }
    }

    /// Such a request is answered. `route`: its pattern, which has no id.
    pub fn answered(&self, request: &RequestTrace, method: &'static str, route: &str, status: u16) {
        let (Some((state, queue)), Some(open)) = (self.exporting(), &request.span) else { return };
        let subject = open.subject.lock();
        let linked: Vec<_> = subject.messages.iter().filter_map(|message| state.sampled(*message)).collect();
        let place = match subject.begun {
            Some(message) => {
                state.sampled(message).map(|trace| (trace.id, (trace.root, trace.caller), Some(message)))
            }
            None => {
                let is_sampled = match request.context {
                    Some(context) => context.sampled,
                    None => state.sample.takes_trace(open.trace) || !linked.is_empty(),
                };
                let parent = request.context.map(|context| context.span);
                is_sampled.then_some((open.trace, (open.id, parent), None))
            }
        };
        let Some((trace, ids, message)) = place else { return };
        let mut span = Span::new(trace, ids, format!("{method} {route}"), SpanKind::Server);
        (span.from, span.to) = (open.from, state.clock.monotonic());
        span.failed = status >= 500;
        span.text("http.request.method", method);
        span.text("http.route", route.to_owned());
        span.number("http.response.status_code", i64::from(status));
        if let Some(message) = message {
            span.message(message);
        }
        if let Some((app, endpoint)) = subject.endpoint {
            span.endpoint(app, endpoint);
        }
        span.links = linked.iter().take(MAX_LINKS).map(|linked| (linked.id, linked.root)).collect();
        queue.push(span);
    }

    /// The moment at which a commit begins, where spans are made at all.
    pub(crate) fn commit_begins(&self) -> Option<Duration> {
        self.exporting().map(|(state, _)| state.clock.monotonic())
    }

    /// Notes the trace that a message joins. Before its commit, because attempts may begin before its sender has the answer.
    pub(crate) fn joins(&self, message: MessageId, trace: &EventTrace) {
        if let Some(context) = trace.context {
            self.0.joined.insert(message, context);
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
        let mut span = Span::new(trace.id, (own, parent), "accept commit", SpanKind::Internal);
        (span.from, span.to) = (from, state.clock.monotonic());
        span.message(message);
        queue.push(span);
    }

    /// The trace of an attempt that begins. `is_asked`: its receiver is to be told. `None`: it is not traced, and its receiver is
    /// not told.
    pub(crate) fn attempt(&self, message: MessageId, is_asked: bool) -> Option<AttemptTrace> {
        let state = &*self.0;
        let tells = state.pass_on || is_asked;
        if !tells && (state.queue.is_none() || !state.may_be_sampled(message)) {
            return None;
        }
        let trace = state.trace(message);
        if !tells && !trace.sampled {
            return None;
        }
        let id = state.span_id();
        let header = tells.then(|| trace.context(id).header());
        Some(AttemptTrace { trace, id, header })
    }

    /// Whether every receiver is told.
    pub(crate) fn tells_all(&self) -> bool {
        self.0.pass_on
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
        let mut span = Span::new(trace.id, (*id, Some(trace.root)), "attempt", SpanKind::Client);
        (span.from, span.to) = (from, to);
        span.message(message);
        describe(&mut span);
        queue.push(span);
    }

    fn exporting(&self) -> Option<(&TracerState, &SpanQueue)> {
        Some((&*self.0, self.0.queue.as_deref()?))
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
        f.debug_tuple("Tracer").field(&self.exports()).finish()
    }
}

#[cfg(test)]
mod tests;
