//! The dead letter, and sending again.

use super::wait_until;
use crate::receiver::Receiver;
use crate::{ended, event, start};
use aldaba_embedded::{Application, EndpointSpec, Error, MessageId, ReplayState, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// An application with an endpoint at which three messages have died.
async fn with_dead(folder: &std::path::Path) -> (Application, Receiver, Arc<AtomicU16>, Vec<MessageId>) {
    let status = Arc::new(AtomicU16::new(500));
    let said = status.clone();
    let receiver = Receiver::judging(move |_| (said.load(Ordering::SeqCst), Duration::ZERO));
    let app = start(folder).await.application("customer").await.unwrap();
    app.add_endpoint(EndpointSpec::to(receiver.url("/")).uid("it").policy("job-status")).await.unwrap();
    let mut sent = Vec::new();
    for number in 0..3 {
        sent.push(app.send(event(number)).await.unwrap().id);
    }
    for message in &sent {
        assert!(!ended(&app, *message).await.is_delivered());
    }
    // Those of the same moment are in no order.
    sent.sort_unstable();
    (app, receiver, status, sent)
}

#[tokio::test]
async fn the_dead_letter_has_pages_and_one_can_be_sent_again_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let (app, _receiver, status, sent) = with_dead(folder.path()).await;
    let first = app.dead_letter(None, 2).await.unwrap();
    assert_eq!(first.deliveries.len(), 2);
    let second = app.dead_letter(Some(first.next.expect("there is more")), 2).await.unwrap();
    assert_eq!((second.deliveries.len(), second.next), (1, None));
    let mut all: Vec<_> =
        first.deliveries.iter().chain(&second.deliveries).map(|dead| dead.message).collect();
    all.sort_unstable();
    assert_eq!(all, sent);

    let dead = &first.deliveries[0];
    assert!(!app.resend(dead.message, dead.endpoint).await.unwrap(), "the receiver still refuses");
    assert!(!ended(&app, dead.message).await.is_delivered());
    status.store(200, Ordering::SeqCst);
    assert!(app.resend(dead.message, dead.endpoint).await.unwrap());
    assert!(ended(&app, dead.message).await.is_delivered());
    assert!(app.attempts(dead.message, 1).await.unwrap()[0].by_hand);
    assert_eq!(app.dead_letter(None, 10).await.unwrap().deliveries.len(), 2);
}

#[tokio::test]
async fn a_recovery_gives_everything_that_has_died_a_new_round() {
    let folder = tempfile::tempdir().unwrap();
    let (app, _receiver, status, sent) = with_dead(folder.path()).await;
    status.store(200, Ordering::SeqCst);
    let endpoint = app.endpoint("it").await.unwrap().unwrap().id;
    let mut recovery = app.recover(endpoint, Timestamp::from_millis(0)).await.unwrap();
    wait_until("the recovery has ended", async || {
        recovery = app.recovery(recovery.id).await.unwrap().expect("it is kept");
        recovery.state != ReplayState::Running
    })
    .await;
    assert_eq!((recovery.state, recovery.opened), (ReplayState::Finished, 3));
    for message in sent {
        let message = ended(&app, message).await;
        assert!(message.deliveries.last().is_some_and(|round| round.is_delivered()), "{message:?}");
    }
    assert_eq!(app.dead_letter(None, 10).await.unwrap().deliveries, []);
}

#[tokio::test]
async fn another_applications_deliveries_are_out_of_reach() {
    let folder = tempfile::tempdir().unwrap();
    let aldaba = start(folder.path()).await;
    let receiver = Receiver::answering(200);
    let app = aldaba.application("customer").await.unwrap();
    let endpoint = app.add_endpoint(EndpointSpec::to(receiver.url("/"))).await.unwrap();
    let sent = app.send(event(1)).await.unwrap();
    ended(&app, sent.id).await;
    let other = aldaba.application("other").await.unwrap();
    assert_eq!(other.resend(sent.id, endpoint.id).await.unwrap_err(), Error::NotFound("message"));
    assert_eq!(
        other.recover(endpoint.id, Timestamp::from_millis(0)).await.unwrap_err(),
        Error::NotFound("endpoint")
    );
}
