//! Every operation of the API, called by the client and answered by the server.

use crate::proxy::Proxy;
use crate::running::{Running, client_of};
use crate::waiting::wait_for;
use crate::{document, proxy::Seen};
use aldaba_client::*;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

const LONG_AGO: &str = "2020-01-01T00:00:00Z";

/// Cannot be forgotten when a route is added: it would be missing here.
#[tokio::test]
async fn every_operation_of_the_document_is_reached_by_a_method() {
    let server = Running::start().await;
    let proxy = Proxy::to(server.address).await;
    let client = client_of(proxy.address);
    applications(&client).await;
    endpoints(&client).await;
    messages(&client).await;
    deliveries_and_replays(&client).await;
    jobs_and_dispatches(&client).await;
    settings(&client).await;
    operational(&client).await;
    sources(&client).await;
    customer_data(&client).await;
    access(&client).await;
    let document = document::read(server.address).await;
    let of = |seen: &Seen| {
        document::operation(&document, seen)
            .unwrap_or_else(|| panic!("{seen:?} is no operation of the document"))
    };
    let reached: BTreeSet<_> = proxy.seen().iter().map(of).collect();
    let missing: Vec<_> = document::operations(&document).difference(&reached).cloned().collect();
    assert!(missing.is_empty(), "no method of the client was called for {missing:#?}");
    // One connection did for all of it.
    assert_eq!(proxy.connections(), 1);
    server.stop().await;
}

async fn applications(client: &Client) {
    let applications = client.applications();
    let new = NewApplication {
        metadata: [("plan".to_owned(), "large".to_owned())].into(),
        throttle_rate: Some(50),
        ..NewApplication::with_uid("Acme", "acme")
    };
    let made = applications.create(&new).await.unwrap();
    assert_eq!((made.uid.as_deref(), made.metadata["plan"].as_str()), (Some("acme"), "large"));
    assert_eq!(applications.get_or_create(&new).await.unwrap().id, made.id);
    assert_eq!(applications.list().order(Order::Descending).await.unwrap().data.len(), 1);
    let app = client.app("acme");
    assert_eq!(app.get().await.unwrap(), made);
    let changed = app.update(&NewApplication::with_uid("Acme & sons", "acme")).await.unwrap();
    assert_eq!((changed.name.as_str(), changed.throttle_rate), ("Acme & sons", None));
    let patch = ApplicationPatch { throttle_rate: Set::To(7), ..Default::default() };
    assert_eq!(app.patch(&patch).await.unwrap().throttle_rate, Some(7));
    let patch = ApplicationPatch { throttle_rate: Set::Clear, ..Default::default() };
    assert_eq!(app.patch(&patch).await.unwrap().throttle_rate, None);
    let told = app.set_alert_email(Some("people@example.com")).await.unwrap();
    assert!(!told.mail_configured && told.note.is_some(), "{told:?}");
    assert_eq!(app.get().await.unwrap().alert_email.as_deref(), Some("people@example.com"));
    app.set_alert_email(None).await.unwrap();
    assert_eq!(app.get().await.unwrap().alert_email, None);
    assert!(client.app(&made.id).public_keys().await.unwrap().keys.is_empty());
    applications.create(&NewApplication::with_uid("Another", "another")).await.unwrap();
    client.app("another").delete().await.unwrap();
    assert!(client.app("another").get().await.unwrap_err().is_not_found());
}

