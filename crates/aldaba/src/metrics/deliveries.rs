//! What becomes of messages, attempts and deliveries.

use super::RuleValues;
use super::exposition::{Exposition, Histogram, seconds};
use aldaba_delivery::Reason;
use aldaba_delivery::alert::{AlertRule, DELIVERY_WINDOW};
use aldaba_engine::{Engine, Scope, Statistics};
use aldaba_store::{CountKind, CountedTimes};

pub(super) fn write(out: &mut Exposition, engine: &Engine, values: &RuleValues) {
    let statistics = engine.statistics();
    counters(out, statistics);
    attempt_window(out, values);
    delivery_window(out, statistics, values);
    queue(out, statistics, values);
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

fn attempt_window(out: &mut Exposition, values: &RuleValues) {
    values.gauge(
        out,
        AlertRule::DeliveryFailureRate,
        "The share of attempts that failed, over the last 5 minutes. NaN: there was none.",
    );
    values.gauge(
        out,
        AlertRule::AttemptDurationP99,
        "99 of 100 attempts took this long or less, over the last 5 minutes; at most 30. NaN: there was none.",
    );
}

fn delivery_window(out: &mut Exposition, statistics: &Statistics, values: &RuleValues) {
    values.gauge(
        out,
        AlertRule::DeliverySuccessRate,
        "The share of ended deliveries that succeeded, after retries, over the last hour. NaN: none has ended.",
    );
    values.gauge(
        out,
        AlertRule::DeliveryLatencyP95,
        "95 of 100 successful deliveries took this many seconds or less from their event on, retries included, over the last \
         hour. NaN: there was none.",
    );
    values.gauge(
        out,
        AlertRule::RetryRate,
        "The share of ended deliveries that needed a retry, over the last hour. NaN: none has ended.",
    );
    values.gauge(
        out,
        AlertRule::AverageRetries,
        "Retries of an ended delivery on average, over the last hour. NaN: none has ended.",
    );
    out.gauge(
        "webhook_duplicate_rate",
        "The share of the events of sources that are duplicates, over the last hour. NaN: there was none.",
        or_nan(statistics.window(Scope::Server, DELIVERY_WINDOW).duplicate_rate()),
    );
}

/// The rules about the queue and the dead letter compare a sum of what is here.
fn queue(out: &mut Exposition, statistics: &Statistics, values: &RuleValues) {
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
    values.gauge(
        out,
        AlertRule::FailedEndpoints,
        "Endpoints that are given up, as failed or gone. Some seconds old. NaN: not known yet.",
    );
    values.gauge(
        out,
        AlertRule::OldestWaiting,
        "For how long the oldest waiting delivery could have been sent, of endpoints that are neither given up, blocked nor off. \
         0: none waits. Some seconds old. NaN: not known yet.",
    );
    let dead_letter = statistics.dead_letter();
    let dead = |reason| {
        let found = dead_letter.iter().find(|(counted, _)| *counted == reason);
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
