//! The trace of a request to the API, until its answer.

use super::context::{SpanId, TraceContext, TraceId};
use super::message_trace::EventTrace;
use crate::SendReceipt;
use aldaba_delivery::{AppId, EndpointId, MessageId};
use http::HeaderMap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// What is known of a request. Clones share what they note.
#[derive(Clone, Debug, Default)]
pub struct RequestTrace {
    pub(super) context: Option<TraceContext>,
    /// `None`: no span is made.
    pub(super) span: Option<Arc<RequestSpan>>,
}

/// A span that has not ended.
#[derive(Debug)]
pub(super) struct RequestSpan {
    pub(super) from: Duration,
    pub(super) trace: TraceId,
    pub(super) id: SpanId,
    pub(super) subject: Mutex<RequestSubject>,
}

/// What a request was about.
#[derive(Debug, Default)]
pub(super) struct RequestSubject {
    /// Its span is the first of this message.
    pub(super) begun: Option<MessageId>,
    /// It has to do with these, which have spans of their own.
    pub(super) messages: Vec<MessageId>,
    pub(super) endpoint: Option<(AppId, EndpointId)>,
}

impl RequestTrace {
    /// Of a request without a span: only the trace that its caller names.
    pub fn unrecorded(headers: &HeaderMap) -> Self {
        Self { context: TraceContext::of(headers), span: None }
    }

    /// What the only event of the request gets of it. Its message is told to [`RequestTrace::begins`].
    pub fn event(&self) -> EventTrace {
        EventTrace { context: self.context, has_request: self.span.is_some() }
    }

    /// What each event gets, if there are several: its spans hang on the request where a caller has named a trace.
    pub fn shared(&self) -> EventTrace {
        let own = |context: TraceContext| match &self.span {
            Some(span) => TraceContext { span: span.id, ..context },
            None => context,
        };
        EventTrace { context: self.context.map(own), has_request: false }
    }

    /// What came of the only event of the request.
    pub fn sent(&self, receipt: &SendReceipt) {
        match receipt {
            SendReceipt::New { message, .. } => self.begins(*message),
            SendReceipt::Repeated { message } => self.concerns(*message),
        }
    }

    /// The request has accepted this message and no other.
    pub fn begins(&self, message: MessageId) {
        self.note(|subject| subject.begun = Some(message));
    }

    /// The request has to do with this message, among others or from before.
    pub fn concerns(&self, message: MessageId) {
        self.note(|subject| subject.messages.push(message));
    }

    pub fn concerns_endpoint(&self, app: AppId, endpoint: EndpointId) {
        self.note(|subject| subject.endpoint = Some((app, endpoint)));
    }

    fn note(&self, note: impl FnOnce(&mut RequestSubject)) {
        if let Some(span) = &self.span {
            note(&mut span.subject.lock());
        }
    }
}
