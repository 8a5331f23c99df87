use crate::running::Running;
use serde_json::json;

#[tokio::test]
async fn a_repeated_key_gets_the_first_answer_and_makes_nothing_new() {
    let server = Running::start().await;
    let app = server.application().await;
    let first = server.client.post_once("/app", "k1", r#"{"name":"first"}"#).await.expect(201);
    let again = server.client.post_once("/app", "k1", r#"{"name":"another"}"#).await.expect(201);
    assert_eq!(first, again);

    let path = format!("/app/{app}/endpoint");
    let first = server.client.post_once(&path, "k1", r#"{"url":"https://example.com/1"}"#).await.expect(201);
    let again = server.client.post_once(&path, "k1", r#"{"url":"https://example.com/2"}"#).await.expect(201);
    assert_eq!(first, again);

    let path = format!("/app/{app}/msg");
    let message = r#"{"eventType":"a.b","payload":{"n":1.0},"eventId":"e","channels":["y","x"]}"#;
    let first = server.client.post_once(&path, "k1", message).await.expect(202);
    let again = server.client.post_once(&path, "k1", message).await.expect(202);
    assert_eq!(first, again);
    assert_eq!(again["payload"], json!({"n": 1.0}));

    assert_eq!(server.stored(&app).await, [2, 1, 1]);
}

#[tokio::test]
async fn another_key_caller_or_path_is_another_request() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    let message = r#"{"eventType":"a","payload":{}}"#;
    let mut seen = std::collections::BTreeSet::new();
    let other_path = format!("{path}?with_content=false");
    for (path, key) in [(&path, "k1"), (&path, "k2"), (&other_path, "k1")] {
        let sent = server.client.post_once(path, key, message).await.expect(202);
        assert!(seen.insert(sent["id"].to_string()));
    }
    let mut other_caller = server.client.clone();
    other_caller.authorization = other_caller.authorization.map(|value| value.replace("Bearer", "bearer"));
    let sent = other_caller.post_once(&path, "k1", message).await.expect(202);
    assert!(seen.insert(sent["id"].to_string()));
}

#[tokio::test]
async fn a_refused_request_frees_its_key() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    server.client.post_once(&path, "k", r#"{"eventType":"a b","payload":{}}"#).await.expect(422);
    server.client.post_once(&path, "k", r#"{"eventType":"a","payload":{}}"#).await.expect(202);
}

#[tokio::test]
async fn repeats_at_the_same_time_make_one_message() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    let sends = (0..16).map(|_| server.client.post_once(&path, "k", r#"{"eventType":"a","payload":{}}"#));
    let replies = futures_util::future::join_all(sends).await;
    let ids: std::collections::BTreeSet<_> =
        replies.iter().map(|reply| reply.expect(202)["id"].to_string()).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(server.stored(&app).await, [1, 0, 1]);
}

#[tokio::test]
async fn a_key_is_remembered_over_a_restart() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    let message = r#"{"eventType":"a","payload":{}}"#;
    let first = server.client.post_once(&path, "k", message).await.expect(202);
    let server = Running::within(server.stop().await, |_| {}).await;
    assert_eq!(server.client.post_once(&path, "k", message).await.expect(202), first);
    assert_eq!(server.stored(&app).await, [1, 0, 1]);
}
