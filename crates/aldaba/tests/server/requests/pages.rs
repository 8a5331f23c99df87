use crate::support::running::Running;
use serde_json::Value;

fn ids(page: &Value) -> Vec<String> {
    page["data"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

/// Walks a list forwards in pages of two, then back from its last page, and checks both against
/// the whole.
pub(crate) async fn walk(server: &Running, path: &str, expected: &[String]) {
    let separator = if path.contains('?') { '&' } else { '?' };
    let whole = server.client.get(path).await.expect(200);
    assert_eq!(ids(&whole), expected);
    assert_eq!(whole["done"], true);
    let (mut seen, mut iterator, mut last) = (Vec::new(), String::new(), Value::Null);
    for round in 0.. {
        assert!(round < 10, "the list ends");
        let page =
            server.client.get(&format!("{path}{separator}limit=2&iterator={iterator}")).await.expect(200);
        seen.extend(ids(&page));
        iterator = page["iterator"].as_str().unwrap().to_owned();
        let done = page["done"] == true;
        last = page;
        if done {
            break;
        }
    }
    assert_eq!(seen, expected);
    let mut back = ids(&last);
    let mut previous = last["prevIterator"].as_str().unwrap().to_owned();
    for round in 0.. {
        assert!(round < 10, "the list ends");
        let page =
            server.client.get(&format!("{path}{separator}limit=2&iterator={previous}")).await.expect(200);
        let mut items = ids(&page);
        items.extend(back);
        back = items;
        if page["done"] == true {
            break;
        }
        previous = page["prevIterator"].as_str().unwrap().to_owned();
    }
    assert_eq!(back, expected);
    let beyond = server.client.get(&format!("{path}{separator}iterator={iterator}")).await.expect(200);
    assert_eq!(
        (ids(&beyond), &beyond["iterator"], &beyond["done"]),
        (vec![], &Value::Null, &Value::Bool(true))
    );
    assert!(beyond.get("prevIterator").is_none());
}

/// Ids made within 4 ms come in any order, so the expectation is the order of the ids themselves.
fn sorted(mut ids: Vec<String>, descending: bool) -> Vec<String> {
    ids.sort();
    if descending {
        ids.reverse();
    }
    ids
}

#[tokio::test]
async fn every_list_can_be_walked_both_ways() {
    let server = Running::start().await;
    let (mut apps, mut endpoints, mut messages) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..5 {
        apps.push(server.application().await);
    }
    let app = apps[0].clone();
    for _ in 0..5 {
        endpoints.push(
            server.endpoint(&app, serde_json::json!({"disabled": true})).await["id"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
        messages.push(server.message(&app, "a").await);
    }
    walk(&server, "/app", &sorted(apps.clone(), false)).await;
    walk(&server, "/app?order=descending", &sorted(apps, true)).await;
    walk(&server, &format!("/app/{app}/endpoint"), &sorted(endpoints.clone(), true)).await;
    walk(&server, &format!("/app/{app}/endpoint?order=ascending"), &sorted(endpoints, false)).await;
    walk(&server, &format!("/app/{app}/msg"), &sorted(messages, true)).await;
}

#[tokio::test]
async fn a_message_with_several_endpoints_lists_them_in_pages() {
    let server = Running::start().await;
    let app = server.application().await;
    let mut endpoints = Vec::new();
    for number in 0..5 {
        let url = format!("https://unreachable.invalid/{number}");
        endpoints.push(
            server.endpoint(&app, serde_json::json!({"url": url})).await["id"].as_str().unwrap().to_owned(),
        );
    }
    let message = server.message(&app, "a").await;
    walk(&server, &format!("/app/{app}/msg/{message}/endpoint"), &sorted(endpoints, false)).await;
}

#[tokio::test]
async fn a_page_of_large_messages_ends_early() {
    let server = Running::start().await;
    let app = server.application().await;
    let body = format!(r#"{{"eventType":"a","payload":{{"a":"{}"}}}}"#, "x".repeat(1_000_000));
    for _ in 0..20 {
        server.client.post(&format!("/app/{app}/msg?with_content=false"), body.clone()).await.expect(202);
    }
    let (mut seen, mut iterator, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page =
            server.client.get(&format!("/app/{app}/msg?limit=250&iterator={iterator}")).await.expect(200);
        seen.extend(ids(&page));
        pages += 1;
        if page["done"] == true {
            break;
        }
        iterator = page["iterator"].as_str().unwrap().to_owned();
    }
    assert_eq!((seen.len(), pages), (20, 3));
    let light = server.client.get(&format!("/app/{app}/msg?limit=250&with_content=false")).await.expect(200);
    assert_eq!((ids(&light).len(), light["done"].clone()), (20, Value::Bool(true)));
}

#[tokio::test]
async fn applications_are_not_filtered_and_that_is_said_where_it_would_matter() {
    let server = Running::start().await;
    for name in ["no_endpoints", "disabled_endpoints", "svix_play_endpoints"] {
        let name = format!("exclude_apps_with_{name}");
        server.client.get(&format!("/app?{name}=false")).await.expect(200);
        let refused = server.client.get(&format!("/app?{name}=true")).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], serde_json::json!(["query", name]));
        server.client.get(&format!("/app?{name}=1")).await.expect(422);
    }
}
