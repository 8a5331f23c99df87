//! What becomes of messages, attempts and deliveries.

use super::exposition::{Exposition, Histogram, seconds};
use aldaba_delivery::Reason;
use aldaba_delivery::alert::{ATTEMPT_WINDOW, DELIVERY_WINDOW};
use aldaba_engine::{Engine, Scope, Statistics};
use aldaba_store::{CountKind, CountedTimes};

pub(super) fn write(out: &mut Exposition, engine: &Engine) {
    let statistics = engine.statistics();
    counters(out, statistics);
    attempt_window(out, statistics);
    delivery_window(out, statistics);
    queue(out, statistics, engine);
}

fn counters(out: &mut Exposition, statistics: &Statistics) {
    let counts = statistics.since_start();
    let get = |kind| counts.get(kind) as f64;
    out.counters(
        "webhook_delivery_attempts_total",
        "Attempts by result: success; retry, a failure with another attempt planned; failed, a failure without one.",
        "status",
        [
            ("success", get(CountKind::Success)),
            ("retry", get(CountKind::Retry)),
            ("failed", get(CountKind::Failed)),
        ],
    );
    histogram(
        out,
        "webhook_delivery_duration_seconds",
        "How long an attempt took, from the start of the request to the end of the answer.",
        &counts.attempt_times(),
    );
    out.counter(
        "webhook_delivery_retries_total",
        "Attempts that were not the first of their delivery.",
        get(CountKind::Retries),
    );
    histogram(
        out,
        "webhook_delivery_latency_seconds",
        "The time from an event to its successful delivery, retries included.",
        &counts.latencies(),
    );
    out.counter("webhook_messages_accepted_total", "Messages that were accepted.", get(CountKind::Accepted));
    out.counter(
        "webhook_deliveries_created_total",
        "Deliveries that began to wait, replays included.",
        get(CountKind::Deliveries),
    );
    out.counter(
        "webhook_deliveries_delivered_total",
        "Deliveries that succeeded.",
        get(CountKind::Delivered),
    );
    out.counters(
        "webhook_deliveries_dead_total",
        "Deliveries that ended without success, by reason.",
        "reason",
        Reason::ALL.map(|reason| (reason.name(), counts.dead(reason) as f64)),
    );
    out.counters(
        "webhook_inbound_events_total",
        "Events that sources have received: new ones, and duplicates of earlier ones.",
        "result",
        [("new", get(CountKind::InboundReceived)), ("duplicate", get(CountKind::InboundDuplicates))],
    );
}

/// NaN while nothing happened that it could be of.
fn or_nan(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

fn attempt_window(out: &mut Exposition, statistics: &Statistics) {
    let window = statistics.window(Scope::Server, ATTEMPT_WINDOW);
    out.gauge(
        "webhook_delivery_failure_rate",
        "The share of attempts that failed, over the last 5 minutes. NaN: there was none.",
        or_nan(window.failure_rate()),
    );
    out.gauge(
        "webhook_delivery_duration_seconds_p99",
        "99 of 100 attempts took this long or less, over the last 5 minutes; at most 30. NaN: there was none.",
        or_nan(window.duration_p99().map(seconds)),
    );
}

fn delivery_window(out: &mut Exposition, statistics: &Statistics) {
    let window = statistics.window(Scope::Server, DELIVERY_WINDOW);
    out.gauge(
        "webhook_delivery_success_rate",
        "The share of ended deliveries that succeeded, after retries, over the last hour. NaN: none has ended.",
        or_nan(window.success_rate()),
    );
    out.gauge(
        "webhook_delivery_p95_latency",
        "95 of 100 successful deliveries took this many seconds or less from their event on, retries included, over the last \
         hour. NaN: there was none.",
        or_nan(window.latency_p95().map(seconds)),
    );
    out.gauge(
        "webhook_retry_rate",
        "The share of ended deliveries that needed a retry, over the last hour. NaN: none has ended.",
        or_nan(window.retry_rate()),
    );
    out.gauge(
        "webhook_avg_retries_per_delivery",
        "Retries of an ended delivery on average, over the last hour. NaN: none has ended.",
        or_nan(window.average_retries()),
    );
    out.gauge(
        "webhook_duplicate_rate",
        "The share of the events of sources that are duplicates, over the last hour. NaN: there was none.",
        or_nan(window.duplicate_rate()),
    );
}

fn queue(out: &mut Exposition, statistics: &Statistics, engine: &Engine) {
    out.gauge(
        "webhook_queue_length",
        "Deliveries that wait, for their first attempt or for a retry; deferred ones too.",
        statistics.waiting(Scope::Server) as f64,
    );
    out.gauge(
        "webhook_queue_deferred",
        "Deliveries that wait but are not to be sent now: for a later time that their sender has named, or for an endpoint that is \
         given up, blocked or off. Some seconds old. NaN: not known yet.",
        or_nan(statistics.deferred(Scope::Server).map(|deliveries| deliveries as f64)),
    );
    out.gauge(
        "webhook_failed_count",
        "Endpoints that are given up, as failed or gone. Some seconds old. NaN: not known yet.",
        or_nan(statistics.failed_endpoints(Scope::Server).map(|endpoints| endpoints as f64)),
    );
    let view = statistics.view();
    out.gauge(
        "webhook_oldest_waiting_seconds",
        "For how long the oldest waiting delivery could have been sent, of endpoints that are neither given up, blocked nor off. \
         0: none waits. Some seconds old. NaN: not known yet.",
        or_nan(view.oldest_wait(engine.clock().now()).map(seconds)),
    );
    let dead = |reason| {
        let found = view.dead_letter.iter().find(|(counted, _)| *counted == reason);
        or_nan(found.map(|(_, count)| *count as f64))
    };
    out.gauges(
        "webhook_dead_letter_size",
        "Deliveries in the dead letter, by reason. Some seconds old. NaN: not known yet.",
        "reason",
        Reason::ALL.map(|reason| (reason.name(), dead(reason))),
    );
}

fn histogram(out: &mut Exposition, name: &str, help: &str, times: &CountedTimes<'_>) {
    let bounds: Vec<_> = times.bounds.iter().map(|millis| *millis as f64 / 1000.0).collect();
    out.histogram(
        name,
        help,
        &Histogram { bounds: &bounds, counts: times.counts, sum: seconds(times.total) },
    );
}
