//! Whether the server is ready: a check for each thing that it needs, from what is in memory. Only whether the store can be
//! written has to be tried, once a second at most, however many ask.

use crate::api::Api;
use crate::api::request::json;
use crate::questions::ProcessQuestions;
use crate::server::CertificateState;
use aldaba_api::{CheckState, ReadinessCheckView, ReadinessView};
use aldaba_engine::{Engine, PauseRecord, SchedulingProgress};
use aldaba_store::Error as StoreError;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The result of a write counts for so long.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// How long a write, and an answer of the dispatcher, may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

type ReadinessCheck = ReadinessCheckView<&'static str, CheckState, Option<String>, Option<&'static str>>;

const fn ok(name: &'static str) -> ReadinessCheck {
    ReadinessCheck { name, state: CheckState::Fine, detail: None, action: None }
}

fn warning(name: &'static str, detail: impl Into<String>, action: &'static str) -> ReadinessCheck {
    ReadinessCheck { name, state: CheckState::Warning, detail: Some(detail.into()), action: Some(action) }
}

fn failing(name: &'static str, detail: impl Into<String>, action: &'static str) -> ReadinessCheck {
    ReadinessCheck { state: CheckState::Failing, ..warning(name, detail, action) }
}

/// Tries to write. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct StoreProbe(Arc<ProbeState>);

#[derive(Debug)]
struct ProbeState {
    /// By the monotonic clock: when the write that runs was begun.
    running: Mutex<Option<Duration>>,
    /// When the last one ended, and how.
    last: watch::Sender<Option<(Duration, Result<(), StoreError>)>>,
}

/// What a probe has found.
#[derive(Debug, PartialEq, Eq)]
enum Probed {
    Written,
    Refused(StoreError),
    /// It has not ended for so long.
    Hangs(Duration),
}

impl StoreProbe {
    pub(crate) fn new() -> Self {
        let last = watch::Sender::new(None);
        Self(Arc::new(ProbeState { running: Mutex::new(None), last }))
    }

    /// Whether a write takes longer than this.
    pub(crate) async fn hangs(&self, engine: &Engine, limit: Duration) -> bool {
        matches!(self.result(engine, limit).await, Probed::Hangs(_))
    }

    /// The result of a write that began within the last second or so, if there is one in time.
    async fn result(&self, engine: &Engine, timeout: Duration) -> Probed {
        let mut last = self.0.last.subscribe();
        let now = engine.clock().monotonic();
        let since = match self.begin(engine, now) {
            None => return self.last(),
            Some(since) => since,
        };
        let waited = now.saturating_sub(since);
        let wait = timeout.saturating_sub(waited);
        match tokio::time::timeout(wait, last.changed()).await {
            Ok(_) => self.last(),
            Err(_) => Probed::Hangs(waited.max(timeout)),
        }
    }

    /// Begins a write unless one runs or has just ended. Returns since when one runs. `None`: the last one still counts.
    fn begin(&self, engine: &Engine, now: Duration) -> Option<Duration> {
        let mut running = self.0.running.lock();
        if let Some(since) = *running {
            return Some(since);
        }
        let counts = |(at, _): &(Duration, _)| now.saturating_sub(*at) < PROBE_INTERVAL;
        if self.0.last.borrow().as_ref().is_some_and(counts) {
            return None;
        }
        *running = Some(now);
        let (probe, engine) = (self.clone(), engine.clone());
        tokio::spawn(async move {
            let result = engine.probe_store().await;
            let mut running = probe.0.running.lock();
            *running = None;
            probe.0.last.send_replace(Some((engine.clock().monotonic(), result)));
        });
        Some(now)
    }

    fn last(&self) -> Probed {
        match &*self.0.last.borrow() {
            Some((_, Err(error))) => Probed::Refused(error.clone()),
            _ => Probed::Written,
        }
    }
}

pub(super) async fn check(State(api): State<Api>) -> Response {
    let progress = tokio::time::timeout(PROBE_TIMEOUT, api.engine.progress());
    let (probed, progress) = tokio::join!(api.store_probe.result(&api.engine, PROBE_TIMEOUT), progress);
    let checks = vec![
        store(&probed),
        space(ProcessQuestions(&api.engine).disk().is_low),
        delivering(progress.as_ref().ok().copied().flatten(), api.engine.pause()),
        queue(progress.ok().flatten(), api.limits.queue_age),
        background(&api),
        clock(&api),
    ];
    let checks: Vec<_> = checks.into_iter().chain(certificate(&api)).collect();
    let failing: Vec<_> = checks.iter().filter(|check| check.state == CheckState::Failing).collect();
    let (code, status) = match failing.is_empty() {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not_ready"),
    };
    for check in failing {
        tracing::debug!(check = check.name, detail = check.detail, "the server is not ready");
    }
    json::answer(code, &ReadinessView { status, checks })
}

/// Without the errors' own texts, because anybody may ask: the log has them.
fn store(probed: &Probed) -> ReadinessCheck {
    const NAME: &str = "store";
    const CHECK_THE_DISK: &str = "Look at the log and at the disk; if it does not pass, restart the server";
    match probed {
        Probed::Written => ok(NAME),
        Probed::Hangs(since) => failing(
            NAME,
            format!("a write has not ended for {} s", since.as_secs()),
            "Look for a slow disk, and for another program that holds the database",
        ),
        Probed::Refused(StoreError::Busy) => warning(
            NAME,
            "too much waits to be written: some requests are answered 503",
            "Send less at a time, or use a faster disk",
        ),
        Probed::Refused(StoreError::Full) => {
            failing(NAME, "the disk is full", "Free some space; writing goes on by itself")
        }
        Probed::Refused(StoreError::Unavailable(_)) => failing(
            NAME,
            "the database is out of reach, or another program holds it",
            "Look for another program that holds the database; writing goes on by itself",
        ),
        Probed::Refused(StoreError::Closed) => {
            failing(NAME, "the server is stopping", "Wait for its next start")
        }
        Probed::Refused(StoreError::Timeout | StoreError::Refused(_) | StoreError::Failed(_)) => {
            failing(NAME, "nothing can be written", CHECK_THE_DISK)
        }
    }
}

