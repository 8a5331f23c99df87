//! Every route refuses query parameters that it does not know, and knows those that clients of Svix send.

use crate::requests::bad_input::places;
use crate::support::client::Reply;
use crate::support::running::Running;
use aldaba::config::UnknownFields;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const HINT: &str = "(the setting `unknown_fields = \"ignore\"` lets it pass)";

#[track_caller]
pub(crate) fn refused_parameter(reply: &Reply, name: &str, message: &str) {
    assert_eq!(places(reply), [format!("query.{name}")]);
    assert_eq!(reply.json()["detail"][0]["msg"], format!("{message} {HINT}"));
}

/// Of each operation: method and path, with all names of path parameters left out, and its query parameters.
fn operations(document: &Value) -> BTreeMap<(String, String), Vec<String>> {
    let mut operations = BTreeMap::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().unwrap().iter();
            let in_query = parameters.filter(|parameter| parameter["in"] == "query");
            let names = in_query.map(|parameter| parameter["name"].as_str().unwrap().to_owned());
            operations.insert((method.clone(), without_names(path)), names.collect());
        }
    }
    operations
}

fn without_names(path: &str) -> String {
    let part = |part: &str| if part.starts_with('{') { "{}".to_owned() } else { part.to_owned() };
    path.trim_start_matches("/api/v1").split('/').map(part).collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn every_parameter_that_clients_of_svix_send_is_known() {
    let server = Running::start().await;
    let operations = operations(&server.client.get("/openapi.json").await.expect(200));
    let facts = include_str!("svix_parameters.txt").lines().filter(|line| !line.starts_with('#'));
    let mut checked = 0;
    for fact in facts {
        let (operation, names) = fact.split_once(": ").unwrap();
        let (method, path) = operation.split_once(' ').unwrap();
        let known = &operations[&(method.to_owned(), without_names(path))];
        for name in names.split(' ') {
            assert!(known.iter().any(|known| known == name), "{operation}: {name} is not among {known:?}");
            checked += 1;
        }
    }
    assert!(checked > 70, "{checked}");
    server.stop().await;
}

/// Python 2.9 sends `expanded_statuses=true`, Go and JavaScript 2.x `with_content=false`, others filters as false.
#[tokio::test]
async fn parameters_that_sdks_send_unasked_are_accepted() {
    let server = Running::start().await;
    let app = server.application().await;
    let made = server.endpoint(&app, json!({})).await;
    let endpoint = made["id"].as_str().unwrap();
    let message = server.message(&app, "a").await;
    let attempts = "expanded_statuses=true&with_content=false";
    for path in [
        format!("/app/{app}/attempt/endpoint/{endpoint}?{attempts}&with_msg=false"),
        format!("/app/{app}/attempt/msg/{message}?{attempts}&event_types[]=a&event_types[1]=b"),
        format!("/app/{app}/msg/{message}/attempt?{attempts}"),
        format!("/app/{app}/msg/{message}/endpoint/{endpoint}/attempt?{attempts}"),
        format!("/app/{app}/endpoint/{endpoint}/msg?{attempts}"),
        "/app?exclude_apps_with_no_endpoints=false&exclude_apps_with_svix_play_endpoints=false".to_owned(),
        "/health?probe=1".to_owned(),
        "/health/ping?probe=1".to_owned(),
    ] {
        let status = server.client.get(&path).await.status;
        assert!(status.is_success(), "{path}: {status}");
    }
    let reply = server.client.get("/app?exclude_apps_with_no_endpoints=true").await;
    assert_eq!(places(&reply), ["query.exclude_apps_with_no_endpoints"]);
    server.stop().await;
}

#[tokio::test]
async fn every_route_but_health_refuses_an_unknown_parameter() {
    let server = Running::start().await;
    let document = server.client.get("/openapi.json").await.expect(200);
    let mut checked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let Some(path) = path.strip_prefix("/api/v1").filter(|path| !path.starts_with("/health")) else {
            continue;
        };
        let path = path.replace(['{', '}'], "");
        for (method, operation) in methods.as_object().unwrap() {
            let method = method.to_uppercase().parse().unwrap();
            let reply = server.client.send(method, &format!("{path}?quarterly=1"), &[], "{}".into()).await;
            assert_eq!(places(&reply), ["query.quarterly"], "{path} {}", operation["operationId"]);
            assert!(reply.json()["detail"][0]["msg"].as_str().unwrap().ends_with(HINT));
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
    server.stop().await;
}

#[tokio::test]
async fn a_setting_lets_unknown_parameters_pass() {
    let server = Running::with(|config| config.limits.unknown_fields = UnknownFields::Ignore).await;
    let app = server.application().await;
    for path in [format!("/app/{app}/msg?limt=3"), "/audit?acton=x".to_owned(), format!("/app/{app}?x=1")] {
        server.client.get(&path).await.expect(200);
    }
    // A value that cannot be read is refused all the same.
    let reply = server.client.get(&format!("/app/{app}/msg?limt=3&limit=many")).await;
    assert_eq!(places(&reply), ["query.limit"]);
    server.client.delete(&format!("/app/{app}?force=true")).await.expect(204);
    server.stop().await;
}
