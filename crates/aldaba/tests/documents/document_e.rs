//! The sending part of document E: the information with which a receiver processes each event once.

use crate::stage::{HOUR, Stage, play, status};
use serde_json::json;

const URL: &str = "https://receiver.example/hook";

#[test]
fn e1_event_id_and_type_are_in_headers_and_the_id_is_the_same_on_retries_and_replays() {
    play(async {
        let stage = Stage::new(|_| status(400)).await;
        let app = stage.application().await;
        let more = json!({"policy": "quick", "profile": "branded"});
        let endpoint = stage.endpoint(&app, URL, more).await;
        let message = stage.message(&app).await;
        stage.wait(HOUR).await;
        // It was rejected. A resend fails too; then it is replayed, fails for a while, and arrives.
        stage.post(&format!("/app/{app}/msg/{message}/endpoint/{endpoint}/resend"), json!({}), 202).await;
        let before = stage.wire().last().unwrap().at;
        let first = before + HOUR;
        stage.answers(move |arrival| status(if arrival.at < first + TEN_SECONDS { 500 } else { 200 }));
        stage.wait(HOUR).await;
        let recover = json!({"since": "2020-01-01T00:00:00Z"});
        stage.post(&format!("/app/{app}/endpoint/{endpoint}/recover"), recover, 202).await;
        stage.wait(HOUR).await;
        let wire = stage.wire();
        assert!(wire.len() >= 5, "{}", wire.len());
        for arrival in &wire {
            assert_eq!(arrival.header("aldaba-event-id"), message);
            assert_eq!(arrival.header("aldaba-event-type"), "invoice.paid");
            assert!(arrival.header("aldaba-signature").starts_with("t="), "{arrival:?}");
        }
        assert_eq!(stage.destination(&app, &message).await["status"], 0);
    });
}

#[test]
fn e1_the_id_is_the_senders_where_it_gave_one_on_retries_and_replays_alike() {
    play(async {
        let stage = Stage::new(|_| status(500)).await;
        let app = stage.application().await;
        let endpoint = stage.endpoint(&app, URL, json!({"policy": "quick", "profile": "branded"})).await;
        let event = json!({"eventType": "invoice.paid", "eventId": "evt-42", "payload": {}});
        stage.post(&format!("/app/{app}/msg"), event, 202).await;
        stage.wait(HOUR).await;
        let recover = json!({"since": "2020-01-01T00:00:00Z"});
        stage.post(&format!("/app/{app}/endpoint/{endpoint}/recover"), recover, 202).await;
        stage.wait(HOUR).await;
        let wire = stage.wire();
        assert_eq!(wire.len(), 12, "two rounds of six attempts");
        assert!(wire.iter().all(|arrival| arrival.header("aldaba-event-id") == "evt-42"));
    });
}

#[test]
fn e8_what_has_died_can_be_sent_again_from_the_dead_letter() {
    play(async {
        let stage = Stage::new(|_| status(400)).await;
        let (app, endpoint, message) = stage.one_message(URL, "quick").await;
        stage.wait(HOUR).await;
        let dead = stage.get("/dead-letter").await;
        assert_eq!(dead["data"].as_array().unwrap().len(), 1, "{dead}");
        stage.answers(|_| status(200));
        stage.post(&format!("/app/{app}/msg/{message}/endpoint/{endpoint}/resend"), json!({}), 202).await;
        assert_eq!(stage.destination(&app, &message).await["status"], 0);
        assert_eq!(stage.get("/dead-letter").await["data"], json!([]));
    });
}

const TEN_SECONDS: std::time::Duration = std::time::Duration::from_secs(10);
