//! What is not taken. Nothing is stored of it, and nothing runs.

use crate::world::World;
use hyper::Method;
use shop::{Answer, Delivery, Sample, Signing, fresh, now};
use std::sync::Arc;

/// The longest body that the samples take.
const MAX_BODY: usize = 1024 * 1024;

/// Sends it, and looks that nothing has come of it.
async fn refused(world: &World, what: &str, delivery: Delivery, status: u16) -> Answer {
    let before = world.everything().await;
    let answer = world.sender.send(delivery).await;
    assert_eq!(answer.status, status, "{what}: {answer:?}");
    assert_eq!(world.everything().await, before, "{what}");
    answer
}

pub(crate) async fn what_is_not_signed_well_is_401(world: Arc<World>) {
    let payment = world.payment().await;
    let (body, id, header) = (payment.body(), fresh("evt"), world.signing.signature_header());
    let good = world.sender.sign(&id, body.clone());
    let mut other = payment.event();
    other["paymentLink"]["amount"] = 1.into();
    let at = |seconds: i64| world.sender.sign_at(now() + seconds, &id, body.clone());
    let mut cases = vec![
        ("no signature", good.clone().with(&header, None)),
        ("an empty signature", good.clone().with(&header, Some(""))),
        ("another body", good.clone().with_body(other.to_string())),
        ("no body", good.clone().with_body("")),
        ("bytes that are no text", good.clone().with_body(vec![0xff, 0xfe, 0x00])),
        ("six minutes old", at(-360)),
        ("six minutes early", at(360)),
    ];
    for bad in [
        "x",
        "v1",
        "v1,",
        "v1,%%%",
        "v1,AAAA",
        "v1=00,t=",
        "t=1,v1=",
        ",,,",
        "v1, v1,",
        "=",
        "t=999999999999999999999",
    ] {
        cases.push(("what is no signature", good.clone().with(&header, Some(bad))));
    }
    if world.signing == Signing::Standard {
        cases.push(("another id", good.clone().with("webhook-id", Some("evt-other"))));
        cases.push(("no time", good.clone().with("webhook-timestamp", None)));
        cases.push(("another time", good.clone().with("webhook-timestamp", Some(&(now() - 1).to_string()))));
        cases.push(("a time that is none", good.clone().with("webhook-timestamp", Some("now"))));
    }
    for (what, delivery) in cases {
        let answer = refused(&world, what, delivery, 401).await;
        assert_eq!(answer.json["received"], false, "{what}: {answer:?}");
    }
    // It was the signature, and nothing else.
    assert!(world.sender.send(good).await.is_new());
}

pub(crate) async fn an_event_without_a_fit_id_is_400(world: Arc<World>) {
    let (body, header) = (world.payment().await.body(), world.signing.id_header());
    let good = world.sender.sign(&fresh("evt"), body.clone());
    refused(&world, "no id", good.clone().with(&header, None), 400).await;
    refused(&world, "an empty id", good.with(&header, Some("")), 400).await;
    for bad in ["x".repeat(256), "two words".into()] {
        refused(&world, "an unfit id", world.sender.sign(&bad, body.clone()), 400).await;
    }
    let longest = format!("{}{}", "x".repeat(245), fresh("-"));
    assert!(world.sender.deliver(&longest, &body).await.is_new());
}

pub(crate) async fn anything_but_post_is_405(world: Arc<World>) {
    let good = world.sender.sign(&fresh("evt"), world.payment().await.body());
    let methods = [Method::GET, Method::HEAD, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];
    for method in methods {
        let answer = refused(&world, method.as_str(), good.clone().with_method(method.clone()), 405).await;
        assert_eq!(answer.header("allow"), Some("POST"), "{method}");
    }
}

pub(crate) async fn a_body_that_is_too_long_is_413(world: Arc<World>) {
    let mut event = world.payment().await.event();
    let padding = MAX_BODY - event.to_string().len() - r#","padding":"""#.len();
    event["padding"] = "x".repeat(padding).into();
    let longest = event.to_string();
    assert_eq!(longest.len(), MAX_BODY);
    event["padding"] = "x".repeat(padding + 1).into();
    let longer = world.sender.sign(&fresh("evt"), event.to_string());
    refused(&world, "with its length", longer.clone(), 413).await;
    refused(&world, "in chunks", longer.in_chunks(), 413).await;
    let answer = world.sender.deliver(&fresh("evt"), longest.as_bytes()).await;
    assert!(answer.is_new(), "{answer:?}");
}

pub(crate) async fn an_id_with_another_body_is_409(world: Arc<World>) {
    let (one, other, id) = (world.payment().await, world.payment().await, fresh("evt"));
    assert!(world.sender.deliver(&id, &one.body()).await.is_new());
    let answer = refused(&world, "another body", world.sender.sign(&id, other.body()), 409).await;
    // To come again would not help.
    assert_eq!(answer.header("retry-after"), None);
    world.is_not_paid(&other).await;
    assert!(world.log().await.contains(&id), "somebody must hear of it");
    assert!(world.sender.deliver(&id, &one.body()).await.is_duplicate());
}

pub(crate) async fn a_body_that_is_no_json_is_not_taken(world: Arc<World>) {
    // The library keeps any body; its handler is what cannot read this.
    let status = if world.sample == Sample::Axum { 500 } else { 400 };
    let deep = format!(r#"{{"type": {}{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
    let bodies = ["", "hello", "{", r#"{"type": "payment.success""#, "\u{feff}{", &deep];
    for body in bodies {
        // A store of keys has no depth.
        if !(world.sample.marks_by_key() && body == deep) {
            let shown = &body[..body.len().min(40)];
            refused(&world, shown, world.sender.sign(&fresh("evt"), body), status).await;
        }
    }
}
