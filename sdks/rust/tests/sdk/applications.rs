use js_option::JsOption;
use sdk_rust::{client, unique};
use std::collections::BTreeMap;
use svix::api::ApplicationListOptions;
use svix::models::{ApplicationIn, ApplicationPatch, Ordering};

fn application(name: &str, uid: &str) -> ApplicationIn {
    ApplicationIn { uid: Some(uid.into()), ..ApplicationIn::new(name.into()) }
}

#[tokio::test]
async fn created_resources_are_read_back() {
    let (svix, uid) = (client(), unique("customer"));
    let metadata = BTreeMap::from([("plan".to_owned(), "gold".to_owned())]);
    let given = ApplicationIn { metadata: Some(metadata.clone()), ..application("Customer", &uid) };
    let made = svix.application().create(given, None).await.unwrap();
    assert_eq!(made.name, "Customer");
    assert_eq!((made.uid.as_deref(), &made.metadata), (Some(uid.as_str()), &metadata));
    for key in [made.id.clone(), uid] {
        assert_eq!(svix.application().get(key).await.unwrap(), made);
    }
}

#[tokio::test]
async fn get_or_create_makes_one_only() {
    let (svix, uid) = (client(), unique("customer"));
    let first = svix.application().get_or_create(application("First", &uid), None).await.unwrap();
    let second = svix.application().get_or_create(application("Second", &uid), None).await.unwrap();
    assert_eq!((second.id, second.name.as_str()), (first.id, "First"));
}

#[tokio::test]
async fn an_update_replaces_every_field_or_creates() {
    let (svix, uid) = (client(), unique("customer"));
    let metadata = Some([("a".to_owned(), "1".to_owned())].into());
    let old = ApplicationIn { metadata, ..application("Old", &uid) };
    let made = svix.application().upsert(uid.clone(), old).await.unwrap();
    let changed = svix.application().upsert(uid.clone(), application("New", &uid)).await.unwrap();
    assert_eq!((changed.id, changed.name.as_str(), changed.metadata), (made.id, "New", [].into()));
}

#[tokio::test]
async fn a_patch_changes_only_what_is_given() {
    let (svix, uid) = (client(), unique("customer"));
    let made = svix.application().create(application("Old", &uid), None).await.unwrap();
    let name = ApplicationPatch { name: Some("New".into()), ..ApplicationPatch::new() };
    let named = svix.application().patch(made.id.clone(), name).await.unwrap();
    assert_eq!((named.name.as_str(), named.uid), ("New", Some(uid)));
    let nothing = ApplicationPatch { uid: JsOption::Null, ..ApplicationPatch::new() };
    let bare = svix.application().patch(made.id, nothing).await.unwrap();
    assert_eq!((bare.name.as_str(), bare.uid), ("New", None));
}

#[tokio::test]
async fn a_deleted_one_is_gone_and_its_uid_is_free() {
    let (svix, uid) = (client(), unique("customer"));
    let made = svix.application().create(application("Short-lived", &uid), None).await.unwrap();
    svix.application().delete(made.id.clone()).await.unwrap();
    let again = svix.application().create(application("Again", &uid), None).await.unwrap();
    assert_ne!(again.id, made.id);
}

#[tokio::test]
async fn pages_lead_to_everything() {
    let svix = client();
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(svix.application().create(ApplicationIn::new("Page".into()), None).await.unwrap().id);
    }
    let (mut listed, mut iterator) = (Vec::new(), None);
    loop {
        let order = Some(Ordering::Ascending);
        let options =
            ApplicationListOptions { limit: Some(3), iterator: iterator.take(), order, ..Default::default() };
        let page = svix.application().list(Some(options)).await.unwrap();
        listed.extend(page.data.into_iter().map(|app| app.id));
        if page.done {
            break;
        }
        iterator = page.iterator;
    }
    assert!(listed.is_sorted());
    assert!(made.iter().all(|id| listed.contains(id)));
}
