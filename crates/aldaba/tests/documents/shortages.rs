//! Shortages of this server use up no attempt, blame no receiver, and do not last forever.

use crate::stage::{HOUR, Stage, play, status};
use aldaba_delivery::{FailureKind, Outcome};
use http::Method;
use serde_json::json;

const URL: &str = "https://example.com/hook";

fn shortage() -> Outcome {
    Outcome::failed(FailureKind::Unsent, "no free socket, port or memory on this server")
}

#[test]
fn an_hour_without_sockets_costs_no_attempt_and_no_health() {
    play(async {
        let stage = Stage::new(|_| shortage()).await;
        let (app, endpoint, message) = stage.one_message(URL, "quick").await;
        stage.wait(HOUR).await;
        let tries = stage.wire().len();
        assert!((1_800..=3_700).contains(&tries), "about once a second: {tries}");
        assert!(stage.attempts(&app, &message).await.is_empty());
        let health = stage.get(&format!("/app/{app}/endpoint/{endpoint}")).await;
        assert_eq!(
            (&health["health"]["failureCount"], &health["health"]["lastError"]),
            (&json!(0), &json!(null))
        );
        assert_eq!(stage.get("/host").await["data"], json!([]));
        let tries = stage.wire().len();
        stage.answers(|_| status(200));
        stage.wait(HOUR).await;
        assert_eq!(stage.wire().len(), tries + 1);
        assert_eq!(stage.destination(&app, &message).await["statusText"], "success");
    });
}

#[test]
fn a_lasting_shortage_is_recorded_and_ends_according_to_the_policy() {
    play(async {
        let stage = Stage::new(|_| shortage()).await;
        let app = stage.application().await;
        let off = json!({"policy": "quick", "disabled": true, "whenDisabled": "hold"});
        let endpoint = stage.endpoint(&app, URL, off).await;
        let message = stage.message(&app).await;
        stage.wait(HOUR * 25).await;
        let path = format!("/app/{app}/endpoint/{endpoint}");
        stage.expect(Method::PATCH, &path, json!({"disabled": false}), 200).await;
        stage.wait(HOUR / 2).await;
        let attempts = stage.attempts(&app, &message).await;
        assert_eq!(attempts.len(), 1, "it was due for a day");
        assert_eq!(attempts[0]["error"], "no free socket, port or memory on this server");
        let endpoint = stage.get(&path).await;
        assert_eq!(endpoint["health"]["failureCount"], 0, "it is not the receiver's");
    });
}
