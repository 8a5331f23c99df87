//! Messages and attempts as they are read back: filtered, walked both ways, within bounds of time.

use crate::credentials::tokens::{OTHER_ORGANIZATION, application_token};
use crate::support::client::Client;
use crate::support::receiver::{Arrival, Receiver};
use crate::support::running::{Running, token};
use crate::support::waiting::next_id_moment;
use aldaba_engine::{Clock, SystemClock};
use serde_json::{Value, json};
use std::net::SocketAddr;

fn ids(page: &Value) -> Vec<String> {
    page["data"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().into()).collect()
}

async fn list(client: &Client, path: &str) -> Vec<String> {
    let page = client.get(path).await.expect(200);
    assert_eq!(page["done"], true, "{page}");
    ids(&page)
}

/// The page of a list once it has this many items.
async fn until(server: &Running, path: &str, count: usize) -> Value {
    server.client.get_until(path, |page| page["data"].as_array().unwrap().len() == count).await
}

/// Fails for bodies that say so.
async fn moody() -> Receiver {
    let judge = |arrival: &Arrival| match serde_json::from_slice::<Value>(&arrival.body) {
        Ok(body) => body["answer"].as_u64().map_or(200, |status| status as u16),
        Err(_) => 200,
    };
    Receiver::judging(SocketAddr::from(([127, 0, 0, 1], 0)), "said", judge).await
}

/// Six messages of two types, channels and tags, to two endpoints; every third fails for good.
struct Scene {
    server: Running,
    app: String,
    endpoints: [String; 2],
    messages: Vec<Value>,
    _receiver: Receiver,
}

impl Scene {
    async fn new() -> Self {
        let server = Running::delivering().await;
        let receiver = moody().await;
        let app = server.application().await;
        let policy = json!({"name": "once", "schedule": {"type": "list", "delays": ["1h"]}, "jitter": {"type": "none"},
            "rejects": ["404"]});
        server.client.post("/policy", policy.to_string()).await.expect(201);
        let mut endpoints = Vec::new();
        for uid in ["one", "two"] {
            let more = json!({"url": receiver.url("/hook"), "policy": "once", "uid": uid});
            endpoints.push(server.endpoint(&app, more).await["id"].as_str().unwrap().to_owned());
        }
        let mut messages = Vec::new();
        for number in 0..6 {
            let kind = ["a", "b"][number % 2];
            let answer = if number % 3 == 0 { 404 } else { 200 };
            let body = json!({"eventType": format!("type.{kind}"), "eventId": format!("event-{number}"),
                "channels": ["all", format!("in:{kind}")], "tags": [format!("on/{kind}")],
                "payload": {"number": number, "answer": answer}});
            let sent = server.client.post(&format!("/app/{app}/msg"), body.to_string()).await.expect(202);
            // Its attempts are made before those of the next.
            until(&server, &format!("/app/{app}/attempt/msg/event-{number}"), 2).await;
            messages.push(sent);
            next_id_moment().await;
        }
        Self { server, app, endpoints: endpoints.try_into().unwrap(), messages, _receiver: receiver }
    }

    fn path(&self, rest: &str) -> String {
        format!("/app/{}{rest}", self.app)
    }

    fn id(&self, number: usize) -> &str {
        self.messages[number]["id"].as_str().unwrap()
    }

    fn moment(&self, number: usize) -> String {
        self.messages[number]["timestamp"].as_str().unwrap().to_owned()
    }

    /// The messages of a list of attempts.
    async fn of_attempts(&self, path: &str) -> Vec<usize> {
        let page = self.server.client.get(&self.path(path)).await.expect(200);
        assert_eq!(page["done"], true, "{page}");
        let number = |item: &Value| self.messages.iter().position(|message| message["id"] == item["msgId"]);
        page["data"].as_array().unwrap().iter().map(|item| number(item).unwrap()).collect()
    }

    async fn of_messages(&self, path: &str) -> Vec<usize> {
        let found = list(&self.server.client, &self.path(path)).await;
        found.iter().map(|id| self.messages.iter().position(|one| one["id"] == **id).unwrap()).collect()
    }
}