fn space(is_low: bool) -> ReadinessCheck {
    const NAME: &str = "space";
    if !is_low {
        return ok(NAME);
    }
    failing(
        NAME,
        "the disk has less room than `low_space_bytes`: messages are answered 507, deliveries go on",
        "Free some space; accepting goes on by itself",
    )
}

fn delivering(progress: Option<SchedulingProgress>, pause: Option<PauseRecord>) -> ReadinessCheck {
    const NAME: &str = "delivering";
    match progress {
        // Meant by the operator, and messages are accepted: load balancers must go on to send them here.
        Some(SchedulingProgress { paused: true, .. }) if pause.is_some() => warning(
            NAME,
            "nothing is sent: the data was restored from a backup, and the operator has not resumed yet",
            "Look at what waits; then run `aldaba restore --resume` with the data folder",
        ),
        Some(SchedulingProgress { paused: false, .. }) => ok(NAME),
        Some(SchedulingProgress { paused: true, .. }) => failing(
            NAME,
            "nothing is sent: results cannot be written, or the server is stopping",
            "Look at the check `store` and at the log; sending goes on by itself",
        ),
        None => failing(
            NAME,
            "the task that delivers does not answer",
            "Look at the log; if it does not pass, restart the server",
        ),
    }
}

fn queue(progress: Option<SchedulingProgress>, limit: Duration) -> ReadinessCheck {
    const NAME: &str = "queue";
    let waits = progress.map(|progress| progress.longest_wait).unwrap_or_default();
    if waits < limit {
        return ok(NAME);
    }
    warning(
        NAME,
        format!("an endpoint with due deliveries has waited {} s for its turn", waits.as_secs()),
        "Look for slow receivers that take up `in_flight`, and raise that; and for a processor that is busy",
    )
}

fn background(api: &Api) -> ReadinessCheck {
    const NAME: &str = "background";
    let restarted: Vec<_> = api.engine.restarted_tasks().iter().map(|task| task.name).collect();
    if restarted.is_empty() {
        return ok(NAME);
    }
    warning(
        NAME,
        format!("restarted after a panic: {}", restarted.join(", ")),
        "It is a bug: the log says where. Report it",
    )
}

fn clock(api: &Api) -> ReadinessCheck {
    const NAME: &str = "clock";
    if api.engine.clock_state().is_none_or(|state| state.trusted) {
        return ok(NAME);
    }
    warning(
        NAME,
        "the machine's clock is not trusted: nothing is removed, and nothing ends by time",
        "Set the clock; or, if it is right, run `aldaba clock trust`",
    )
}

/// Without the files' names, because anybody may ask. `None`: the server has no TLS.
fn certificate(api: &Api) -> Option<ReadinessCheck> {
    const NAME: &str = "certificate";
    let CertificateState { expires_at, is_outdated } = api.metrics.tls.as_ref()?.state();
    if expires_at.is_some_and(|at| at <= api.engine.clock().now()) {
        return Some(warning(
            NAME,
            "the TLS certificate has expired: clients refuse the connection",
            "Replace the files of `tls_certificate` and `tls_key`; they are taken at once",
        ));
    }
    if is_outdated {
        return Some(warning(
            NAME,
            "the files of the TLS certificate have changed and cannot be used; the former certificate is still in use",
            "Correct the files; the log says what is wrong with them",
        ));
    }
    Some(ok(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_delivery::Timestamp;

    #[test]
    fn every_check_that_is_not_ok_says_what_is_wrong_and_what_to_do_and_no_error_text_is_shown() {
        let secret = || "secret path".to_owned();
        let paused = Some(SchedulingProgress { paused: true, longest_wait: Duration::from_secs(99) });
        let restored = Some(PauseRecord { backup_made_at: Timestamp::from_millis(0) });
        let limit = Duration::from_secs(60);
        for (check, state) in [
            (store(&Probed::Hangs(limit)), CheckState::Failing),
            (store(&Probed::Refused(StoreError::Busy)), CheckState::Warning),
            (store(&Probed::Refused(StoreError::Full)), CheckState::Failing),
            (store(&Probed::Refused(StoreError::Closed)), CheckState::Failing),
            (store(&Probed::Refused(StoreError::Failed(secret()))), CheckState::Failing),
            (store(&Probed::Refused(StoreError::Unavailable(secret()))), CheckState::Failing),
            (space(true), CheckState::Failing),
            (delivering(paused, None), CheckState::Failing),
            (delivering(paused, restored), CheckState::Warning),
            (delivering(None, None), CheckState::Failing),
            (queue(paused, limit), CheckState::Warning),
        ] {
            assert_eq!(check.state, state, "{}: {:?}", check.name, check.detail);
            assert!(check.detail.is_some_and(|detail| !detail.contains("secret")), "{}", check.name);
            assert!(check.action.is_some(), "{}", check.name);
        }
        let fine = Some(SchedulingProgress { paused: false, longest_wait: Duration::ZERO });
        for check in [store(&Probed::Written), space(false), delivering(fine, None), queue(fine, limit)] {
            assert_eq!(check.state, CheckState::Fine, "{}", check.name);
        }
    }
}
