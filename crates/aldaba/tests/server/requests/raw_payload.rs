//! A body that is sent unchanged.

use crate::support::receiver::Receiver;
use crate::support::running::Running;
use serde_json::{Value, json};
use standardwebhooks::Webhook;

#[tokio::test]
async fn a_raw_payload_is_signed_and_sent_byte_by_byte() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    let endpoint = server.endpoint(&app, json!({"url": receiver.url("/")})).await;
    let path = format!("/app/{app}/endpoint/{}/secret", endpoint["id"].as_str().unwrap());
    let secret = server.client.get(&path).await.expect(200)["key"].as_str().unwrap().to_owned();
    let raw = "<no json=\"at all\"/>\n ñ";
    let send = |parameters: Value| {
        let body = json!({"eventType": "a", "payload": {}, "transformationsParams": parameters}).to_string();
        async { server.client.post(&format!("/app/{app}/msg"), body).await }
    };
    send(json!({"rawPayload": raw})).await.expect(202);
    let arrival = receiver.next().await;
    assert_eq!(arrival.body, raw);
    Webhook::new(&secret).unwrap().verify(&arrival.body, &arrival.headers).unwrap();
    for wrong in [json!({"rawPayload": 5}), json!("x"), json!({"headers": {"content-type": "text/xml"}})] {
        send(wrong).await.expect(422);
    }
    send(json!({"rawPayload": "x".repeat(2 << 20)})).await.expect(413);
    for nothing in [json!(null), json!({}), json!({"rawPayload": null})] {
        let body =
            json!({"eventType": "a", "payload": {"a": 1}, "transformationsParams": nothing}).to_string();
        server.client.post(&format!("/app/{app}/msg"), body).await.expect(202);
        assert_eq!(receiver.next().await.body, r#"{"a":1}"#);
    }
}

#[tokio::test]
async fn a_payload_that_is_no_object_is_shown_as_one_and_its_text_is_in_raw() {
    let server = Running::delivering().await;
    let receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    let endpoint = server.endpoint(&app, json!({"url": receiver.url("/")})).await["id"].clone();
    let endpoint = endpoint.as_str().unwrap();
    let path = format!("/app/{app}/msg");
    let as_text = |raw: &str| json!({"raw": raw});
    for (raw, shown) in [
        ("[1, 2]", &as_text("[1, 2]")),
        ("17", &as_text("17")),
        ("null", &as_text("null")),
        ("\"text\"", &as_text("\"text\"")),
        ("<no json/>", &as_text("<no json/>")),
        ("{\"broken\": ", &as_text("{\"broken\": ")),
        ("", &as_text("")),
        (" {\"a\": [1]}\n", &json!({"a": [1]})),
    ] {
        let parameters = json!({"rawPayload": raw});
        let body = json!({"eventType": "a", "payload": {"n": 1}, "transformationsParams": parameters});
        let sent = server.client.post_once(&path, raw.trim(), body.to_string()).await.expect(202);
        assert_eq!(sent["payload"], *shown, "{raw}");
        let id = sent["id"].as_str().unwrap();
        let read = server.client.get(&format!("{path}/{id}")).await.expect(200);
        assert_eq!(read["payload"], *shown, "{raw}");
        let exact = server.client.get(&format!("{path}/{id}/raw")).await.expect(200);
        assert_eq!(exact["payload"], *raw);
        let bare = server.client.get(&format!("{path}/{id}?with_content=false")).await.expect(200);
        assert_eq!(bare["payload"], json!({}));
        let again = server.client.post_once(&path, raw.trim(), body.to_string()).await.expect(202);
        if !raw.is_empty() {
            assert_eq!(again, sent, "a repeat is answered as the first");
        }
        let search = json!({"with_content": true}).to_string();
        for list in [
            server.client.get(&path).await.expect(200),
            server.client.get(&format!("/app/{app}/endpoint/{endpoint}/msg")).await.expect(200),
            server.client.post(&format!("{path}/search"), search).await.expect(200),
        ] {
            assert!(list["data"].as_array().unwrap().iter().all(|one| one["payload"].is_object()), "{list}");
        }
    }
}

#[tokio::test]
async fn a_dispatched_message_is_shown_with_an_object_too() {
    let server = Running::delivering().await;
    let receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    let body = json!({"url": receiver.url("/"), "payload": [1, 2], "eventType": "a"}).to_string();
    let sent = server.client.post(&format!("/app/{app}/dispatch"), body).await.expect(202);
    assert_eq!(sent["payload"], json!([1, 2]), "its own record has any JSON");
    let path = format!("/app/{app}/msg/{}", sent["id"].as_str().unwrap());
    assert_eq!(server.client.get(&path).await.expect(200)["payload"], json!({"raw": "[1,2]"}));
    assert_eq!(server.client.get(&format!("{path}/raw")).await.expect(200)["payload"], "[1,2]");
}
