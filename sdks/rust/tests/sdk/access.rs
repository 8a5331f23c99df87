use sdk_rust::{Scene, client, client_with, eventually, hook, invalid, refused, unique};
use svix::api::Svix;
use svix::models::{
    AppPortalAccessIn, ApplicationIn, ApplicationTokenExpireIn, EndpointIn, OperationalWebhookEndpointIn,
    OperationalWebhookEndpointSecretIn, OperationalWebhookEndpointUpsertIn,
};
use svix::webhooks::Webhook;

#[tokio::test]
async fn errors_come_as_those_of_the_sdk() {
    let scene = Scene::open("Errors").await;
    let svix = &scene.svix;
    let nobody = client_with("nobody".into());
    assert_eq!(refused(nobody.application().list(None).await), (401, "authentication_failed".into()));
    let missing = (404, "not_found".to_owned());
    assert_eq!(refused(svix.application().get("app_nobody".into()).await), missing);
    assert_eq!(refused(svix.endpoint().get(scene.app(), "ep_nobody".into()).await), missing);
    assert_eq!(refused(svix.message().get(scene.app(), "msg_nobody".into(), None).await), missing);
    let taken = ApplicationIn { uid: Some(unique("customer")), ..ApplicationIn::new("First".into()) };
    svix.application().create(taken.clone(), None).await.unwrap();
    let second = svix.application().create(taken, None).await;
    assert_eq!(refused(second), (409, "conflict".into()));
    let wrong = EndpointIn { throttle_rate: Some(0), ..EndpointIn::new("nothing".into()) };
    let mut places = invalid(svix.endpoint().create(scene.app(), wrong, None).await);
    places.sort();
    assert_eq!(places, [["body", "throttleRate"], ["body", "url"]]);
}

async fn portal(scene: &Scene) -> Svix {
    let access = AppPortalAccessIn::new();
    let access = scene.svix.authentication().app_portal_access(scene.app(), access, None).await.unwrap();
    client_with(access.token)
}

#[tokio::test]
async fn a_portal_token_reaches_its_own_application_only_until_it_logs_out() {
    let scene = Scene::open("Portal").await;
    let portal = portal(&scene).await;
    assert!(portal.endpoint().list(scene.app(), None).await.unwrap().data.is_empty());
    let other = Scene::open("Another").await;
    assert_eq!(refused(portal.endpoint().list(other.app(), None).await).0, 404);
    assert_eq!(refused(portal.application().list(None).await).0, 403);
    portal.authentication().logout(None).await.unwrap();
    assert_eq!(refused(portal.endpoint().list(scene.app(), None).await).0, 401);
}

#[tokio::test]
async fn a_token_shows_its_owner() {
    let scene = Scene::open("Whoami").await;
    let portal = portal(&scene).await;
    scene.svix.authentication().whoami().await.unwrap();
    portal.authentication().whoami().await.unwrap();
    let nobody = client_with("nobody".into());
    assert_eq!(refused(nobody.authentication().whoami().await).0, 401);
}

#[tokio::test]
async fn all_portal_tokens_of_an_application_can_be_ended() {
    let scene = Scene::open("Ended").await;
    let portal = portal(&scene).await;
    let now = ApplicationTokenExpireIn { expiry: Some(0), session_ids: None };
    scene.svix.authentication().expire_all(scene.app(), now, None).await.unwrap();
    assert_eq!(refused(portal.endpoint().list(scene.app(), None).await).0, 401);
}

#[tokio::test]
async fn an_operational_endpoint_is_created_changed_notified_and_deleted() {
    let scene = Scene::open("Operations").await;
    let svix = client();
    let webhooks = svix.operational_webhook();
    let api = webhooks.endpoint();
    let there = hook(204);
    let made = api.create(OperationalWebhookEndpointIn::new(there.url.clone()), None).await.unwrap();
    assert_eq!(api.get(made.id.clone()).await.unwrap(), made);
    assert!(api.list(None).await.unwrap().data.iter().any(|one| one.id == made.id));
    let changed = OperationalWebhookEndpointUpsertIn::new(there.url.clone());
    api.upsert(made.id.clone(), changed).await.unwrap();
    let rotation = OperationalWebhookEndpointSecretIn::new();
    api.rotate_secret(made.id.clone(), rotation, None).await.unwrap();
    let webhook = Webhook::new(&api.get_secret(made.id.clone()).await.unwrap().key).unwrap();
    let endpoint = scene.endpoint_as(EndpointIn::new("https://example.com/".into())).await;
    let told = eventually("the news of the endpoint", async || {
        let came = there.next();
        webhook.verify(&came.body, &came.headers).unwrap();
        Some(came.json()).filter(|told| told["data"]["endpointId"] == endpoint.id)
    })
    .await;
    api.delete(made.id).await.unwrap();
    assert_eq!(told["type"], "endpoint.created");
}