#[tokio::test]
async fn messages_are_filtered_by_type_channel_tag_and_time() {
    let scene = Scene::new().await;
    let all = vec![5, 4, 3, 2, 1, 0];
    let (first, fourth) = (scene.moment(1), scene.moment(4));
    for (query, wanted) in [
        ("".to_owned(), all.clone()),
        ("event_types=type.a".to_owned(), vec![4, 2, 0]),
        ("event_types=type.a,type.b".to_owned(), all.clone()),
        ("event_types=type.b&event_types=type.x".to_owned(), vec![5, 3, 1]),
        ("event_types[]=type.b".to_owned(), vec![5, 3, 1]),
        ("event_types%5B0%5D=type.b&event_types%5B1%5D=type.a".to_owned(), all.clone()),
        ("event_types=".to_owned(), all.clone()),
        ("event_types=type".to_owned(), vec![]),
        ("channel=in%3Aa".to_owned(), vec![4, 2, 0]),
        ("channel=all".to_owned(), all.clone()),
        ("tag=on%2Fb".to_owned(), vec![5, 3, 1]),
        ("tag=on%2Fb&channel=in%3Aa".to_owned(), vec![]),
        (format!("before={fourth}"), vec![3, 2, 1, 0]),
        (format!("after={first}"), vec![5, 4, 3, 2]),
        (format!("after={first}&before={fourth}"), vec![3, 2]),
        (format!("after={fourth}&before={first}"), vec![]),
        ("before=2020-01-01T00:00:00Z".to_owned(), vec![]),
        // The window begins there, and ends 90 days later.
        ("after=2020-01-01T00:00:00Z".to_owned(), vec![]),
        ("after=2020-01-01T00:00:00Z&before=2120-01-01T00:00:00Z".to_owned(), all.clone()),
        (format!("event_types=type.a&after={first}&with_content=false"), vec![4, 2]),
    ] {
        assert_eq!(scene.of_messages(&format!("/msg?{query}")).await, wanted, "{query}");
    }
}

#[tokio::test]
async fn after_alone_takes_the_oldest_first_and_shows_the_newest_first() {
    let scene = Scene::new().await;
    let after = scene.moment(0);
    let page = async |query: &str| {
        scene.server.client.get(&scene.path(&format!("/msg?limit=2&{query}"))).await.expect(200)
    };
    let first = page(&format!("after={after}")).await;
    assert_eq!(ids(&first), [scene.id(2), scene.id(1)]);
    assert_eq!(first["done"], false);
    let next = page(&format!("after={after}&iterator={}", first["prevIterator"].as_str().unwrap())).await;
    assert_eq!(ids(&next), [scene.id(4), scene.id(3)]);
    let last = page(&format!("iterator={}", next["prevIterator"].as_str().unwrap())).await;
    assert_eq!((ids(&last), &last["done"]), (vec![scene.id(5).to_owned()], &json!(true)));
    // The other way leads back, as far as the bound.
    let back = page(&format!("after={after}&iterator={}", first["iterator"].as_str().unwrap())).await;
    assert_eq!((ids(&back).len(), &back["done"], &back["iterator"]), (0, &json!(true), &Value::Null));
}

