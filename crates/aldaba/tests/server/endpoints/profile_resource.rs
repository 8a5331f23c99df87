use crate::support::running::{Running, token};
use serde_json::{Value, json};

fn plain(name: &str) -> Value {
    json!({"name": name, "headers": {"X-Id": "{id}"}})
}

#[tokio::test]
async fn the_built_in_profiles_are_listed_and_shown() {
    let server = Running::start().await;
    let list = server.client.get("/profile").await.expect(200);
    let names: Vec<_> = list["data"].as_array().unwrap().iter().map(|profile| &profile["name"]).collect();
    assert_eq!(names, ["branded", "job-status", "standard", "svix", "x-webhook"]);
    assert_eq!(list["done"], true);
    let shown = server.client.get("/profile/branded").await.expect(200);
    let expected = json!({
        "name": "branded",
        "builtIn": true,
        "headers": {
            "Aldaba-Event-Id": "{eventId}",
            "Aldaba-Event-Type": "{type}",
            "Aldaba-Signature": "{signature}",
        },
        "signature": {"scheme": "timestamped", "hash": "sha256"},
    });
    assert_eq!(shown, expected);
    server.client.get("/profile/acme").await.expect(404);
    // A shown profile is a good start for a custom one.
    for built_in in list["data"].as_array().unwrap() {
        let mut mine = built_in.clone();
        mine["name"] = json!(format!("my-{}", built_in["name"].as_str().unwrap()));
        let made = server.client.post("/profile", mine.to_string()).await.expect(201);
        mine["builtIn"] = json!(false);
        assert_eq!(made, mine);
    }
}

