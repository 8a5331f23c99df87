//! Applications and endpoints.

use crate::receiver::Receiver;
use crate::{event, start};
use aldaba_embedded::{Condition, EndpointSpec, Error, WhenDisabled};
use std::time::Duration;

#[tokio::test]
async fn an_application_is_made_once_and_found_by_name_and_id() {
    let folder = tempfile::tempdir().unwrap();
    let aldaba = start(folder.path()).await;
    assert!(aldaba.find_application("customer").await.unwrap().is_none());
    let (one, two) = tokio::join!(aldaba.application("customer"), aldaba.application("customer"));
    let (mut one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(one.id(), two.id());
    assert_eq!((one.uid(), one.name()), (Some("customer"), "customer"));
    one.rename("The best customer").await.unwrap();
    one.set_throttle_rate(Some(50)).await.unwrap();
    let by_id = aldaba.application(one.id().to_string()).await.unwrap();
    assert_eq!(by_id.name(), "The best customer");
    let other = aldaba.application("other").await.unwrap();
    let all = aldaba.applications(None, 10).await.unwrap();
    // Ids made within 4 ms are in no order.
    let mut expected = [one.id(), other.id()];
    expected.sort();
    assert_eq!(all.iter().map(|app| app.id()).collect::<Vec<_>>(), expected);
    assert_eq!(aldaba.applications(Some(expected[0]), 10).await.unwrap().len(), 1);
    other.delete().await.unwrap();
    assert!(aldaba.find_application("other").await.unwrap().is_none());
}

/// As a program does that sets its endpoints up at every start.
#[tokio::test]
async fn an_endpoint_that_is_put_again_is_the_same_and_gets_an_event_once() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(200);
    let mut ids = Vec::new();
    for (n, path) in ["/one", "/one", "/two"].into_iter().enumerate() {
        let aldaba = start(folder.path()).await;
        let app = aldaba.application("customer").await.unwrap();
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let spec = || EndpointSpec::to(receiver.url(path)).policy("quick").secret(secret);
        let (one, two) = tokio::join!(app.put_endpoint("main", spec()), app.put_endpoint("main", spec()));
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!((one.id, one.url.as_str()), (two.id, receiver.url(path).as_str()));
        assert_eq!(app.secret("main").await.unwrap(), secret);
        ids.push(one.id);
        app.send(event(n)).await.unwrap();
        assert_eq!(receiver.next().path, path);
        assert!(receiver.stays_quiet(), "another endpoint got it too");
        aldaba.shutdown(Duration::from_secs(10)).await;
    }
    assert_eq!(ids, [ids[0]; 3]);
}

#[tokio::test]
async fn an_endpoint_is_added_listed_changed_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(200);
    let aldaba = start(folder.path()).await;
    let app = aldaba.application("customer").await.unwrap();
    let spec = EndpointSpec::to(receiver.url("/one")).uid("one").policy("quick").events(["a.thing"]);
    let made = app.add_endpoint(spec).await.unwrap();
    assert_eq!((made.policy.as_str(), made.condition), ("quick", Condition::Active));
    assert_eq!(app.endpoint("one").await.unwrap().as_ref(), Some(&made));
    assert_eq!(app.endpoint(made.id).await.unwrap().as_ref(), Some(&made));
    assert_eq!(app.endpoints().await.unwrap(), std::slice::from_ref(&made));
    let taken = app.add_endpoint(EndpointSpec::to(receiver.url("/two")).uid("one")).await.unwrap_err();
    assert_eq!(taken, Error::UidTaken);

    let change = EndpointSpec::unchanged().url(receiver.url("/new")).headers([("x-new", "1")]);
    let changed = app.update_endpoint("one", change).await.unwrap();
    assert_eq!((changed.url.as_str(), changed.policy.as_str()), (receiver.url("/new").as_str(), "quick"));
    assert_eq!(changed.events, ["a.thing"]);
    app.send(event(1)).await.unwrap();
    let arrival = receiver.next();
    assert_eq!((arrival.path.as_str(), arrival.header("x-new")), ("/new", "1"));

    let other = aldaba.application("other").await.unwrap();
    assert_eq!(other.endpoint(made.id).await.unwrap(), None, "another application's is not there");
    assert_eq!(other.delete_endpoint(made.id).await.unwrap_err(), Error::NotFound("endpoint"));
    assert_eq!(other.secret(made.id).await.unwrap_err(), Error::NotFound("endpoint"));

    app.delete_endpoint("one").await.unwrap();
    assert_eq!(app.endpoint("one").await.unwrap(), None);
    assert_eq!(app.endpoints().await.unwrap(), []);
    app.send(event(2)).await.unwrap();
    assert!(receiver.stays_quiet());
}

#[tokio::test]
async fn deliveries_held_for_a_disabled_endpoint_are_sent_when_it_is_enabled() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(200);
    let app = start(folder.path()).await.application("customer").await.unwrap();
    let spec = EndpointSpec::to(receiver.url("/")).disabled(true).when_disabled(WhenDisabled::Hold);
    let endpoint = app.add_endpoint(spec).await.unwrap();
    assert_eq!(endpoint.condition, Condition::Disabled);
    app.send(event(1)).await.unwrap();
    assert!(receiver.stays_quiet());
    app.update_endpoint(endpoint.id, EndpointSpec::unchanged().disabled(false)).await.unwrap();
    assert_eq!(receiver.next().json()["n"], 1);
}

#[tokio::test]
async fn an_endpoint_that_is_gone_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let receiver =
        Receiver::judging(|arrival| (if arrival.json()["n"] == 1 { 410 } else { 200 }, Duration::ZERO));
    let app = start(folder.path()).await.application("customer").await.unwrap();
    let endpoint = app.add_endpoint(EndpointSpec::to(receiver.url("/"))).await.unwrap();
    let gone = app.send(event(1)).await.unwrap();
    crate::ended(&app, gone.id).await;
    assert_eq!(app.endpoint(endpoint.id).await.unwrap().unwrap().condition, Condition::Disabled);
    assert!(app.resume_endpoint(endpoint.id).await.unwrap());
    assert!(!app.resume_endpoint(endpoint.id).await.unwrap(), "there is nothing more to resume");
    let sent = app.send(event(2)).await.unwrap();
    assert!(crate::ended(&app, sent.id).await.is_delivered());
}

#[tokio::test]
async fn an_endpoint_that_is_turned_off_cannot_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let app = start(folder.path()).await.application("customer").await.unwrap();
    let off = EndpointSpec::to("https://example.com/").disabled(true);
    let endpoint = app.add_endpoint(off).await.unwrap();
    let refused = app.resume_endpoint(endpoint.id).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
}

#[tokio::test]
async fn a_secret_that_is_rotated_signs_beside_the_former_one() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(200);
    let app = start(folder.path()).await.application("customer").await.unwrap();
    let endpoint = app.add_endpoint(EndpointSpec::to(receiver.url("/"))).await.unwrap();
    let former = app.secret(endpoint.id).await.unwrap();
    let new = app.rotate_secret(endpoint.id, None, Duration::from_secs(3600)).await.unwrap();
    assert_ne!(former, new);
    assert_eq!(app.secret(endpoint.id).await.unwrap(), new);
    app.send(event(1)).await.unwrap();
    assert_eq!(receiver.next().header("webhook-signature").split(' ').count(), 2);
    let refused = app.rotate_secret(endpoint.id, Some("nothing"), Duration::ZERO).await.unwrap_err();
    assert!(matches!(refused, Error::Invalid { field: "secret", .. }), "{refused:?}");
}
