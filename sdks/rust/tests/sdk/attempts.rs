use sdk_rust::{Hook, Scene, eventually, hook, message, minutes_ago};
use serde_json::json;
use svix::api::{
    BackgroundTaskListOptions, MessageAttemptListByEndpointOptions, MessageAttemptListByMsgOptions,
};
use svix::models::{
    BackgroundTaskStatus, BackgroundTaskType, EndpointOut, MessageAttemptOut, MessageAttemptTriggerType,
    MessageIn, MessageOut, MessageStatus, RecoverIn, ReplayIn, StatusCodeClass,
};

/// An application with an endpoint that works and one that does not.
struct Pair {
    scene: Scene,
    bad: Hook,
    works: EndpointOut,
    fails: EndpointOut,
}

impl Pair {
    async fn open(name: &str) -> Self {
        let scene = Scene::open(name).await;
        let (good, bad) = (hook(204), hook(400));
        let (works, fails) = (scene.endpoint(&good).await, scene.quick_endpoint(&bad).await);
        Self { scene, bad, works, fails }
    }

    /// A message that one endpoint took and the other one refused.
    async fn sent(&self, given: MessageIn) -> (MessageOut, MessageAttemptOut, MessageAttemptOut) {
        let message = self.scene.send_as(given).await;
        let success = self.scene.attempt(&message, MessageStatus::Success).await;
        let failure = self.scene.attempt(&message, MessageStatus::Fail).await;
        (message, success, failure)
    }
}