async fn endpoints(client: &Client) {
    let app = client.app("acme");
    client.event_types().create(&NewEventType::new("invoice.paid", "An invoice was paid")).await.unwrap();
    let new = NewEndpoint {
        uid: Some("books".into()),
        event_types: Some(vec!["invoice.paid".into()]),
        policy: Some("standard".into()),
        // The port is closed, so that deliveries fail and wait.
        ..NewEndpoint::new("https://127.0.0.1:9/hook")
    };
    let made = app.endpoints().create(&new).await.unwrap();
    assert_eq!(made.event_types, new.event_types);
    assert_eq!(made.health.status, Condition::Active);
    assert_eq!((&made.status, made.failure_count), (&EndpointStatus::Active, 0));
    assert_eq!(app.endpoints().list().await.unwrap().data, std::slice::from_ref(&made));
    let endpoint = app.endpoint("books");
    assert_eq!(endpoint.get().await.unwrap(), made);
    let update = EndpointUpdate {
        uid: Some("books".into()),
        description: Some("of the year".into()),
        when_disabled: Some(WhenDisabled::Hold),
        ..EndpointUpdate::new(made.url.clone())
    };
    let updated = endpoint.update(&update).await.unwrap();
    assert_eq!((updated.event_types, updated.when_disabled), (None, WhenDisabled::Hold));
    let patch = EndpointPatch {
        channels: Set::To(vec!["paid".into()]),
        throttle_rate: Set::To(100),
        ..Default::default()
    };
    assert_eq!(endpoint.patch(&patch).await.unwrap().channels, Some(vec!["paid".to_owned()]));
    let patch = EndpointPatch { channels: Set::Clear, ..Default::default() };
    assert_eq!(endpoint.patch(&patch).await.unwrap().channels, None);

    let secret = endpoint.secret().await.unwrap();
    assert!(secret.key.reveal().starts_with("whsec_"));
    assert!(!format!("{secret:?}").contains("whsec_"));
    let rotated = endpoint.rotate_secret(&RotateSecret::default()).await.unwrap();
    assert_ne!(rotated, secret);
    endpoint.set_headers(&SetHeaders::from_iter([("x-one", "1"), ("x-two", "2")])).await.unwrap();
    let patch = HeadersPatch { headers: [("x-one".to_owned(), None)].into(), ..Default::default() };
    endpoint.patch_headers(&patch).await.unwrap();
    let headers = endpoint.headers().await.unwrap();
    assert_eq!(headers.headers.keys().collect::<Vec<_>>(), ["x-two"]);
    endpoint.set_headers(&SetHeaders::default()).await.unwrap();

    let identity = rcgen::generate_simple_self_signed(["client".to_owned()]).unwrap();
    let pem = identity.cert.pem() + &identity.signing_key.serialize_pem();
    endpoint.set_certificate(pem).await.unwrap();
    let certificate = endpoint.certificate().await.unwrap();
    assert_eq!(endpoint.mutual_tls().await.unwrap().config, Some(certificate));
    endpoint.delete_certificate().await.unwrap();
    assert!(!endpoint.mutual_tls().await.unwrap().enabled);

    assert_eq!(endpoint.throttling().await.unwrap().status, ThrottlingStatus::Fine);
    assert_eq!(endpoint.stats(&Between::default()).await.unwrap().success, 0);
    assert!(endpoint.health_changes().await.unwrap().data.is_empty());
    assert!(!endpoint.resume(&Resume::default()).await.unwrap().changed);
}

