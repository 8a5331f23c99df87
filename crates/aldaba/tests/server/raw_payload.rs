//! A body that is sent as it is, whatever it is.

use crate::receiver::Receiver;
use crate::running::Running;
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