#[tokio::test]
async fn attempts_are_filtered_and_a_page_goes_both_ways() {
    let scene = Scene::new().await;
    let by_endpoint = "/attempt/endpoint/one";
    let all = scene.server.client.get(&scene.path(by_endpoint)).await.expect(200);
    let made = |number: usize| all["data"][5 - number]["timestamp"].as_str().unwrap();
    for (query, wanted) in [
        (String::new(), vec![5, 4, 3, 2, 1, 0]),
        ("status=0".into(), vec![5, 4, 2, 1]),
        ("status=2".into(), vec![3, 0]),
        ("status=1".into(), vec![]),
        ("status=3".into(), vec![]),
        ("status=4".into(), vec![]),
        ("status_code_class=200".into(), vec![5, 4, 2, 1]),
        ("status_code_class=400".into(), vec![3, 0]),
        ("status_code_class=0".into(), vec![]),
        ("status=0&status_code_class=400".into(), vec![]),
        ("event_types=type.a".into(), vec![4, 2, 0]),
        ("event_types=type.a&status=2".into(), vec![0]),
        ("channel=in%3Ab".into(), vec![5, 3, 1]),
        ("tag=on%2Fa".into(), vec![4, 2, 0]),
        ("before=2020-01-01T00:00:00Z".into(), vec![]),
        (format!("after={}&before={}", made(1), made(4)), vec![3, 2]),
        (format!("after={}&status=0", made(2)), vec![5, 4]),
    ] {
        let found = scene.of_attempts(&format!("{by_endpoint}?{query}")).await;
        assert_eq!(found, wanted, "{query}");
        let count =
            scene.server.client.get(&scene.path(&format!("{by_endpoint}/count?{query}"))).await.expect(200);
        assert_eq!(count, json!({"count": wanted.len(), "approximated": false}), "{query}");
    }
    let page = async |query: &str| {
        scene
            .server
            .client
            .get(&scene.path(&format!("{by_endpoint}?status=0&limit=3{query}")))
            .await
            .expect(200)
    };
    let start = page("").await;
    assert_eq!((ids(&start).len(), &start["done"]), (3, &json!(false)));
    let rest = page(&format!("&iterator={}", start["iterator"].as_str().unwrap())).await;
    assert_eq!((ids(&rest).len(), &rest["done"]), (1, &json!(true)));
    let back = page(&format!("&iterator={}", rest["prevIterator"].as_str().unwrap())).await;
    assert_eq!(ids(&back), ids(&start));
}

#[tokio::test]
async fn attempts_of_a_message_are_found_in_four_ways_and_by_endpoint() {
    let scene = Scene::new().await;
    let (message, one) = (scene.id(1), &scene.endpoints[0]);
    let both = list(&scene.server.client, &scene.path(&format!("/attempt/msg/{message}"))).await;
    assert_eq!(both.len(), 2);
    for path in
        [format!("/msg/{message}/attempt"), "/msg/event-1/attempt".into(), "/attempt/msg/event-1".into()]
    {
        assert_eq!(list(&scene.server.client, &scene.path(&path)).await, both, "{path}");
    }
    let single =
        list(&scene.server.client, &scene.path(&format!("/attempt/msg/{message}?endpoint_id=one"))).await;
    assert_eq!(single.len(), 1);
    for path in [
        format!("/attempt/msg/{message}?endpoint_id={one}"),
        format!("/msg/{message}/attempt?endpoint_id=one&status=0&event_types=type.b&channel=all"),
        format!("/msg/{message}/endpoint/one/attempt"),
        format!("/msg/event-1/endpoint/{one}/attempt?status_code_class=200"),
    ] {
        assert_eq!(list(&scene.server.client, &scene.path(&path)).await, single, "{path}");
    }
    for path in [
        format!("/attempt/msg/{message}?event_types=type.a"),
        format!("/msg/{message}/attempt?status=2"),
        format!("/msg/{message}/endpoint/one/attempt?tag=on%2Fa"),
    ] {
        assert_eq!(list(&scene.server.client, &scene.path(&path)).await, Vec::<String>::new(), "{path}");
    }
    for path in [
        format!("/attempt/msg/{message}?endpoint_id=three"),
        format!("/msg/{message}/endpoint/three/attempt"),
        "/msg/event-9/attempt".into(),
        "/attempt/endpoint/three".into(),
        "/attempt/endpoint/three/count".into(),
        "/endpoint/three/msg".into(),
        "/endpoint/three/stats".into(),
    ] {
        scene.server.client.get(&scene.path(&path)).await.expect(404);
    }
}

