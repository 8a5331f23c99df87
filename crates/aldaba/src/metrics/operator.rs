//! What an operator needs to see of a server.

use super::exposition::{Exposition, Histogram, seconds};
use super::{Metrics, RuleValues};
use crate::questions::ProcessQuestions;
use crate::server::ListenerTls;
use aldaba_delivery::Timestamp;
use aldaba_delivery::alert::AlertRule;
use aldaba_engine::{Engine, FiringCount};
use aldaba_store::{COMMIT_MICROS, COMMIT_OPERATIONS};

pub(super) fn write(out: &mut Exposition, engine: &Engine, metrics: &Metrics, values: &RuleValues) {
    scheduler(out, engine);
    store(out, engine, values);
    health(out, engine, values);
    alerts(out, engine);
    out.counters(
        "aldaba_requests_refused_total",
        "Requests that were answered with an error, by its code.",
        "code",
        metrics.refusals.counts().map(|(code, count)| (code, count as f64)),
    );
    certificates(out, engine);
    let listener = metrics.tls.as_ref().map(ListenerTls::state);
    out.gauge(
        "aldaba_tls_certificate_outdated",
        "1 while the files of `tls_certificate` and `tls_key` hold something that cannot be used, so that the former certificate is still \
         in use; else 0.",
        f64::from(u8::from(listener.is_some_and(|state| state.is_outdated))),
    );
    out.info(
        "aldaba_build_info",
        "The version of the server, and its commit where the build knows it. Always 1.",
        &[("version", env!("CARGO_PKG_VERSION")), ("commit", env!("ALDABA_COMMIT"))],
    );
}

fn scheduler(out: &mut Exposition, engine: &Engine) {
    let load = engine.statistics().scheduler();
    out.gauges(
        "aldaba_lanes",
        "Endpoints with work, by state: awake, with their configuration in memory; idle, only waiting. Some seconds old.",
        "state",
        [("awake", load.awake_lanes as f64), ("idle", load.idle_lanes as f64)],
    );
    out.gauge(
        "aldaba_deliveries_in_flight",
        "Deliveries on the wire, or with a result that is not written yet. Some seconds old.",
        load.in_flight as f64,
    );
    out.gauge(
        "aldaba_held_hosts",
        "Hosts that are held because they look down, counted for each organization and scope. Some seconds old.",
        load.held_gates as f64,
    );
}

fn store(out: &mut Exposition, engine: &Engine, values: &RuleValues) {
    let commits = engine.statistics().commits();
    let bounds: Vec<_> = COMMIT_MICROS.iter().map(|micros| *micros as f64 / 1e6).collect();
    out.histogram(
        "aldaba_store_commit_seconds",
        "How long a commit took, until it was on disk.",
        &Histogram { bounds: &bounds, counts: &commits.by_time, sum: seconds(commits.time) },
    );
    let bounds: Vec<_> = COMMIT_OPERATIONS.iter().map(|operations| *operations as f64).collect();
    out.histogram(
        "aldaba_store_commit_operations",
        "How many operations a commit had: messages for an endpoint, results and changes.",
        &Histogram { bounds: &bounds, counts: &commits.by_operations, sum: commits.operations as f64 },
    );
    values.gauge(
        out,
        AlertRule::NotAccepting,
        "1 while messages can be accepted; 0: the disk has too little room, or nothing can be written. Some seconds old. NaN: not \
         known yet.",
    );
    let log_bytes = ProcessQuestions(engine).disk().log_bytes;
    out.gauge(
        "aldaba_store_wal_bytes",
        "The size of the write-ahead log.",
        log_bytes.map_or(f64::NAN, |bytes| bytes as f64),
    );
    values.gauge(
        out,
        AlertRule::DiskSpace,
        "Free bytes on the disk of the data folder. NaN: the disk does not say.",
    );
}

fn health(out: &mut Exposition, engine: &Engine, values: &RuleValues) {
    out.gauges(
        "aldaba_background_tasks",
        "Background tasks: running, and those that panicked, were restarted and have not run well for long enough since then.",
        "state",
        [
            ("running", engine.background().running() as f64),
            ("restarting", engine.restarted_tasks().len() as f64),
        ],
    );
    values.gauge(
        out,
        AlertRule::ClockNotTrusted,
        "1 while the machine's clock is trusted; 0: nothing is removed and nothing ends by time.",
    );
}

/// The rule compares how long it is until the first of them.
fn certificates(out: &mut Exposition, engine: &Engine) {
    let all = engine.certificates().all();
    out.gauges(
        "aldaba_certificate_expiry_timestamp_seconds",
        "When the first certificate of each kind expires, in Unix time: ca_file, issuers that are trusted; client, certificates that \
         endpoints show to their receivers; listener, the one of the API. Client certificates some seconds old. NaN: there is none.",
        "kind",
        all.into_iter().map(|(kind, first)| (kind.name(), first.map_or(f64::NAN, unix_seconds))),
    );
    out.gauge(
        "aldaba_sending_paused",
        "1 while nothing is sent because the data was restored from a backup and the operator has not resumed yet.",
        f64::from(u8::from(engine.pause().is_some())),
    );
}

fn alerts(out: &mut Exposition, engine: &Engine) {
    out.table(
        "aldaba_alerts_firing",
        "How often each alert rule fires: once for the server, and once for each organization. Those of endpoints do not count.",
        ["rule", "severity", "scope"],
        engine.firing_alerts().into_iter().map(|firing| {
            let FiringCount { rule, scope, count } = firing;
            ([rule.name(), rule.severity().name(), scope.name()], count as f64)
        }),
    );
}

fn unix_seconds(at: Timestamp) -> f64 {
    at.millis() as f64 / 1000.0
}