#[tokio::test]
async fn a_profile_is_made_changed_and_deleted() {
    let server = Running::start().await;
    let made = server.client.post("/profile", plain("mine").to_string()).await.expect(201);
    let expected = json!({"name": "mine", "builtIn": false, "headers": {"X-Id": "{id}"}, "signature": null});
    assert_eq!(made, expected);
    assert_eq!(server.client.get("/profile/mine").await.expect(200), made);
    server.client.post("/profile", plain("mine").to_string()).await.expect(409);

    let app = server.application().await;
    let endpoint = server.endpoint(&app, json!({"profile": "mine"})).await;
    let in_use = server.client.delete("/profile/mine").await.expect(409);
    let user = format!("The endpoint {} uses the wire profile `mine`.", endpoint["id"].as_str().unwrap());
    assert!(in_use["detail"].as_str().unwrap().starts_with(&user), "{in_use}");
    let mut changed = made.clone();
    changed["headers"]["X-Kind"] = json!("{type}");
    assert_eq!(server.client.put("/profile/mine", changed.to_string()).await.expect(200), changed);
    let path = format!("/app/{app}/endpoint/{}", endpoint["id"].as_str().unwrap());
    let patched = server.client.patch(&path, r#"{"profile":"svix"}"#).await.expect(200);
    assert_eq!(patched["profile"], "svix");
    server.client.delete("/profile/mine").await.expect(204);
    server.client.get("/profile/mine").await.expect(404);
    server.client.delete("/profile/mine").await.expect(404);
}

#[tokio::test]
async fn a_put_makes_a_profile_that_is_not_there_and_replaces_one_that_is() {
    let server = Running::start().await;
    let made = server.client.put("/profile/mine", plain("mine").to_string()).await.expect(201);
    assert_eq!(server.client.get("/profile/mine").await.expect(200), made);
    assert_eq!(server.client.put("/profile/mine", made.to_string()).await.expect(200), made);
    let unnamed = r#"{"headers": {"X-Id": "{id}"}}"#;
    assert_eq!(server.client.put("/profile/other", unnamed).await.expect(201)["name"], "other");
    server.client.put("/profile/third", plain("mine").to_string()).await.expect(422);
    server.client.put("/profile/svix", unnamed).await.expect(409);
}

#[tokio::test]
async fn the_error_of_an_invalid_profile_names_the_field_and_the_reason() {
    let server = Running::start().await;
    let wrong = json!({
        "name": "mine",
        "headers": {"Host": "evil", "X-A": "{nobody}", "X-B": "a\r\nX-Evil: 1", "X-C": "fine"},
    });
    let refused = server.client.post("/profile", wrong.to_string()).await.expect(422);
    let places: Vec<_> = refused["detail"].as_array().unwrap().iter().map(|one| &one["loc"]).collect();
    let expected = ["Host", "X-A", "X-B"].map(|name| json!(["body", "headers", name]));
    assert_eq!(places, expected.iter().collect::<Vec<_>>(), "{refused}");
    assert!(
        refused["detail"][1]["msg"]
            .as_str()
            .unwrap()
            .starts_with("`{nobody}` is not a placeholder; known ones: ")
    );
    let unsigned = json!({"name": "mine", "headers": {"X-A": "{signature}"}});
    let refused = server.client.post("/profile", unsigned.to_string()).await.expect(422);
    assert_eq!(refused["detail"][0]["msg"], "uses `{signature}`, but the profile has no `signature`");
    for body in ["[]", "{", "", "null"] {
        server.client.post("/profile", body).await.expect(422);
    }
    server.client.post("/profile", plain("standard").to_string()).await.expect(409);
    server.client.put("/profile/svix", plain("svix").to_string()).await.expect(409);
    server.client.delete("/profile/x-webhook").await.expect(409);
    server.client.post("/profile", plain("mine").to_string()).await.expect(201);
    let refused = server.client.put("/profile/mine", plain("yours").to_string()).await.expect(422);
    assert_eq!(refused["detail"][0]["loc"], json!(["body", "name"]));
}

#[tokio::test]
async fn an_unknown_profile_is_refused_with_those_there_are() {
    let server = Running::start().await;
    server.client.post("/profile", plain("mine").to_string()).await.expect(201);
    let app = server.application().await;
    let path = format!("/app/{app}/endpoint");
    let body = json!({"url": "https://example.com/", "profile": "yours", "uid": "door"});
    let refused = server.client.post(&path, body.to_string()).await.expect(422);
    assert_eq!(refused["detail"][0]["loc"], json!(["body", "profile"]));
    let message =
        "unknown wire profile `yours`; there are: branded, job-status, mine, standard, svix, x-webhook";
    assert_eq!(refused["detail"][0]["msg"], message);
    server.endpoint(&app, json!({"uid": "door"})).await;
    let refused = server.client.patch(&format!("{path}/door"), r#"{"profile":"yours"}"#).await.expect(422);
    assert_eq!(refused["detail"][0]["msg"], message);
}

#[tokio::test]
async fn profiles_belong_to_their_organization() {
    let server = Running::start().await;
    server.client.post("/profile", plain("mine").to_string()).await.expect(201);
    let other = server.client.with_token(&token("org_23rb8YdGqMT0qIzpgGwdXfHirMv"));
    other.get("/profile/mine").await.expect(404);
    other.delete("/profile/mine").await.expect(404);
    other.put("/profile/mine", r#"{"headers": {"X-Other": "{id}"}}"#).await.expect(201);
    other.post("/profile", plain("mine").to_string()).await.expect(409);
    let theirs = other.get("/profile/mine").await.expect(200);
    assert_ne!(server.client.get("/profile/mine").await.expect(200), theirs);
    other.delete("/profile/mine").await.expect(204);
    server.client.get("/profile/mine").await.expect(200);
    server.client.anonymous().get("/profile").await.expect(401);
}

#[tokio::test]
async fn an_organization_has_as_many_profiles_as_it_may_have() {
    let server = Running::start().await;
    for number in 0..100 {
        server.client.post("/profile", plain(&format!("p{number}")).to_string()).await.expect(201);
    }
    let refused = server.client.post("/profile", plain("one-more").to_string()).await.expect(409);
    let detail = "The organization has 100 wire profiles of its own, as many as it may have. Nothing was stored; delete those that nobody uses";
    assert_eq!(refused["detail"], detail);
    server.client.put("/profile/p7", plain("p7").to_string()).await.expect(200);
    server.client.delete("/profile/p7").await.expect(204);
    server.client.post("/profile", plain("one-more").to_string()).await.expect(201);
}

#[tokio::test]
async fn an_invalid_version_is_refused_and_not_stored() {
    let server = Running::start().await;
    let app = server.application().await;
    for version in
        [json!(-1), json!(1.5), json!(""), json!("a b"), json!("x".repeat(33)), json!([1]), json!(true)]
    {
        let body = json!({"eventType": "a", "payload": {}, "version": version});
        let refused = server.client.post(&format!("/app/{app}/msg"), body.to_string()).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["body", "version"]), "{refused}");
    }
    assert_eq!(server.stored(&app).await[2], 0);
    let body = json!({"eventType": "a", "payload": {}, "version": 7});
    let sent = server.client.post_once(&format!("/app/{app}/msg"), "k", body.to_string()).await.expect(202);
    assert_eq!(sent["version"], "7", "a number is kept as its text");
    let again = server.client.post_once(&format!("/app/{app}/msg"), "k", body.to_string()).await.expect(202);
    assert_eq!(again, sent);
}