#[tokio::test]
async fn an_attempt_is_shown_alone_with_its_message_or_without_its_response() {
    let scene = Scene::new().await;
    let message = scene.id(3);
    let attempts = scene.server.client.get(&scene.path(&format!("/msg/{message}/attempt"))).await.expect(200);
    let listed = &attempts["data"][0];
    let id = listed["id"].as_str().unwrap();
    let alone =
        scene.server.client.get(&scene.path(&format!("/msg/{message}/attempt/{id}"))).await.expect(200);
    assert_eq!(&alone, listed);
    assert_eq!((&alone["response"], &alone["responseStatusCode"]), (&json!("said"), &json!(404)));
    assert_eq!(
        (&alone["status"], &alone["statusText"], &alone["triggerType"]),
        (&json!(2), &json!("fail"), &json!(0))
    );
    assert!(alone.get("msg").is_none());
    let bare =
        scene.server.client.get(&scene.path("/attempt/endpoint/one?with_content=false&with_msg=true")).await;
    for item in bare.expect(200)["data"].as_array().unwrap() {
        assert_eq!(item["response"], "{}");
        let sent = scene.messages.iter().find(|message| message["id"] == item["msgId"]).unwrap();
        let mut sent = sent.clone();
        sent["payload"] = json!({});
        assert_eq!(item["msg"], sent, "without its payload");
    }
    for path in [
        format!("/msg/{}/attempt/{id}", scene.id(4)),
        format!("/msg/{message}/attempt/atmpt_nothing"),
        format!("/msg/{message}/attempt/{message}"),
        format!("/msg/{message}/attempt/{}", id.replace("atmpt_", "atmpt_1")),
    ] {
        for (rest, status) in [("", 404), ("/headers", 404)] {
            scene.server.client.get(&scene.path(&format!("{path}{rest}"))).await.expect(status);
        }
        scene.server.client.delete(&scene.path(&format!("{path}/content"))).await.expect(404);
    }
}

#[tokio::test]
async fn messages_of_an_endpoint_come_with_how_far_they_have_come() {
    let scene = Scene::new().await;
    let hour = jiff::Timestamp::from_millisecond(SystemClock::new().wall().millis() + 3_600_000).unwrap();
    let later = json!({"eventType": "type.a", "payload": {}, "deliverAt": hour.to_string()});
    let later = scene.server.client.post(&scene.path("/msg"), later.to_string()).await.expect(202);
    let later = later["id"].as_str().unwrap();
    let retried = json!({"eventType": "type.a", "payload": {"answer": 500}});
    let retried = scene.server.client.post(&scene.path("/msg"), retried.to_string()).await.expect(202);
    let retried = retried["id"].as_str().unwrap();
    until(&scene.server, &scene.path("/endpoint/one/msg?status=3"), 1).await;
    let page = scene.server.client.get(&scene.path("/endpoint/one/msg")).await.expect(200);
    for item in page["data"].as_array().unwrap() {
        let (status, text) = (item["status"].as_u64().unwrap(), item["statusText"].as_str().unwrap());
        let number = scene.messages.iter().position(|message| message["id"] == item["id"]);
        let wanted = match number {
            Some(0 | 3) => (2, "fail"),
            Some(_) => (0, "success"),
            None if item["id"] == retried => (3, "sending"),
            None => {
                assert_eq!(item["id"], later);
                (1, "pending")
            }
        };
        assert_eq!((status, text), wanted, "{item}");
        assert_eq!(item.get("nextAttempt").is_some(), status == 1 || status == 3, "{item}");
        if let Some(number) = number {
            assert_eq!(item["payload"], scene.messages[number]["payload"]);
        }
    }
    for (query, wanted) in [
        ("status=0", vec![5, 4, 2, 1]),
        ("status=2", vec![3, 0]),
        ("status=4", vec![]),
        ("status=2&expanded_statuses=true", vec![3, 0]),
        ("status=0&event_types=type.b", vec![5, 1]),
        ("status=2&tag=on%2Fa&with_content=false", vec![0]),
        ("channel=in%3Aa", vec![4, 2, 0]),
    ] {
        assert_eq!(scene.of_messages(&format!("/endpoint/one/msg?{query}")).await, wanted, "{query}");
    }
    // Cancelled deliveries have the status canceled, for clients that know it.
    let deliveries =
        scene.server.client.get(&scene.path("/delivery?state=pending&endpoint=one")).await.expect(200);
    let waiting = deliveries["data"].as_array().unwrap().iter().find(|one| one["msgId"] == retried).unwrap();
    let path = scene.path(&format!("/delivery/{}", waiting["id"].as_str().unwrap()));
    scene.server.client.delete(&path).await.expect(204);
    for (query, status) in [("expanded_statuses=true", 4), ("expanded_statuses=false", 2), ("", 2)] {
        let page =
            scene.server.client.get(&scene.path(&format!("/endpoint/one/msg?{query}"))).await.expect(200);
        let item = page["data"].as_array().unwrap().iter().find(|one| one["id"] == retried).unwrap();
        assert_eq!(item["status"], status);
    }
    assert_eq!(list(&scene.server.client, &scene.path("/endpoint/one/msg?status=4")).await, [retried]);
    assert_eq!(list(&scene.server.client, &scene.path("/endpoint/one/msg?status=1")).await, [later]);
}

