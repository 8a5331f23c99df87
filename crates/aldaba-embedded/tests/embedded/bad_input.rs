//! Invalid input is rejected, and none of it is stored.

use crate::{builder, event, start};
use aldaba_embedded::{Dispatch, EndpointSpec, Error, Event};
use serde_json::json;

#[tokio::test]
async fn names_of_applications_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let aldaba = start(folder.path()).await;
    for uid in ["", "a b", "ñ", "a\0b", "a/b", "app_mine", &"x".repeat(257)] {
        let refused = aldaba.application(uid).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid { field: "uid", .. }), "{uid:?}: {refused:?}");
    }
    let nobody = "app_000000000000000000000000000";
    assert_eq!(aldaba.application(nobody).await.unwrap_err(), Error::NotFound("application"));
    let mut app = aldaba.application("customer").await.unwrap();
    for name in ["", "a\u{7}b", &"x".repeat(4097)] {
        assert!(matches!(app.rename(name).await, Err(Error::Invalid { field: "name", .. })), "{name:?}");
    }
    assert!(app.set_throttle_rate(Some(0)).await.is_err());
    assert_eq!(app.name(), "customer");
    assert_eq!(aldaba.applications(None, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_payload_that_is_too_long_is_refused_and_the_limit_can_be_set() {
    let folder = tempfile::tempdir().unwrap();
    let app = builder(folder.path()).longest_payload(20).start().await.unwrap();
    let app = app.application("customer").await.unwrap();
    app.send(Event::new("a", &json!({"a": "x".repeat(10)})).unwrap()).await.unwrap();
    let refused = app.send(Event::new("a", &json!({"a": "x".repeat(13)})).unwrap()).await.unwrap_err();
    assert_eq!(refused.to_string(), "payload: is 21 bytes long; 20 are allowed");
}

#[tokio::test]
async fn a_refused_change_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let app = start(folder.path()).await.application("customer").await.unwrap();
    let made = app.add_endpoint(EndpointSpec::to("https://example.com/").uid("it")).await.unwrap();
    for change in [
        EndpointSpec::unchanged().policy("quick").url("https://10.0.0.1/"),
        EndpointSpec::unchanged().policy("quick").headers([("host", "x")]),
        EndpointSpec::unchanged().policy("quick").secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        EndpointSpec::unchanged().policy("nobodys"),
    ] {
        assert!(matches!(app.update_endpoint("it", change).await, Err(Error::Invalid { .. })));
    }
    assert_eq!(app.endpoint("it").await.unwrap(), Some(made));
    for key in ["", "nothing", "ep_nothing", "a b"] {
        assert_eq!(app.delete_endpoint(key).await.unwrap_err(), Error::NotFound("endpoint"), "{key:?}");
        let change = EndpointSpec::unchanged().policy("quick");
        assert_eq!(app.update_endpoint(key, change).await.unwrap_err(), Error::NotFound("endpoint"));
    }
}

#[tokio::test]
async fn a_deleted_application_takes_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let aldaba = start(folder.path()).await;
    let app = aldaba.application("customer").await.unwrap();
    let handle = app.clone();
    app.delete().await.unwrap();
    assert_eq!(handle.send(event(1)).await.unwrap_err(), Error::NotFound("application"));
    let added = handle.add_endpoint(EndpointSpec::to("https://example.com/")).await;
    assert!(matches!(added, Err(Error::NotFound(_))), "{added:?}");
    let again = aldaba.application("customer").await.unwrap();
    assert_ne!(again.id(), handle.id());
}

#[tokio::test]
async fn a_blank_idempotency_key_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let app = start(folder.path()).await.application("customer").await.unwrap();
    // As a key, a blank one would merge all events without a key.
    for blank in ["", " ", "\t"] {
        let refused = app.send(event(1).idempotency_key(blank)).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid { field: "idempotency_key", .. }), "{refused:?}");
        let dispatch = Dispatch::to("https://example.com/", &1).unwrap().idempotency_key(blank);
        assert!(matches!(app.dispatch(dispatch).await, Err(Error::Invalid { .. })));
    }
}
