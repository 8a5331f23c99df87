use sdk_rust::{Scene, client, hook, message, minutes_ago, refused, unique};
use serde_json::json;
use svix::api::{MessageCreateOptions, MessageGetOptions, MessageListOptions};
use svix::models::{ApplicationIn, EndpointIn, MessageIn};
use svix::webhooks::Webhook;

const WITH_CONTENT: Option<MessageGetOptions> = Some(MessageGetOptions { with_content: Some(true) });

#[tokio::test]
async fn created_resources_are_read_back() {
    let scene = Scene::open("Messages").await;
    let event_id = unique("event");
    let given = MessageIn {
        event_id: Some(event_id.clone()),
        channels: Some(["project_1".to_owned()].into()),
        tags: Some(["first".to_owned()].into()),
        ..message("invoice.paid")
    };
    let made = scene.send_as(given.clone()).await;
    assert_eq!((&made.event_id, made.event_type.as_str()), (&Some(event_id.clone()), "invoice.paid"));
    assert_eq!((&made.channels, &made.tags), (&given.channels, &given.tags));
    for key in [made.id.clone(), event_id] {
        let read = scene.svix.message().get(scene.app(), key, WITH_CONTENT).await.unwrap();
        assert_eq!((&read.id, read.payload), (&made.id, json!({"invoice": 42})));
    }
    let again = scene.svix.message().create(scene.app(), given, None).await;
    assert_eq!(refused(again), (409, "conflict".into()));
}

#[tokio::test]
async fn one_idempotency_key_is_one_message() {
    let scene = Scene::open("Once").await;
    let key = unique("once");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let options = MessageCreateOptions { idempotency_key: Some(key.clone()), ..Default::default() };
        let sent = scene.svix.message().create(scene.app(), message("invoice.paid"), Some(options)).await;
        ids.push(sent.unwrap().id);
    }
    assert_eq!(ids[0], ids[1]);
}

#[tokio::test]
async fn an_application_can_be_made_along_with_a_message() {
    let (svix, uid) = (client(), unique("customer"));
    let application = ApplicationIn { uid: Some(uid.clone()), ..ApplicationIn::new("Made along".into()) };
    let given = MessageIn { application: Some(application), ..message("invoice.paid") };
    svix.message().create(uid.clone(), given, None).await.unwrap();
    assert_eq!(svix.application().get(uid).await.unwrap().name, "Made along");
}

#[tokio::test]
async fn lists_can_be_filtered_and_paged() {
    let scene = Scene::open("Filters").await;
    let channels = |name: &str| Some([name.to_owned()].into());
    let paid = MessageIn { channels: channels("one"), tags: channels("red"), ..message("invoice.paid") };
    let paid = scene.send_as(paid).await.id;
    let sent = MessageIn { channels: channels("two"), ..message("invoice.sent") };
    let sent = scene.send_as(sent).await.id;
    let mut both = vec![paid.clone(), sent.clone()];
    both.sort();
    both.reverse();
    let all = MessageListOptions::default;
    for (options, expected) in [
        (all(), both.clone()),
        (MessageListOptions { limit: Some(1), ..all() }, vec![both[0].clone()]),
        (
            MessageListOptions { limit: Some(1), iterator: Some(both[0].clone()), ..all() },
            vec![both[1].clone()],
        ),
        (
            MessageListOptions { event_types: Some(["invoice.paid".into()].into()), ..all() },
            vec![paid.clone()],
        ),
        (MessageListOptions { channel: Some("two".into()), ..all() }, vec![sent]),
        (MessageListOptions { tag: Some("red".into()), ..all() }, vec![paid]),
        (MessageListOptions { after: Some(minutes_ago(60)), ..all() }, both),
        (MessageListOptions { before: Some(minutes_ago(60)), ..all() }, vec![]),
    ] {
        let found = scene.svix.message().list(scene.app(), Some(options)).await.unwrap();
        let ids: Vec<_> = found.data.into_iter().map(|message| message.id).collect();
        assert_eq!(ids, expected);
    }
}

#[tokio::test]
async fn a_payload_can_be_expunged() {
    let scene = Scene::open("Expunged").await;
    let made = scene.send().await.id;
    scene.svix.message().expunge_content(scene.app(), made.clone()).await.unwrap();
    let read = scene.svix.message().get(scene.app(), made, WITH_CONTENT).await.unwrap();
    assert_eq!(read.payload, json!({"expired": true}));
}

#[tokio::test]
async fn a_raw_payload_goes_out_as_it_is() {
    let scene = Scene::open("Raw").await;
    let there = hook(204);
    scene.endpoint(&there).await;
    let text = r#"{ "spaces":   "stay", "n": 1.0 }"#;
    scene.send_as(MessageIn::new_raw_payload("invoice.paid".into(), text.into())).await;
    assert_eq!(String::from_utf8(there.next().body).unwrap(), text);
}

#[tokio::test]
async fn the_sdk_verifies_what_it_is_sent_with_either_headers() {
    for (profile, name) in [("svix", "svix-id"), ("standard", "webhook-id")] {
        let scene = Scene::open("Signatures").await;
        let there = hook(204);
        let endpoint = scene.endpoint(&there).await;
        scene.set(&endpoint, &json!({ "profile": profile }).to_string());
        let message = scene.send().await;
        let came = there.next();
        assert_eq!(came.headers[name], message.id);
        let webhook = Webhook::new(&scene.secret(&endpoint).await).unwrap();
        webhook.verify(&came.body, &came.headers).unwrap();
        assert_eq!(came.json(), json!({"invoice": 42}));
        webhook.verify(b"{\"invoice\":43}", &came.headers).unwrap_err();
    }
}

#[tokio::test]
async fn an_endpoint_gets_the_channels_that_it_listens_to() {
    let scene = Scene::open("Channels").await;
    let there = hook(204);
    let listening =
        EndpointIn { channels: Some(["one".to_owned()].into()), ..EndpointIn::new(there.url.clone()) };
    scene.endpoint_as(listening).await;
    scene.send().await;
    let heard = MessageIn { channels: Some(["one".to_owned()].into()), ..message("invoice.paid") };
    let heard = scene.send_as(heard).await;
    assert_eq!(there.next().headers["svix-id"], heard.id);
    there.stays_silent();
}
