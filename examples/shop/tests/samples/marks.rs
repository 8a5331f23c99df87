//! Marks that the library has made, in the table that all share.

use crate::world::World;
use shop::fresh;
use std::sync::Arc;

/// How the library may have kept a body `$2`: its JSON, which PostgreSQL writes in its own way, or its digest.
const FORMS: [&str; 2] = [
    "convert_from($2::bytea, 'UTF8')::jsonb",
    "jsonb_build_object('sha256', encode(sha256($2::bytea), 'hex'))",
];

/// How it keeps one that PostgreSQL might not hold as JSON.
const BYTES: &str = "jsonb_build_object('base64', replace(encode($2::bytea, 'base64'), E'\\n', ''))";

pub(crate) async fn a_mark_is_known_in_every_form_that_the_library_has_for_it(world: Arc<World>) {
    let payment = world.payment().await;
    for form in FORMS {
        is_known(&world, form, &payment.body()).await;
    }
    // A number that the library finds too long.
    let event = payment.event().to_string();
    let long = format!("{}, \"number\": {}}}", event.strip_suffix('}').unwrap(), "7".repeat(401));
    is_known(&world, BYTES, long.as_bytes()).await;
    world.is_not_paid(&payment).await;
}

async fn is_known(world: &World, form: &str, body: &[u8]) {
    let (id, other) = (fresh("evt"), world.payment().await);
    let mark = format!("INSERT INTO webhook_events (event_id, event_type, payload) VALUES ($1, '', {form})");
    world.tables.connect().await.execute(&mark, &[&id, &body]).await.unwrap();
    let answer = world.sender.deliver(&id, body).await;
    assert!(answer.is_duplicate(), "{form}: {answer:?}");
    let answer = world.sender.deliver(&id, &other.body()).await;
    assert_eq!((answer.status, answer.header("retry-after")), (409, None), "{form}: {answer:?}");
    world.is_not_paid(&other).await;
}