async fn messages(client: &Client) {
    let app = client.app("acme");
    let messages = app.messages();
    let payload = Json::from_text(r#"{"z": 1.10, "a": 12345678901234567890123}"#).unwrap();
    let new = NewMessage {
        event_id: Some("paid-17".into()),
        tags: Some(vec!["year".into()]),
        channels: Some(vec!["paid".into()]),
        payload_retention_hours: Some(48),
        ..NewMessage::new("invoice.paid", payload.clone())
    };
    let sent = messages.send(&new).await.unwrap();
    assert_eq!(sent.payload, payload);
    let taken = messages.send(&new).await.unwrap_err();
    assert!(matches!(&taken, Error::Api { status: 409, .. }), "{taken}");
    messages.send_quietly(&NewMessage::new("invoice.paid", json!({"n": 2}))).await.unwrap();
    let batch = [NewMessage::new("invoice.paid", json!({"n": 3})), NewMessage::new("", json!({}))];
    let batch = messages.send_batch(&batch).await.unwrap();
    assert_eq!(batch.accepted, 1);
    assert!(batch.results[0].outcome().unwrap().starts_with("msg_"));
    assert!(matches!(batch.results[1].outcome(), Err(Error::Api { status: 422, .. })));
    assert_eq!(messages.list().await.unwrap().data.len(), 3);
    let filter = MessageFilter {
        tag: Some("year".into()),
        event_types: Some(vec!["invoice.paid".into(), "other".into()]),
        with_content: Some(false),
        ..Default::default()
    };
    assert_eq!(messages.list().filter(filter).await.unwrap().data.len(), 1);
    let search = MessageSearch { tag: Some("year".into()), ..Default::default() };
    assert_eq!(messages.search(&search).await.unwrap().data[0].id, sent.id);
    assert!(messages.precheck(&Precheck::new("invoice.paid")).await.unwrap().active);

    let message = app.message("paid-17");
    assert_eq!(message.get().await.unwrap().payload, payload);
    assert_ne!(message.get_without_payload().await.unwrap().payload, payload);
    assert_eq!(message.raw_payload().await.unwrap().payload, payload.text());
    let endpoint = app.endpoint("books");
    let attempt = attempted(&message).await;
    assert_eq!((attempt.status, attempt.trigger_type), (Status::Fail, Trigger::Scheduled));
    assert!(attempt.error.is_some());
    let filter = AttemptFilter { with_msg: Some(true), status: Some(Status::Fail), ..Default::default() };
    let with_message = endpoint.attempts().filter(filter.clone()).await.unwrap();
    assert!(
        with_message.data.iter().any(|attempt| attempt.msg.as_ref().is_some_and(|msg| msg.id == sent.id))
    );
    assert!(!message.attempts_of_old().await.unwrap().data.is_empty());
    assert!(!message.attempts_at("books").await.unwrap().data.is_empty());
    assert_eq!(message.attempt(&attempt.id).await.unwrap(), attempt);
    let headers = message.attempt_headers(&attempt.id).await.unwrap();
    assert!(headers.sent_headers.contains_key("webhook-id"), "{headers:?}");
    assert!(endpoint.count_attempts(&filter).await.unwrap().count >= 1);
    let all = DestinationFilter { all: Some(true) };
    assert_eq!(message.destinations().filter(all).await.unwrap().data[0].uid.as_deref(), Some("books"));
    assert_eq!(endpoint.messages().await.unwrap().data.len(), 3);
    assert_eq!(app.attempt_stats(&AttemptStatsFilter::default()).await.unwrap().total_success, 0);
    let destination = message.destinations().await.unwrap().data.remove(0);
    assert_eq!(destination.retry_count.map(|retries| retries >= 1), Some(true), "{destination:?}");
    // Waits for an attempt in flight.
    let sent_id = sent.id.clone();
    for attempt in 1.. {
        match message.resend("books").await {
            Err(error) if error.status() == Some(409) && attempt < 100 => {
                // The delay between two tries.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            sent => {
                let made = sent.unwrap().attempt.expect("it does not take long");
                assert_eq!((made.msg_id.as_str(), made.status), (sent_id.as_str(), Status::Fail));
                assert_eq!(made.trigger_type, Trigger::Manual);
                break;
            }
        }
    }
    message.expunge_attempt(&attempt.id).await.unwrap();
    message.expunge_content().await.unwrap();
    assert_eq!(message.get().await.unwrap().payload.value(), json!({"expired": true}));
    let example = SendExample::new("svix.ping");
    assert_eq!(endpoint.send_example(&example).await.unwrap().event_type, "svix.ping");
}

/// The first attempt for a message.
async fn attempted(message: &AppMessage) -> Attempt {
    wait_for("an attempt is made", async || message.attempts().await.unwrap().data.pop()).await
}

/// Discards a delivery; while an attempt is in flight, obeys `Retry-After`.
async fn discarded(delivery: &AppDelivery) {
    for _ in 0..50 {
        match delivery.discard().await {
            Err(Error::Api { code, retry_after, .. }) if code == "in_flight" => {
                tokio::time::sleep(retry_after.expect("when to try again")).await;
            }
            ended => return ended.unwrap(),
        }
    }
    panic!("an attempt that never ended");
}

async fn deliveries_and_replays(client: &Client) {
    let app = client.app("acme");
    let pending = DeliveryFilter { state: Some(DeliveryState::Pending), ..Default::default() };
    let waiting = app.deliveries().list().filter(pending).await.unwrap().data;
    assert!(!waiting.is_empty());
    let delivery = app.delivery(&waiting[0].id);
    assert_eq!(delivery.get().await.unwrap().state, DeliveryState::Pending);
    delivery.attempts().await.unwrap();
    discarded(&delivery).await;
    let endpoint = app.endpoint("books");
    endpoint.cancel_messages("2100-01-01T00:00:00Z").await.unwrap();
    let discard = Discard { state: Some(DeliveryState::Pending), ..Default::default() };
    assert!(app.deliveries().discard(&discard).await.unwrap().done);
    client
        .dead_letter()
        .filter(DeadLetterFilter { app: Some("acme".into()), ..Default::default() })
        .await
        .unwrap();

    assert_eq!(endpoint.count_recover(&Replay::since(LONG_AGO)).await.unwrap().count, 0);
    let task = endpoint.recover(&Replay::since(LONG_AGO)).await.unwrap();
    assert_eq!(task.task, "endpoint.recover");
    endpoint.count_replay_missing(&Replay::since(LONG_AGO)).await.unwrap();
    endpoint.replay_missing(&Replay::since(LONG_AGO)).await.unwrap();
    let bulk = BulkReplay { status: Some(Status::Canceled), ..BulkReplay::since(LONG_AGO) };
    assert!(endpoint.count_bulk_replay(&bulk).await.unwrap().count > 0);
    endpoint.bulk_replay(&bulk).await.unwrap();
    let tasks = client.background_tasks();
    assert_eq!(tasks.list().await.unwrap().data.len(), 3);
    assert_eq!(tasks.get(&task.id).await.unwrap().id, task.id);
    // It may be over by now.
    match tasks.cancel(&task.id).await {
        Ok(cancelled) => assert_eq!(cancelled.status, TaskStatus::Failed),
        Err(error) => assert_eq!(error.status(), Some(409)),
    }
    endpoint.delete().await.unwrap();
}

async fn jobs_and_dispatches(client: &Client) {
    let app = client.app("acme");
    let job = Job {
        id: "job 7".into(),
        job_type: "email.send".into(),
        webhook_url: Some("http://127.0.0.1:9/done".into()),
    };
    let end =
        JobEnd { result: Some(json!({"sent": true}).into()), ..JobEnd::new(&job, JobStatus::Completed) };
    let told = app.jobs().tell(&end).await.unwrap().unwrap();
    assert_eq!((told.job_id.as_str(), told.status.clone()), ("job 7", DispatchStatus::Pending));
    assert_eq!(told.payload.value()["result"], json!({"sent": true}));
    let nobody = Job { webhook_url: None, ..job };
    assert_eq!(app.jobs().tell(&JobEnd::new(&nobody, JobStatus::Failed)).await.unwrap(), None);
    assert_eq!(app.jobs().get("job 7").await.unwrap().id, told.id);
    let filter = JobFilter { job_id: Some("job 7".into()), ..Default::default() };
    assert_eq!(app.jobs().list().filter(filter).await.unwrap().data[0].id, told.id);

    // More than 64 bits hold: one record that cannot be read would be the end of every list.
    let huge = Json::from_text("[1e400, 123456789012345678901234567890]").unwrap();
    let end = JobEnd { job_id: "huge".into(), result: Some(huge.clone()), ..end };
    let told = app.jobs().tell(&end).await.unwrap().unwrap();
    assert!(told.payload.text().contains(huge.text()), "{told:?}");
    assert_eq!(app.jobs().list().await.unwrap().data.len(), 2);

    let new = NewDispatch {
        headers: [("x-one".to_owned(), "1".to_owned())].into(),
        ..NewDispatch::new("http://127.0.0.1:9/direct", json!({"a": 1}))
    };
    let sent = app.dispatches().send(&new).await.unwrap();
    assert_eq!((sent.url.as_str(), sent.event_type.as_str()), ("http://127.0.0.1:9/direct", "dispatch"));
    assert_eq!(app.dispatches().get(&sent.id).await.unwrap().payload.value(), json!({"a": 1}));
    assert_eq!(app.dispatches().list().await.unwrap().data[0].id, sent.id);
    assert!(app.dispatches().secret().await.unwrap().key.reveal().starts_with("whsec_"));
}

async fn settings(client: &Client) {
    let policies = client.policies();
    let policy = NewPolicy::with_delays("patient", &["10s", "5m"]);
    assert_eq!(policies.create(&policy).await.unwrap().schedule, policy.schedule);
    let policy = NewPolicy { probe: Set::Clear, ..NewPolicy::exponential("patient", "1s", 2, "5m") };
    assert_eq!(policies.update(&policy).await.unwrap().probe, None);
    assert!(!policies.get("patient").await.unwrap().built_in);
    assert!(policies.list().await.unwrap().iter().any(|policy| policy.built_in));
    let preview = Preview { outage: Some("90s".into()), seed: Some(7) };
    assert!(policies.preview("standard", &preview).await.unwrap().delivered);
    policies.delete("patient").await.unwrap();

    let profiles = client.profiles();
    let profile = NewProfile {
        name: "plain".into(),
        headers: [("X-Id".to_owned(), "{id}".to_owned())].into(),
        signature: None,
    };
    assert_eq!(profiles.create(&profile).await.unwrap().signature, None);
    assert_eq!(profiles.update(&profile).await.unwrap().headers.len(), 1);
    assert_eq!(profiles.get("plain").await.unwrap().name, "plain");
    assert!(profiles.list().await.unwrap().len() > 1);
    profiles.delete("plain").await.unwrap();

    let alerts = client.alerts();
    alerts.list().await.unwrap();
    assert!(alerts.rules().await.unwrap().data.iter().any(|rule| rule.r#for.as_deref() == Some("1m")));
    assert!(alerts.get("alert_x").await.unwrap_err().is_not_found());
    assert!(alerts.acknowledge("alert_x").await.unwrap_err().is_not_found());
    client.hosts().list().await.unwrap();
    assert!(client.hosts().release("https://example.com").await.unwrap_err().is_not_found());

    let types = client.event_types();
    let update = EventTypeUpdate { description: "Paid".into(), ..Default::default() };
    assert_eq!(types.update("invoice.paid", &update).await.unwrap().description, "Paid");
    let schemas = Json::from(json!({"1": {"type": "object"}}));
    let patch = EventTypePatch { schemas: schemas.clone().into(), ..Default::default() };
    assert_eq!(types.patch("invoice.paid", &patch).await.unwrap().schemas.unwrap().value(), schemas.value());
    assert_eq!(types.get("invoice.paid").await.unwrap().name, "invoice.paid");
    let filter = EventTypeFilter { with_content: Some(true), ..Default::default() };
    assert_eq!(types.list().filter(filter).await.unwrap().data.len(), 1);
    types.archive("invoice.paid").await.unwrap();
    types.expunge("invoice.paid").await.unwrap();
    let operation = json!({"post": {"operationId": "user.born", "requestBody": {"content": {"application/json":
        {"schema": {"type": "object"}}}}, "responses": {}}});
    let spec = json!({"openapi": "3.1.0", "info": {"title": "a", "version": "1"}, "webhooks": {"user.born": operation}});
    let import = ImportOpenApi { spec: Some(spec.into()), ..Default::default() };
    let dry = ImportOpenApi { dry_run: Some(true), ..import.clone() };
    assert_eq!(types.import_openapi(&dry).await.unwrap().data.to_modify.unwrap()[0].name, "user.born");
    assert_eq!(types.import_openapi(&import).await.unwrap().data.modified, ["user.born"]);
}

async fn operational(client: &Client) {
    let new = NewEndpoint { uid: Some("own".into()), ..NewEndpoint::new("https://example.com/operations") };
    let made = client.operational_endpoints().create(&new).await.unwrap();
    assert_eq!(client.operational_endpoints().list().await.unwrap().data, std::slice::from_ref(&made));
    let endpoint = client.operational_endpoint("own");
    assert_eq!(endpoint.get().await.unwrap(), made);
    let update =
        EndpointUpdate { uid: Some("own".into()), ..EndpointUpdate::new("https://example.com/other") };
    assert_eq!(endpoint.update(&update).await.unwrap().url, "https://example.com/other");
    endpoint.set_headers(&SetHeaders::from_iter([("x-one", "1")])).await.unwrap();
    assert_eq!(endpoint.headers().await.unwrap().headers["x-one"], "1");
    let secret = endpoint.secret().await.unwrap();
    assert_ne!(endpoint.rotate_secret(&RotateSecret::default()).await.unwrap(), secret);
    endpoint.delete().await.unwrap();
}

async fn sources(client: &Client) {
    let new =
        NewSource { uid: Some("door".into()), ..NewSource::signed("From GitHub", "github", "a secret") };
    let made = client.sources().create(&new).await.unwrap();
    assert!(!format!("{made:?}").contains(made.ingest_url.as_ref().unwrap().reveal()));
    assert_eq!(client.sources().list().await.unwrap().data[0].id, made.id);
    let source = client.source("door");
    assert_eq!(source.get().await.unwrap().app_id, made.app_id);
    let answer = SourceAnswer { status: Some(202), ..Default::default() };
    let update = NewSource { answer: Some(answer), ..NewSource::generic("From anybody") };
    assert_eq!(source.update(&update).await.unwrap().answer.unwrap().status, Some(202));
    let conditions = vec![HeaderCondition { name: "x-live".into(), values: None }];
    let patch = SourcePatch { filter_headers: conditions.clone().into(), ..Default::default() };
    let patched = source.patch(&patch).await.unwrap();
    assert_eq!(patched.filter_headers.unwrap()[0].name, "x-live");
    let patch = SourcePatch { answer: Set::Clear, ..Default::default() };
    assert_eq!(source.patch(&patch).await.unwrap().answer, None);
    assert_ne!(Some(source.rotate_token().await.unwrap().ingest_url), made.ingest_url);
    let filter = SourceEventFilter { status: Some(SourceEventStatus::Failed), ..Default::default() };
    assert!(source.events().filter(filter).await.unwrap().data.is_empty());
    assert!(source.event("nobodys").await.unwrap_err().is_not_found());
    assert!(source.refusals().await.unwrap().data.is_empty());
    let new = NewEndpoint { uid: Some("behind".into()), ..NewEndpoint::new("https://example.com/in") };
    let behind = source.create_endpoint(&new).await.unwrap();
    assert_eq!(source.endpoints().await.unwrap().data, std::slice::from_ref(&behind));
    let endpoint = source.endpoint("behind");
    assert_eq!(endpoint.get().await.unwrap(), behind);
    let update =
        EndpointUpdate { uid: Some("behind".into()), ..EndpointUpdate::new("https://example.com/other") };
    assert_eq!(endpoint.update(&update).await.unwrap().url, "https://example.com/other");
    endpoint.set_headers(&SetHeaders::from_iter([("x-one", "1")])).await.unwrap();
    assert_eq!(endpoint.headers().await.unwrap().headers["x-one"], "1");
    let secret = endpoint.secret().await.unwrap();
    assert_ne!(endpoint.rotate_secret(&RotateSecret::default()).await.unwrap(), secret);
    endpoint.delete().await.unwrap();
    source.delete().await.unwrap();
}

async fn customer_data(client: &Client) {
    client.applications().create(&NewApplication::with_uid("Leaving", "leaving")).await.unwrap();
    let app = client.app("leaving");
    let sent = app.messages().send(&NewMessage::new("invoice.paid", json!({"invoice": 1}))).await.unwrap();
    let mut export = app.export(&ExportOptions::default()).await.unwrap();
    let mut lines = Vec::new();
    while let Some(line) = export.line().await.unwrap() {
        lines.push(serde_json::from_slice::<serde_json::Value>(&line).unwrap());
    }
    assert_eq!(lines[2]["id"], json!(sent.id));
    assert_eq!(lines.last().unwrap()["complete"], true);
    assert_eq!(app.count_erase().await.unwrap().messages, 1);
    let task = app.erase().await.unwrap();
    assert_eq!(task.task, "application.erase");
    assert!(app.get().await.unwrap_err().is_not_found());
}

async fn access(client: &Client) {
    let app = client.app("acme");
    let access = NewPortalAccess { session_id: Some("ana".into()), ..Default::default() };
    let let_in = app.portal_access(&access).await.unwrap();
    assert!(let_in.url.reveal().contains(let_in.token.reveal()) || !let_in.token.reveal().is_empty());
    app.dashboard_access().await.unwrap();
    app.expire_tokens(&ExpireTokens { session_ids: Some(vec!["ana".into()]), ..Default::default() })
        .await
        .unwrap();
    app.expire_tokens(&ExpireTokens::default()).await.unwrap();
    assert_eq!(client.whoami().await.unwrap().scope.as_deref(), Some("admin"));

    let keys = client.api_keys();
    let key = keys.create(&NewApiKey::new("for a worker", Scope::Send)).await.unwrap();
    assert!(!format!("{key:?}").contains(key.key.reveal()));
    assert_eq!(keys.get(&key.id).await.unwrap().scope, Scope::Send);
    assert_eq!(keys.rename(&key.id, "for two").await.unwrap().name, "for two");
    assert_eq!(keys.list().await.unwrap().data.len(), 1);
    keys.revoke(&key.id).await.unwrap();
    let changes = client.audit().filter(AuditFilter { app_id: Some("acme".into()), ..Default::default() });
    assert!(!changes.await.unwrap().data.is_empty());

    assert_eq!(client.health().await.unwrap().database.status, PartStatus::Fine);
    assert_eq!(client.live().await.unwrap().status, PartStatus::Fine);
    assert_eq!(client.ready().await.unwrap().status, ReadyStatus::Ready);
    client.ping().await.unwrap();
    client.redrive_dlq().await.unwrap();
    client.logout().await.unwrap();
    let error = client.whoami().await.unwrap_err();
    assert!(error.to_string().contains("aldaba token create"), "{error}");
}
