//! Spans as the body of an OTLP request: `ExportTraceServiceRequest` in protobuf, of which these few messages are needed.
//! `tests/server/monitoring/traces.rs` of the server decodes them with the official schema.

use super::span::{AttributeValue, Span};
use std::time::Duration;

/// The name of what makes the spans.
const SCOPE: &str = "aldaba";
/// `STATUS_CODE_ERROR`.
const ERROR: u64 = 2;

/// Wire types of protobuf.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

/// A moment on both clocks, to tell the time of day of spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockPair {
    /// Since the epoch.
    pub(super) wall: Duration,
    pub(super) monotonic: Duration,
}

impl ClockPair {
    fn nanos(self, at: Duration) -> u64 {
        let since_epoch = (self.wall + at).saturating_sub(self.monotonic);
        u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)
    }
}

pub(super) fn request(service: &str, spans: &[Span], clocks: ClockPair) -> Vec<u8> {
    let mut resource = Vec::new();
    for (key, value) in [("service.name", service), ("service.version", env!("CARGO_PKG_VERSION"))] {
        message(&mut resource, 1, &attribute(key, &AttributeValue::Text(value.to_owned().into())));
    }
    let mut scope = Vec::new();
    bytes(&mut scope, 1, SCOPE.as_bytes());
    bytes(&mut scope, 2, env!("CARGO_PKG_VERSION").as_bytes());
    let mut scope_spans = Vec::with_capacity(spans.len() * 320);
    message(&mut scope_spans, 1, &scope);
    for made in spans {
        message(&mut scope_spans, 2, &span(made, clocks));
    }
    let mut resource_spans = Vec::with_capacity(scope_spans.len() + 128);
    message(&mut resource_spans, 1, &resource);
    message(&mut resource_spans, 2, &scope_spans);
    let mut request = Vec::with_capacity(resource_spans.len() + 8);
    message(&mut request, 1, &resource_spans);
    request
}

fn span(span: &Span, clocks: ClockPair) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(320);
    bytes(&mut encoded, 1, &span.trace.0);
    bytes(&mut encoded, 2, &span.id.0);
    if let Some(parent) = span.parent {
        bytes(&mut encoded, 4, &parent.0);
    }
    bytes(&mut encoded, 5, span.name.as_bytes());
    number(&mut encoded, 6, span.kind as u64);
    fixed(&mut encoded, 7, clocks.nanos(span.from));
    fixed(&mut encoded, 8, clocks.nanos(span.to));
    for (key, value) in &span.attributes {
        message(&mut encoded, 9, &attribute(key, value));
    }
    for (trace, id) in &span.links {
        let mut link = Vec::new();
        bytes(&mut link, 1, &trace.0);
        bytes(&mut link, 2, &id.0);
        message(&mut encoded, 13, &link);
    }
    if span.failed {
        let mut status = Vec::new();
        number(&mut status, 3, ERROR);
        message(&mut encoded, 15, &status);
    }
    encoded
}

/// A `KeyValue` with its `AnyValue`.
fn attribute(key: &str, value: &AttributeValue) -> Vec<u8> {
    let (mut any, mut encoded) = (Vec::new(), Vec::new());
    match value {
        AttributeValue::Text(text) => bytes(&mut any, 1, text.as_bytes()),
        // Negative ones as their two's complement, as protobuf has it.
        AttributeValue::Number(value) => number(&mut any, 3, value.cast_unsigned()),
    }
    bytes(&mut encoded, 1, key.as_bytes());
    message(&mut encoded, 2, &any);
    encoded
}

fn message(into: &mut Vec<u8>, field: u64, encoded: &[u8]) {
    bytes(into, field, encoded);
}

fn bytes(into: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(into, field << 3 | BYTES);
    varint(into, value.len() as u64);
    into.extend_from_slice(value);
}

fn number(into: &mut Vec<u8>, field: u64, value: u64) {
    varint(into, field << 3 | VARINT);
    varint(into, value);
}

fn fixed(into: &mut Vec<u8>, field: u64, value: u64) {
    varint(into, field << 3 | FIXED64);
    into.extend_from_slice(&value.to_le_bytes());
}

/// Seven bits a byte, the lowest first.
fn varint(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}
