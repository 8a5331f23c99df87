//! The options of the builder, and invalid ones.

use super::wait_until;
use crate::receiver::Receiver;
use crate::{LIMIT, builder, ended, event, start};
use aldaba_embedded::{Aldaba, DeliveryState, EndpointSpec, Error, Overrides, Policy, StartError};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

fn own_policy(attempts: u32) -> Policy {
    Policy::from_json(&json!({
        "name": "mine",
        "schedule": {"type": "exponential", "base": "10ms", "factor": 2, "cap": "10ms"},
        "limit": {"attempts": attempts},
    }))
    .unwrap()
}

#[tokio::test]
async fn invalid_input_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a file");
    std::fs::write(&file, "").unwrap();
    let data = folder.path().join("data");
    let fresh = || Aldaba::builder().sqlite(&data);
    for (builder, said) in [
        (Aldaba::builder(), "call `sqlite`"),
        (Aldaba::builder().sqlite(""), "call `sqlite`"),
        (Aldaba::builder().sqlite(&file), "cannot use the data folder"),
        (fresh().allow("not a network"), "`not a network` is no network"),
        (fresh().allow("10.0.0.0/99"), "is no network"),
        (fresh().egress_proxy("ftp://x"), "egress_proxy: "),
        (fresh().trusted_certificates("no certificate"), "trusted_certificates: "),
        (fresh().in_flight(0), "in_flight: must be 2 to"),
        (fresh().threads(0), "threads: must be 1 to"),
        (fresh().keep_delivered(Duration::ZERO), "keep_delivered: must be at least"),
        (fresh().keep_dead(Some(Duration::ZERO)), "keep_dead: must be at least"),
        (fresh().remember_keys(Duration::ZERO), "remember_keys: must be at least"),
        (fresh().profile("nothing"), "`nothing` is not a built-in wire profile"),
        (
            fresh().policy(
                Policy::from_json(&json!({"name": "quick", "schedule": {"type": "list", "delays": ["1s"]}}))
                    .unwrap(),
            ),
            "is built in",
        ),
        (fresh().overrides(Overrides { job_attempts: 0, ..Overrides::default() }), "overrides: "),
        (
            fresh()
                .overrides(Overrides { job_max_delay: Duration::from_millis(999), ..Overrides::default() }),
            "overrides: ",
        ),
        (fresh().overrides(sweeping(Duration::ZERO)), "overrides: sweep_interval must be 1 ms to 30 days"),
        (fresh().overrides(sweeping(Duration::MAX)), "overrides: sweep_interval must be 1 ms to 30 days"),
    ] {
        let error = builder.start().await.unwrap_err();
        assert!(error.to_string().contains(said), "{said}: {error}");
    }
    assert!(!Path::new("encryption.key").exists(), "nothing is left in the program's own folder");
    assert!(!data.exists(), "none of them has made the folder");
    // None of them has kept the folder.
    Aldaba::builder().sqlite(&data).start().await.unwrap().shutdown(LIMIT).await;
}

fn sweeping(sweep_interval: Duration) -> Overrides {
    Overrides { sweep_interval, ..Overrides::default() }
}

#[tokio::test]
async fn spans_without_an_end_are_taken_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(200);
    let forever = Duration::MAX;
    let aldaba =
        builder(folder.path()).keep_delivered(forever).keep_dead(Some(forever)).remember_keys(forever);
    let aldaba = aldaba.start().await.unwrap();
    let app = aldaba.application("customer").await.unwrap();
    app.add_endpoint(EndpointSpec::to(receiver.url("/"))).await.unwrap();
    let sent = app.send(event(1).idempotency_key("one")).await.unwrap();
    assert_eq!(receiver.next().path, "/");
    assert_eq!(app.send(event(1).idempotency_key("one")).await.unwrap().id, sent.id);
    assert!(aldaba.shutdown(forever).await.folder_is_free);
}

#[tokio::test]
async fn a_folder_stays_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let given = |key: u8| builder(folder.path()).encryption_key([key; 32]);
    let aldaba = given(7).start().await.unwrap();
    let app = aldaba.application("customer").await.unwrap();
    let endpoint = app.add_endpoint(EndpointSpec::to("https://example.com/")).await.unwrap();
    let secret = app.secret(endpoint.id).await.unwrap();
    drop((app, aldaba));
    let other = given(8).start().await.unwrap_err();
    assert!(matches!(other, StartError::OtherKey), "{other:?}");
    assert!(!other.to_string().contains("ALDABA_"), "no variable is read: {other}");
    assert!(matches!(builder(folder.path()).start().await, Err(StartError::OtherKey)));
    let app = given(7).start().await.unwrap().application("customer").await.unwrap();
    assert_eq!(app.secret(endpoint.id).await.unwrap(), secret);
}

