use super::*;
use crate::SystemClock;
use crate::entropy::SystemEntropy;
use aldaba_delivery::Timestamp;
use collector::CollectorUrl;
use context::TRACEPARENT as HEADER;
use http::{HeaderMap, HeaderValue};
use queue::MAX_WAITING_SPANS;

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn tracer(share: f64, pass_on: bool, exports: bool) -> Tracer {
    let url = CollectorUrl::parse("http://127.0.0.1:1").expect("a URL");
    let collector = exports.then(|| Collector::new(url, "a", "", Vec::new()).expect("a collector"));
    let options = TraceOptions { collector, sample: SampleRate::new(share).expect("a share"), pass_on };
    let (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>) =
        (Arc::new(SystemClock::new()), Arc::new(SystemEntropy::new()));
    Tracer::start(options, &clock, &entropy).0
}

fn message() -> MessageId {
    MessageId::new(Timestamp::from_millis(1_800_000_000_000), (&SystemEntropy::new() as &dyn Entropy).bytes())
}

fn headers(traceparent: &str) -> HeaderMap {
    HeaderMap::from_iter([(HEADER, HeaderValue::try_from(traceparent).expect("a value"))])
}

/// All spans of a message with one attempt.
fn spans(tracer: &Tracer, headers: &HeaderMap, message: MessageId) -> Vec<Span> {
    let request = tracer.request(TraceContext::of(headers));
    tracer.joins(message, &request.event());
    tracer.committed(tracer.commit_begins(), message, &request.event());
    request.begins(message);
    tracer.answered(&request, "POST", "/a", 202);
    if let Some(attempt) = tracer.attempt(message, false) {
        tracer.attempted(&attempt, message, (Duration::ZERO, Duration::ZERO), |_| {});
    }
    made(tracer)
}

/// The spans that were made since this was asked last.
fn made(tracer: &Tracer) -> Vec<Span> {
    let Some(queue) = &tracer.0.queue else { return Vec::new() };
    let spans = queue.oldest();
    queue.take(spans.len(), true);
    spans
}

#[test]
fn a_request_with_many_messages_is_one_span_that_is_linked_with_each_that_is_sampled() {
    let tracer = tracer(0.5, false, true);
    let messages: Vec<_> = (0..20).map(|_| message()).collect();
    let request = tracer.request(None);
    for message in &messages {
        tracer.committed(tracer.commit_begins(), *message, &request.shared());
        request.concerns(*message);
    }
    tracer.answered(&request, "POST", "/app/{app_id}/msg/batch", 202);
    let mut spans = made(&tracer);
    let span = spans.pop().expect("the last one is the request");
    assert_eq!((&*span.name, span.parent), ("POST /app/{app_id}/msg/batch", None));
    assert!((1..20).contains(&spans.len()), "{} of 20", spans.len());
    let commits: Vec<_> = spans.iter().map(|commit| (commit.trace, commit.id)).collect();
    assert_eq!(span.links, commits);
}

#[test]
fn the_messages_of_a_request_hang_on_it_where_its_caller_names_a_trace() {
    let tracer = tracer(0.0, false, true);
    let (message, request) = (message(), tracer.request(TraceContext::of(&headers(CALLER))));
    tracer.joins(message, &request.shared());
    tracer.committed(tracer.commit_begins(), message, &request.shared());
    request.concerns(message);
    tracer.answered(&request, "POST", "/a", 500);
    let [commit, request] = &made(&tracer)[..] else { panic!("two spans") };
    assert_eq!((commit.parent, commit.trace), (Some(request.id), request.trace));
    assert!(request.failed && request.parent.is_some());
}

#[test]
fn a_request_without_a_message_is_sampled_by_the_share_or_by_its_caller() {
    let spans = |share, headers: &HeaderMap| {
        let tracer = tracer(share, false, true);
        let request = tracer.request(TraceContext::of(headers));
        tracer.answered(&request, "PATCH", "/a", 200);
        made(&tracer).len()
    };
    let (none, unsampled) = (HeaderMap::new(), headers(&CALLER.replace("-01", "-00")));
    assert_eq!([spans(0.0, &none), spans(1.0, &none)], [0, 1]);
    assert_eq!([spans(0.0, &headers(CALLER)), spans(1.0, &unsampled)], [1, 0]);
}