#[tokio::test]
async fn a_search_finds_what_the_list_finds() {
    let scene = Scene::new().await;
    let search =
        async |body: Value| scene.server.client.post(&scene.path("/msg/search"), body.to_string()).await;
    let found = async |body: Value| {
        let page = search(body).await.expect(200);
        let number = |id: &String| scene.messages.iter().position(|one| one["id"] == **id).unwrap();
        ids(&page).iter().map(number).collect::<Vec<_>>()
    };
    assert_eq!(found(json!({})).await, [5, 4, 3, 2, 1, 0]);
    assert_eq!(found(json!({"event_types": ["type.a"], "channel": null})).await, [4, 2, 0]);
    assert_eq!(found(json!({"event_types": []})).await.len(), 6);
    assert_eq!(found(json!({"tag": "on/b", "before": scene.moment(4)})).await, [3, 1]);
    assert_eq!(
        found(json!({"after": scene.moment(2), "limit": 2})).await,
        [4, 3],
        "the oldest of them first"
    );
    let page = search(json!({"limit": 2})).await.expect(200);
    assert_eq!(found(json!({"limit": 2, "iterator": page["iterator"]})).await, [3, 2]);
    let shown = search(json!({"with_content": true, "limit": 1})).await.expect(200);
    assert_eq!(shown["data"][0], scene.messages[5]);
    assert_eq!(search(json!({})).await.expect(200)["data"][0]["payload"], json!({}));
    for (body, place) in [
        (json!({"limit": 0}), "limit"),
        (json!({"limit": 251}), "limit"),
        (json!({"limit": "9"}), "limit"),
        (json!({"iterator": "msg_x"}), "iterator"),
        (json!({"iterator": 5}), "iterator"),
        (json!({"channel": "a b"}), "channel"),
        (json!({"tag": "\u{0}"}), "tag"),
        (json!({"event_types": "type.a"}), "event_types"),
        (json!({"event_types": [1]}), "event_types"),
        (json!({"event_types": ["a/b"]}), "event_types"),
        (json!({"before": "yesterday"}), "before"),
        (json!({"after": 5}), "after"),
        (json!({"with_content": "yes"}), "with_content"),
    ] {
        let problems = search(body.clone()).await.expect(422);
        assert_eq!(problems["detail"][0]["loc"][1], place, "{body}: {problems}");
    }
    for body in ["", "[]", "{", "null"] {
        scene.server.client.post(&scene.path("/msg/search"), body).await.expect(422);
    }
}