#[tokio::test]
async fn a_folder_without_its_database_is_refused_until_that_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let aldaba = builder(folder.path()).start().await.unwrap();
    aldaba.application("customer").await.unwrap();
    aldaba.shutdown(LIMIT).await;
    std::fs::remove_file(folder.path().join("aldaba.db")).unwrap();
    let refused = builder(folder.path()).start().await.unwrap_err();
    assert!(matches!(refused, StartError::Store(_)), "{refused:?}");
    assert!(refused.to_string().contains("`Builder::accept_older_data`"), "{refused}");
    // Without the watermark the key still tells that there was one.
    std::fs::remove_file(folder.path().join("aldaba.watermark")).unwrap();
    let refused = builder(folder.path()).start().await.unwrap_err();
    assert!(refused.to_string().contains("there is no database beside the key"), "{refused}");
    let accepted = builder(folder.path()).accept_older_data(true).start().await.unwrap();
    accepted.shutdown(LIMIT).await;
    builder(folder.path()).start().await.unwrap().shutdown(LIMIT).await;
}

#[tokio::test]
async fn private_addresses_are_closed_until_they_are_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(200);
    let closed = || Aldaba::builder().sqlite(folder.path()).low_space(0);
    let add = async |aldaba: &Aldaba, url: String| {
        aldaba.application("customer").await.unwrap().add_endpoint(EndpointSpec::to(url)).await
    };
    let aldaba = closed().start().await.unwrap();
    let port = receiver.address.port();
    for host in ["127.0.0.1", "localhost", "[::1]", "2130706433", "10.1.2.3", "169.254.169.254", "[fd00::1]"]
    {
        let refused = add(&aldaba, format!("http://{host}:{port}/")).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid { field: "url", .. }), "{host}: {refused:?}");
        assert!(refused.to_string().contains("`allow`"), "{refused}");
    }
    aldaba.shutdown(LIMIT).await;

    let aldaba = closed().allow_private_networks(true).start().await.unwrap();
    assert!(add(&aldaba, "http://169.254.169.254/".into()).await.is_err(), "metadata services stay closed");
    add(&aldaba, format!("http://localhost:{port}/")).await.unwrap();
    let app = aldaba.application("customer").await.unwrap();
    let sent = app.send(event(1)).await.unwrap();
    assert!(ended(&app, sent.id).await.is_delivered());
    receiver.next();
    drop(app);
    aldaba.shutdown(LIMIT).await;

    // After it is forbidden again, existing endpoints are not reached either.
    let closed = closed().allow_private_networks(true).allow_private_networks(false);
    let app = closed.start().await.unwrap().application("customer").await.unwrap();
    let sent = app.send(event(2)).await.unwrap();
    assert!(receiver.stays_quiet());
    let message = app.message(sent.id).await.unwrap().unwrap();
    assert!(matches!(message.deliveries[0].state, DeliveryState::Waiting { .. }), "{message:?}");
    assert!(message.deliveries[0].attempts <= 1);
}

#[tokio::test]
async fn a_policy_of_the_programs_own_is_there_and_follows_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(500);
    let mut endpoint = None;
    for attempts in [2, 2, 4] {
        let aldaba = builder(folder.path()).policy(own_policy(attempts)).start().await.unwrap();
        let app = aldaba.application("customer").await.unwrap();
        if endpoint.is_none() {
            let spec = EndpointSpec::to(receiver.url("/")).policy("mine");
            endpoint = Some(app.add_endpoint(spec).await.unwrap());
        }
        let sent = app.send(event(1)).await.unwrap();
        assert_eq!(ended(&app, sent.id).await.deliveries[0].attempts, attempts);
        aldaba.shutdown(LIMIT).await;
    }
    let app = start(folder.path()).await.application("customer").await.unwrap();
    let unknown = app.add_endpoint(EndpointSpec::to(receiver.url("/")).policy("nobodys")).await.unwrap_err();
    assert!(matches!(unknown, Error::Invalid { field: "policy", .. }), "{unknown:?}");
    let unknown = app.add_endpoint(EndpointSpec::to(receiver.url("/")).profile("nobodys")).await.unwrap_err();
    assert!(matches!(unknown, Error::Invalid { field: "profile", .. }), "{unknown:?}");
}

#[tokio::test]
async fn overrides_and_the_default_profile_hold() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(500);
    let overrides = Overrides { job_attempts: 1, ..Overrides::default() };
    let aldaba = builder(folder.path()).overrides(overrides).profile("svix").start().await.unwrap();
    let app = aldaba.application("customer").await.unwrap();
    app.add_endpoint(EndpointSpec::to(receiver.url("/")).policy("job-status")).await.unwrap();
    let sent = app.send(event(1)).await.unwrap();
    assert_eq!(receiver.next().header("svix-id"), sent.id.to_string());
    assert_eq!(ended(&app, sent.id).await.deliveries[0].attempts, 1);
    assert!(receiver.stays_quiet());
}

#[tokio::test]
async fn no_more_requests_are_on_the_wire_at_once_than_was_said() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::judging(|_| (200, Duration::from_millis(100)));
    let aldaba = builder(folder.path()).in_flight(2).threads(1).start().await.unwrap();
    let app = aldaba.application("customer").await.unwrap();
    app.add_endpoint(EndpointSpec::to(receiver.url("/"))).await.unwrap();
    app.send_many((0..10).map(event).collect()).await.unwrap();
    wait_until("nothing is pending", async || {
        assert!(aldaba.in_flight().await <= 2);
        aldaba.waiting().await.unwrap() == 0
    })
    .await;
}