#[test]
fn a_message_has_one_trace_from_request_to_attempt_without_anything_stored() {
    let tracer = tracer(1.0, false, true);
    let message = message();
    let [commit, request, attempt] = &spans(&tracer, &HeaderMap::new(), message)[..] else {
        panic!("three spans")
    };
    assert!(commit.trace == request.trace && commit.trace == attempt.trace);
    assert_eq!((request.parent, commit.parent, attempt.parent), (None, Some(request.id), Some(request.id)));
    assert!(commit.id != attempt.id && commit.id != request.id);
    // As after a restart.
    let later = self::tracer(1.0, true, false).attempt(message, false).expect("it is traced");
    assert_eq!((later.trace.id, later.trace.root), (request.trace, request.id));
}

#[test]
fn a_message_joins_the_trace_of_its_sender_which_decides_about_sampling() {
    let nothing = tracer(0.0, false, true);
    let [commit, request, attempt] = &spans(&nothing, &headers(CALLER), message())[..] else {
        panic!("three spans")
    };
    for span in [commit, request, attempt] {
        assert_eq!(span.trace.0[..2], [0x4b, 0xf9]);
    }
    assert_eq!(request.parent.expect("the sender's span").0[..2], [0x00, 0xf0]);
    let everything = tracer(1.0, false, true);
    assert_eq!(spans(&everything, &headers(&CALLER.replace("-01", "-00")), message()).len(), 0);
    assert_eq!(spans(&everything, &headers("nonsense"), message()).len(), 3);
}

#[test]
fn an_unsampled_message_makes_no_spans_and_tells_its_receiver_nothing_unless_asked() {
    let silent = tracer(0.0, false, true);
    assert!(spans(&silent, &HeaderMap::new(), message()).is_empty());
    assert!(silent.attempt(message(), false).is_none());
    let telling = tracer(0.0, true, true);
    assert!(spans(&telling, &HeaderMap::new(), message()).is_empty());
    let header = telling.attempt(message(), false).expect("it is told").header.expect("a header");
    assert!(header.as_bytes().ends_with(b"-00"), "{header:?}");
}

#[test]
fn a_header_names_the_attempt_in_the_trace_of_the_sender() {
    let tracer = tracer(0.0, true, false);
    let (message, request) = (message(), tracer.request(TraceContext::of(&headers(CALLER))));
    tracer.joins(message, &request.event());
    let header = || tracer.attempt(message, false).expect("it is told").header.expect("a header");
    let (first, second) = (header(), header());
    for header in [&first, &second] {
        assert_eq!(header.as_bytes()[..36], CALLER.as_bytes()[..36]);
        assert!(header.as_bytes().ends_with(b"-01"));
    }
    assert_ne!(first, second, "each attempt is a span of its own");
}

#[test]
fn spans_beyond_the_limit_are_dropped_and_counted() {
    let tracer = tracer(1.0, false, true);
    for _ in 0..MAX_WAITING_SPANS + 7 {
        let message = message();
        let attempt = tracer.attempt(message, false).expect("it is traced");
        tracer.attempted(&attempt, message, (Duration::ZERO, Duration::ZERO), |_| {});
    }
    assert_eq!(tracer.counts(), TraceCounts { exported: 0, dropped: 7 });
}

#[test]
fn without_a_collector_and_headers_nothing_is_there_but_for_a_profile_that_asks() {
    let off = tracer(1.0, false, false);
    assert!(!off.exports());
    assert!(spans(&off, &headers(CALLER), message()).is_empty());
    assert!(off.attempt(message(), false).is_none() && off.commit_begins().is_none());
    let (message, request) = (message(), off.request(TraceContext::of(&headers(CALLER))));
    off.joins(message, &request.event());
    let told = off.attempt(message, true).and_then(|attempt| attempt.header).expect("the profile asks");
    assert_eq!(told.as_bytes()[..36], CALLER.as_bytes()[..36]);
}