#[tokio::test]
async fn unreadable_input_is_a_400_and_input_out_of_bounds_a_422() {
    let server = Running::start().await;
    let app = server.application().await;
    let endpoint = server.endpoint(&app, json!({"uid": "e"})).await;
    assert!(endpoint["id"].is_string());
    let message = server.message(&app, "a").await;
    let lists = [
        format!("/app/{app}/msg"),
        format!("/app/{app}/endpoint/e/msg"),
        format!("/app/{app}/attempt/endpoint/e"),
        format!("/app/{app}/attempt/msg/{message}"),
        format!("/app/{app}/msg/{message}/attempt"),
        format!("/app/{app}/msg/{message}/endpoint/e/attempt"),
    ];
    let long = "x".repeat(257);
    for path in &lists {
        for bad in [
            "before=yesterday",
            "after=2026-13-01T00:00:00Z",
            "before=",
            "before=2026-01-01",
            "limit=many",
            "with_content=1",
            "after=%00",
        ] {
            let refused = server.client.get(&format!("{path}?{bad}")).await.expect(422);
            let name = bad.split('=').next();
            assert_eq!(refused["detail"][0]["loc"], json!(["query", name]), "{path}?{bad}");
        }
        for bad in [
            "limit=0".to_owned(),
            "limit=251".into(),
            "iterator=nonsense".into(),
            "iterator=ep_23rb8YdGqMT0qIzpgGwdXfHirMu".into(),
            "iterator=msg_short".into(),
            "iterator=atmpt_zzzzzzzzzzzzzzzzzzzzzzzzzzz".into(),
            "iterator=msg_zzzzzzzzzzzzzzzzzzzzzzzzzzz".into(),
            "iterator=--msg_23rb8YdGqMT0qIzpgGwdXfHirMu".into(),
            "channel=a%20b".into(),
            "channel=".into(),
            "tag=%00".into(),
            "tag=a%20b".into(),
            "event_types=a%2Fb".into(),
            format!("event_types={long}"),
            format!("channel={long}"),
            format!("event_types={}", vec!["a"; 101].join(",")),
        ] {
            let refused = server.client.get(&format!("{path}?{bad}")).await.expect(422);
            assert_eq!(refused["detail"][0]["loc"][0], "query", "{path}?{bad}");
        }
        // What belongs to newer servers is ignored.
        server.client.get(&format!("{path}?expanded_statuses=true&something=else")).await.expect(200);
    }
    for path in &lists[1..] {
        for bad in ["status=5", "status=-1", "status=fail", "status=", "status=2.0"] {
            let refused = server.client.get(&format!("{path}?{bad}")).await.expect(422);
            assert_eq!(refused["detail"][0]["loc"][0], "query", "{path}?{bad}");
        }
    }
    for path in &lists[2..] {
        for bad in ["status_code_class=404", "status_code_class=600", "status_code_class=x", "with_msg=maybe"]
        {
            let refused = server.client.get(&format!("{path}?{bad}")).await.expect(422);
            assert_eq!(refused["detail"][0]["loc"][0], "query", "{path}?{bad}");
        }
    }
}

#[tokio::test]
async fn an_applications_token_reads_its_own_and_another_finds_nothing() {
    let scene = Scene::new().await;
    let other = scene.server.application().await;
    let attempts = scene.server.client.get(&scene.path("/attempt/endpoint/one")).await.expect(200);
    let (message, attempt) = (&attempts["data"][0]["msgId"], &attempts["data"][0]["id"]);
    let (message, attempt) = (message.as_str().unwrap(), attempt.as_str().unwrap());
    let paths = [
        "/msg".to_owned(),
        format!("/msg/{message}/raw"),
        "/endpoint/one/msg".into(),
        "/endpoint/one/stats".into(),
        "/stats/attempts".into(),
        "/attempt/endpoint/one".into(),
        "/attempt/endpoint/one/count".into(),
        format!("/attempt/msg/{message}"),
        format!("/msg/{message}/attempt"),
        format!("/msg/{message}/endpoint/one/attempt"),
        format!("/msg/{message}/attempt/{attempt}"),
        format!("/msg/{message}/attempt/{attempt}/headers"),
    ];
    let own = scene.server.client.with_token(&application_token(&scene.app));
    let others = [
        scene.server.client.with_token(&application_token(&other)),
        scene.server.client.with_token(&token(OTHER_ORGANIZATION)),
    ];
    for path in paths {
        let path = scene.path(&path);
        own.get(&path).await.expect(200);
        for other in &others {
            other.get(&path).await.expect(404);
        }
        scene.server.client.anonymous().get(&path).await.expect(401);
    }
    own.post(&scene.path("/msg/search"), "{}").await.expect(200);
    for other in &others {
        other.post(&scene.path("/msg/search"), "{}").await.expect(404);
    }
    // Messages of another application are not found below this one either.
    scene.server.client.get(&format!("/app/{other}/msg/{message}/raw")).await.expect(404);
    scene
        .server
        .client
        .get(&format!("/app/{other}/attempt/endpoint/{}", scene.endpoints[0]))
        .await
        .expect(404);
    let contents = [format!("/msg/{message}/content"), format!("/msg/{message}/attempt/{attempt}/content")];
    for content in contents {
        let path = scene.path(&content);
        assert_eq!(own.delete(&path).await.expect(403)["code"], "insufficient_access");
        assert_eq!(others[0].delete(&path).await.expect(403)["code"], "insufficient_access");
        others[1].delete(&path).await.expect(404);
    }
}
