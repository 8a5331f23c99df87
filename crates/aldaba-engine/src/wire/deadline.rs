//! Whose fault a missed deadline is. Every step of a request asks here.

use super::instant_after;
use super::progress::ExchangeStage;
use aldaba_delivery::{AttemptFailure, FailureKind};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How late the timer of a deadline may fire. If it fires later, this process was stalled and the receiver
/// is not at fault.
const MAX_TIMER_DELAY: Duration = Duration::from_secs(1);

/// Runs a step of connecting until its deadline.
pub(super) async fn with_deadline<T>(
    deadline: Instant,
    step: &'static str,
    work: impl Future<Output = Result<T, AttemptFailure>>,
) -> Result<T, AttemptFailure> {
    timeout_at(deadline, work).await.unwrap_or_else(|_| Err(not_connected(deadline, step)))
}

/// The failure of a request that had no connection at its deadline.
pub(super) fn not_connected(deadline: Instant, step: &'static str) -> AttemptFailure {
    let kind = if was_stalled(deadline) { FailureKind::Unsent } else { FailureKind::ConnectTimeout };
    AttemptFailure { kind, detail: format!("{step} took too long").into() }
}

/// The failure of a request that had a connection, but no response at its deadline. What may have left is never taken for
/// unsent.
pub(super) fn not_answered(deadline: Instant, stage: ExchangeStage) -> AttemptFailure {
    let detail = stage.timeout_detail();
    if stage == ExchangeStage::Queued {
        AttemptFailure { kind: FailureKind::Unsent, detail: detail.into() }
    } else if was_stalled(deadline) {
        let detail = format!("this server did not run for a while, and {detail}");
        AttemptFailure { kind: FailureKind::Internal, detail: detail.into() }
    } else {
        AttemptFailure { kind: FailureKind::Timeout, detail: detail.into() }
    }
}

/// Whether this process did not run when the deadline passed.
pub(super) fn was_stalled(deadline: Instant) -> bool {
    instant_after(Duration::ZERO).saturating_duration_since(deadline) > MAX_TIMER_DELAY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_fires_far_too_late_is_not_counted_against_the_host() {
        let deadline = instant_after(Duration::from_secs(5));
        let failures = || {
            [ExchangeStage::Queued, ExchangeStage::Sending, ExchangeStage::Answer, ExchangeStage::Body]
                .map(|stage| not_answered(deadline, stage).kind)
        };
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(not_connected(deadline, "connecting").kind, FailureKind::ConnectTimeout);
        let timeout = FailureKind::Timeout;
        assert_eq!(failures(), [FailureKind::Unsent, timeout, timeout, timeout]);
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(not_connected(deadline, "connecting").kind, FailureKind::Unsent);
        let own = FailureKind::Internal;
        assert_eq!(failures(), [FailureKind::Unsent, own, own, own], "it may have left, so it is recorded");
    }
}