#[tokio::test]
async fn an_attempt_describes_the_result() {
    let pair = Pair::open("Attempts").await;
    let (message, success, failure) = pair.sent(message("invoice.paid")).await;
    assert_eq!((&success.endpoint_id, success.response_status_code), (&pair.works.id, 204));
    assert_eq!((&failure.endpoint_id, failure.response_status_code), (&pair.fails.id, 400));
    assert_eq!((&failure.msg_id, &failure.url), (&message.id, &pair.bad.url));
    let (api, app) = (pair.scene.svix.message_attempt(), pair.scene.app());
    let get = || api.get(app.clone(), message.id.clone(), failure.id.clone(), None);
    assert_eq!(get().await.unwrap().response, r#"{"seen": true}"#);
    api.expunge_content(app.clone(), message.id.clone(), failure.id.clone()).await.unwrap();
    assert_eq!(get().await.unwrap().response, "EXPUNGED");
}

#[tokio::test]
async fn lists_can_be_filtered() {
    let pair = Pair::open("Filters").await;
    let channels = |name: &str| Some([name.to_owned()].into());
    let one = MessageIn { channels: channels("one"), tags: channels("red"), ..message("invoice.paid") };
    let (first, success, failure) = pair.sent(one).await;
    let (second, ..) = pair.sent(MessageIn { channels: channels("two"), ..message("invoice.sent") }).await;
    let (older, newer) = (first.id.clone(), second.id.clone());
    let both = vec![newer.clone(), older.clone()];
    let (api, app) = (pair.scene.svix.message_attempt(), pair.scene.app());
    let all = MessageAttemptListByEndpointOptions::default;
    for (options, expected) in [
        (all(), both.clone()),
        (MessageAttemptListByEndpointOptions { status: Some(MessageStatus::Fail), ..all() }, both.clone()),
        (MessageAttemptListByEndpointOptions { status: Some(MessageStatus::Success), ..all() }, vec![]),
        (
            MessageAttemptListByEndpointOptions {
                status_code_class: Some(StatusCodeClass::Code4xx),
                ..all()
            },
            both.clone(),
        ),
        (
            MessageAttemptListByEndpointOptions {
                event_types: Some(["invoice.paid".into()].into()),
                ..all()
            },
            vec![older.clone()],
        ),
        (MessageAttemptListByEndpointOptions { channel: Some("two".into()), ..all() }, vec![newer.clone()]),
        (MessageAttemptListByEndpointOptions { tag: Some("red".into()), ..all() }, vec![older.clone()]),
        (MessageAttemptListByEndpointOptions { after: Some(minutes_ago(60)), ..all() }, both.clone()),
        (MessageAttemptListByEndpointOptions { before: Some(minutes_ago(60)), ..all() }, vec![]),
        (MessageAttemptListByEndpointOptions { limit: Some(1), ..all() }, vec![newer.clone()]),
    ] {
        let found = api.list_by_endpoint(app.clone(), pair.fails.id.clone(), Some(options)).await.unwrap();
        let ids: Vec<_> = found.data.into_iter().map(|attempt| attempt.msg_id).collect();
        assert_eq!(ids, expected);
    }
    let all = MessageAttemptListByMsgOptions::default;
    for (options, expected) in [
        (MessageAttemptListByMsgOptions { status: Some(MessageStatus::Success), ..all() }, success.id),
        (MessageAttemptListByMsgOptions { endpoint_id: Some(pair.fails.id.clone()), ..all() }, failure.id),
    ] {
        let found = api.list_by_msg(app.clone(), older.clone(), Some(options)).await.unwrap();
        let ids: Vec<_> = found.data.into_iter().map(|attempt| attempt.id).collect();
        assert_eq!(ids, [expected]);
    }
}

#[tokio::test]
async fn an_endpoints_messages_and_a_messages_destinations_are_listed_with_their_state() {
    let pair = Pair::open("States").await;
    let (message, ..) = pair.sent(message("invoice.paid")).await;
    let (api, app) = (pair.scene.svix.message_attempt(), pair.scene.app());
    let mut states =
        vec![(pair.works.id.clone(), MessageStatus::Success), (pair.fails.id.clone(), MessageStatus::Fail)];
    for (endpoint, status) in &states {
        let found = api.list_attempted_messages(app.clone(), endpoint.clone(), None).await.unwrap();
        let found: Vec<_> = found.data.into_iter().map(|one| (one.id, one.status)).collect();
        assert_eq!(found, [(message.id.clone(), *status)]);
    }
    let found = api.list_attempted_destinations(app, message.id, None).await.unwrap();
    let mut found: Vec<_> = found.data.into_iter().map(|one| (one.id, one.status)).collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    states.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(found, states);
}

#[tokio::test]
async fn a_message_is_resent() {
    let pair = Pair::open("Resend").await;
    let (message, ..) = pair.sent(message("invoice.paid")).await;
    let first = pair.bad.next();
    pair.bad.answer(204);
    let (api, app) = (pair.scene.svix.message_attempt(), pair.scene.app());
    api.resend(app.clone(), message.id, pair.fails.id.clone(), None).await.unwrap();
    assert_eq!(pair.bad.next().body, first.body);
    let by_hand = eventually("an attempt by hand", async || {
        let found = api.list_by_endpoint(app.clone(), pair.fails.id.clone(), None).await.unwrap();
        found.data.into_iter().find(|attempt| attempt.trigger_type == MessageAttemptTriggerType::Manual)
    })
    .await;
    assert_eq!(by_hand.status, MessageStatus::Success);
}

#[tokio::test]
async fn failed_messages_are_recovered_by_a_finite_task() {
    let pair = Pair::open("Recovery").await;
    pair.sent(message("invoice.paid")).await;
    pair.bad.next();
    pair.bad.answer(204);
    let (svix, since) = (&pair.scene.svix, minutes_ago(1));
    let task = svix.endpoint().recover(pair.scene.app(), pair.fails.id, RecoverIn::new(since), None).await;
    let task = task.unwrap();
    assert_eq!(task.task, BackgroundTaskType::EndpointRecover);
    assert_eq!(pair.bad.next().json(), json!({"invoice": 42}));
    eventually("the end of the task", async || {
        let now = svix.background_task().get(task.id.clone()).await.unwrap();
        (now.status == BackgroundTaskStatus::Finished).then_some(())
    })
    .await;
    let options = BackgroundTaskListOptions { task: Some(task.task), limit: Some(250), ..Default::default() };
    let listed = svix.background_task().list(Some(options)).await.unwrap();
    assert!(listed.data.iter().any(|one| one.id == task.id));
}

#[tokio::test]
async fn a_new_endpoint_gets_what_it_has_missed() {
    let scene = Scene::open("Missing").await;
    let message = scene.send().await;
    let there = hook(204);
    let endpoint = scene.endpoint(&there).await;
    let since = ReplayIn::new(minutes_ago(1));
    scene.svix.endpoint().replay_missing(scene.app(), endpoint.id, since, None).await.unwrap();
    assert_eq!(there.next().headers["svix-id"], message.id);
}
