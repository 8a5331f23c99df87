//! What is beyond its threshold, but not for long enough, over restarts.

use super::*;
use aldaba_store::PendingAlert;

/// The moments at which an alert of this organization fired, with a restart at each of these seconds: the process is away for so many
/// seconds. The value is beyond the threshold from second 15 on.
async fn fired_with_restarts(restarts: &[(i64, i64)], is_bad: impl Fn(i64) -> bool) -> Vec<Timestamp> {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(folder.path(), "").await;
    let mut restarts = restarts.iter().copied().peekable();
    let mut second = 0;
    while second < 300 {
        if let Some((_, away)) = restarts.next_if(|(at, _)| *at <= second) {
            stage.close().await;
            stage = Stage::open(folder.path(), "").await;
            second += away;
        }
        stage.values.set(ORG, AlertRule::QueueLength, if is_bad(second) { 500.0 } else { 5.0 });
        stage.rounds(second, second + 15).await;
        second += 15;
    }
    stage.alerts(ORG).await.iter().map(|alert| alert.fired_at).collect()
}

#[tokio::test]
async fn a_restart_neither_delays_nor_hastens_an_alert() {
    let from_15 = |second| second >= 15;
    assert_eq!(fired_with_restarts(&[], from_15).await, [at(75)]);
    for restarts in [&[(30, 0)][..], &[(45, 15)], &[(30, 0), (45, 0), (60, 0), (75, 0)], &[(60, 15), (90, 0)]]
    {
        assert_eq!(fired_with_restarts(restarts, from_15).await, [at(75)], "{restarts:?}");
    }
    // It fires with the first look after the restart, where its time has passed meanwhile.
    assert_eq!(fired_with_restarts(&[(60, 60)], from_15).await, [at(120)]);
}

#[tokio::test]
async fn after_a_long_stop_the_time_of_an_alert_begins_anew() {
    let fired = fired_with_restarts(&[(60, 300)], |second| second >= 15).await;
    assert_eq!(fired, [], "nobody knows what was between");
}

#[tokio::test]
async fn a_value_that_is_good_after_a_restart_ends_what_was_pending() {
    let with_a_dip = |second| second >= 15 && second != 45;
    assert_eq!(fired_with_restarts(&[(45, 0), (60, 0)], with_a_dip).await, [at(120)]);
}

#[tokio::test]
async fn what_was_pending_under_another_threshold_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(folder.path(), "").await;
    stage.values.set(ORG, AlertRule::QueueLength, 500.0);
    stage.values.set(ORG, AlertRule::RetryRate, 0.5);
    stage.values.set(ORG, AlertRule::FailedEndpoints, 50.0);
    stage.rounds(0, 60).await;
    stage.close().await;
    let rules = "queue-length > 400; retry-rate off; failed-endpoints > 10";
    let mut stage = Stage::open(folder.path(), rules).await;
    stage.values.set(ORG, AlertRule::QueueLength, 500.0);
    stage.values.set(ORG, AlertRule::FailedEndpoints, 50.0);
    stage.rounds(60, 150).await;
    let fired: Vec<_> = stage.alerts(ORG).await.iter().map(|alert| (alert.rule, alert.fired_at)).collect();
    assert_eq!(fired, [(AlertRule::FailedEndpoints, at(60)), (AlertRule::QueueLength, at(120))]);
    assert_eq!(stage.store.pending_alerts().await.unwrap(), [], "what fires or is off is pending no more");
}

#[tokio::test]
async fn what_is_pending_is_written_once_and_not_in_each_round() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(folder.path(), "").await;
    stage.rounds(0, 60).await;
    assert_eq!(stage.store.setting(PendingAlert::JUDGED_SETTING).await.unwrap(), None, "nothing is pending");
    stage.values.set(ORG, AlertRule::QueueLength, 500.0);
    stage.rounds(60, 105).await;
    let [pending] = stage.store.pending_alerts().await.unwrap()[..] else { panic!("one is pending") };
    assert_eq!((pending.org, pending.rule, pending.since), (ORG, AlertRule::QueueLength, at(60)));
    // A round that would write it again would bring it back.
    let over = vec![(ORG, AlertRule::QueueLength)];
    let gone = Change::WritePendingAlerts { pending: Vec::new(), over, judged_at: at(90) };
    stage.alerting.change(gone).await.unwrap();
    stage.rounds(105, 120).await;
    assert_eq!(stage.store.pending_alerts().await.unwrap(), []);
    let judged = stage.store.setting(PendingAlert::JUDGED_SETTING).await.unwrap().unwrap();
    assert_eq!(judged, at(105).millis().to_be_bytes(), "each round says that it was judged");
}
