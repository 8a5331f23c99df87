use sdk_rust::{Scene, client, hook, message, refused, unique};
use serde_json::json;
use svix::api::{EventTypeDeleteOptions, EventTypeListOptions, Svix};
use svix::models::{EndpointIn, EventTypeIn, EventTypePatch, EventTypeUpsertIn};

async fn names(svix: &Svix, include_archived: bool) -> Vec<String> {
    let (mut listed, mut iterator) = (Vec::new(), None);
    loop {
        let options = EventTypeListOptions {
            limit: Some(250),
            iterator: iterator.take(),
            include_archived: Some(include_archived),
            ..Default::default()
        };
        let page = svix.event_type().list(Some(options)).await.unwrap();
        listed.extend(page.data.into_iter().map(|kind| kind.name));
        if page.done {
            return listed;
        }
        iterator = page.iterator;
    }
}

#[tokio::test]
async fn one_is_created_read_changed_archived_and_expunged() {
    let (svix, name) = (client(), unique("invoice"));
    let schemas = json!({"1": {"type": "object", "required": ["invoice"]}});
    let given =
        EventTypeIn { schemas: Some(schemas.clone()), ..EventTypeIn::new(name.clone(), "Paid".into()) };
    let made = svix.event_type().create(given, None).await.unwrap();
    assert_eq!((&made.name, &made.schemas), (&name, &Some(schemas.clone())));
    assert_eq!(svix.event_type().get(name.clone()).await.unwrap(), made);
    let description = EventTypePatch { description: Some("Settled".into()), ..EventTypePatch::new() };
    let patched = svix.event_type().patch(name.clone(), description).await.unwrap();
    assert_eq!((patched.description.as_str(), patched.schemas), ("Settled", Some(schemas)));
    let whole = EventTypeUpsertIn::new("Replaced".into());
    let replaced = svix.event_type().upsert(name.clone(), whole).await.unwrap();
    assert_eq!((replaced.description.as_str(), replaced.schemas), ("Replaced", None));
    assert!(names(&svix, false).await.contains(&name));
    svix.event_type().delete(name.clone(), None).await.unwrap();
    assert_eq!(svix.event_type().get(name.clone()).await.unwrap().archived, Some(true));
    assert!(!names(&svix, false).await.contains(&name));
    assert!(names(&svix, true).await.contains(&name));
    let for_ever = EventTypeDeleteOptions { expunge: Some(true) };
    svix.event_type().delete(name.clone(), Some(for_ever)).await.unwrap();
    assert_eq!(refused(svix.event_type().get(name).await), (404, "not_found".into()));
}

#[tokio::test]
async fn an_endpoint_gets_what_it_is_subscribed_to() {
    let scene = Scene::open("Subscriptions").await;
    let (wanted, other) = (scene.event_type().await, scene.event_type().await);
    let there = hook(204);
    let subscribed =
        EndpointIn { event_types: Some([wanted.clone()].into()), ..EndpointIn::new(there.url.clone()) };
    scene.endpoint_as(subscribed).await;
    scene.send_as(message(&other)).await;
    let expected = scene.send_as(message(&wanted)).await;
    assert_eq!(there.next().headers["svix-id"], expected.id);
    there.stays_silent();
}
