use crate::support::receiver::Receiver;
use crate::support::running::Running;
use serde_json::json;
use tokio::net::TcpListener;

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
async fn a_key_is_the_same_by_the_id_and_by_the_uid_of_an_application() {
    let server = Running::start().await;
    let ids = ["sol", "luna"].map(|uid| {
        let body = format!(r#"{{"name":"{uid}","uid":"{uid}"}}"#);
        async { server.client.post("/app", body).await.expect(201)["id"].as_str().unwrap().to_owned() }
    });
    let [sol, luna] = ids;
    let (sol, luna) = (sol.await, luna.await);
    let message = r#"{"eventType":"a","payload":{}}"#;
    let dispatch = r#"{"url":"https://example.com/","payload":{}}"#;
    let job = r#"{"jobId":"j","jobType":"t","status":"completed","webhookUrl":"https://example.com/"}"#;
    for (path, body) in [("msg", message), ("dispatch", dispatch), ("job", job)] {
        let by = async |app: &str| {
            let sent = server.client.post_once(&format!("/app/{app}/{path}"), "k", body).await.expect(202);
            sent["id"].as_str().unwrap().to_owned()
        };
        let first = by(&sol).await;
        assert_eq!(by("sol").await, first, "{path}");
        // Another application has its own keys.
        let other = by("luna").await;
        assert_ne!(other, first, "{path}");
        assert_eq!(by(&luna).await, other, "{path}");
    }
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

#[tokio::test]
async fn a_repeated_resend_sends_once() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(500, "no").await;
    let message = server.message(&app, "a").await;
    let made = server.endpoint(&app, json!({"url": receiver.url("/"), "policy": "quick"})).await;
    let endpoint = format!("/app/{app}/endpoint/{}", made["id"].as_str().unwrap());
    let path = format!("/app/{app}/msg/{message}/endpoint/{}/resend", made["id"].as_str().unwrap());
    // Never sent before; then settled; a failure is an attempt too.
    for (key, status) in [("k1", 500), ("k2", 200), ("k3", 200)] {
        receiver.answer(status);
        let first = server.client.post_once(&path, key, "").await.expect(202);
        assert_eq!(first["attempt"]["responseStatusCode"], status);
        for _ in 0..2 {
            assert_eq!(server.client.post_once(&path, key, "").await.expect(202), first);
        }
        receiver.next().await;
    }
    // Where one is refused, one that was made before is not.
    server.client.patch(&endpoint, r#"{"disabled": true}"#).await.expect(200);
    server.client.post_once(&path, "k4", "").await.expect(409);
    server.client.post_once(&path, "k1", "").await.expect(202);
    server.client.patch(&endpoint, r#"{"disabled": false}"#).await.expect(200);
    // A refusal frees its key, and the history has the attempts.
    server.client.post_once(&path, "k4", "").await.expect(202);
    receiver.next().await;
    let attempts = server.client.get(&format!("/app/{app}/attempt/msg/{message}")).await.expect(200);
    assert_eq!(attempts["data"].as_array().unwrap().len(), 4);

    let folder = server.stop().await;
    let open = |config: &mut aldaba::config::Config| {
        config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    };
    let server = Running::within(folder, open).await;
    server.client.post_once(&path, "k1", "").await.expect(202);
    server.client.post_once(&path, "k5", "").await.expect(202);
    receiver.next().await;
    receiver.nothing_more().await;
    server.stop().await;
}

#[tokio::test]
async fn a_repeated_resend_of_a_delivery_that_waits_sends_once() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(500, "no").await;
    let made = server.endpoint(&app, json!({"url": receiver.url("/"), "policy": "standard"})).await;
    let message = server.message(&app, "a").await;
    receiver.next().await;
    let endpoint = made["id"].as_str().unwrap();
    let shown = format!("/app/{app}/msg/{message}/endpoint");
    server.client.get_until(&shown, |page| page["data"][0]["nextAttempt"].is_string()).await;
    let path = format!("{shown}/{endpoint}/resend");
    for _ in 0..3 {
        server.client.post_once(&path, "k", "").await.expect(202);
    }
    receiver.next().await;
    assert!(receiver.is_quiet_for(500).await);
    server.stop().await;
}

#[tokio::test]
async fn a_resend_that_is_repeated_while_it_is_under_way_is_not_run_twice() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let message = server.message(&app, "a").await;
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let made = server.endpoint(&app, json!({"url": url, "policy": "quick"})).await;
    let path = format!("/app/{app}/msg/{message}/endpoint/{}/resend", made["id"].as_str().unwrap());
    let (first, second) = tokio::join!(server.client.post_once(&path, "k", ""), async {
        let hangs_up_later = silent.accept().await.unwrap();
        let second = server.client.post_once(&path, "k", "").await;
        drop(hangs_up_later);
        second
    });
    first.expect(202);
    second.expect(409);
    let (third, another) = tokio::join!(
        server.client.post_once(&path, "k", ""),
        tokio::time::timeout(std::time::Duration::from_millis(300), silent.accept())
    );
    third.expect(202);
    assert!(another.is_err(), "nothing is sent");
    let attempts = server.client.get(&format!("/app/{app}/attempt/msg/{message}")).await.expect(200);
    assert_eq!(attempts["data"].as_array().unwrap().len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_blank_key_counts_as_absent() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    for (n, key) in ["", "", " ", "\t "].into_iter().enumerate() {
        let body = json!({"eventType": "a", "payload": {"n": n}}).to_string();
        let sent = server.client.post_once(&path, key, body).await.expect(202);
        assert_eq!(sent["payload"], json!({"n": n}));
    }
    assert_eq!(server.stored(&app).await, [1, 0, 4]);
}

#[tokio::test]
async fn a_repeat_of_a_request_whose_resource_was_deleted_is_an_error() {
    let server = Running::start().await;
    let app = server.application().await;
    for (list, body, shown, query) in [
        ("/app".to_owned(), r#"{"name": "n"}"#, "id", ""),
        (format!("/app/{app}/endpoint"), r#"{"url": "https://example.com"}"#, "id", ""),
        ("/event-type".to_owned(), r#"{"name": "a", "description": ""}"#, "name", "?expunge=true"),
    ] {
        let made = server.client.post_once(&list, "k", body).await.expect(201);
        let path = format!("{list}/{}{query}", made[shown].as_str().unwrap());
        server.client.delete(&path).await.expect(204);
        let again = server.client.post_once(&list, "k", body).await.expect(409);
        let detail = again["detail"].as_str().unwrap();
        assert!(detail.contains("idempotency-key") && detail.contains("deleted"), "{detail}");
        server.client.post_once(&list, "another", body).await.expect(201);
    }
}
