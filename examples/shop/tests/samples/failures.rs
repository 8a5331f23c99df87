//! What a sample does when something goes wrong.

use crate::world::{STOCK, World};
use serde_json::{Value, json};
use shop::{Answer, Payment, Sample, WAIT_TIMEOUT, eventually, fresh};
use std::sync::Arc;

/// The time after the wait timeout in which a hanging database must be given up, in seconds.
const GIVEN_UP: f64 = 15.0;

/// It has failed, and says nothing of how to a stranger.
fn is_failure(answer: &Answer) -> bool {
    let told = answer.json["error"].as_str().unwrap_or_default();
    let private = ["order", "product", "orders", "column", "relation", "constraint", "null"];
    answer.status == 500
        && answer.json["received"] == false
        && !told.is_empty()
        && !private.iter().any(|word| told.contains(word))
}

/// The order is paid in the first statement of the work; the second one fails.
pub(crate) async fn a_failure_rolls_back_mark_and_work_and_the_next_try_has_its_effect(world: Arc<World>) {
    let (payment, id) = (Payment::of(&fresh("order"), &fresh("product")), fresh("evt"));
    world.tables.add_order(&payment.order).await;
    for _ in 0..2 {
        let answer = world.sender.deliver(&id, &payment.body()).await;
        assert!(is_failure(&answer), "{answer:?}");
        assert_eq!(world.tables.order(&payment.order).await.status, "pending");
        assert_eq!(world.tables.marks(&id).await, 0);
    }
    world.tables.add_product(&payment.product, STOCK).await;
    assert!(world.sender.deliver(&id, &payment.body()).await.is_new());
    world.is_paid_once(&payment).await;
    assert!(world.sender.deliver(&id, &payment.body()).await.is_duplicate());
}

/// The note is made beside the answer, and names what was missing.
pub(crate) async fn e10_an_event_that_failed_is_noted_with_its_error(world: Arc<World>) {
    let (payment, id) = (Payment::of(&fresh("order"), &fresh("product")), fresh("evt"));
    let answer = world.sender.deliver(&id, &payment.body()).await;
    assert!(is_failure(&answer), "{answer:?}");
    let (event_type, error) = eventually("the note", async || world.tables.failure(&id).await).await;
    assert_eq!(event_type, "payment.success");
    assert!(error.contains(&payment.order), "{error}");
    assert_eq!(world.tables.marks(&id).await, 0, "it is no mark");
}

pub(crate) async fn an_event_that_comes_before_its_order_is_tried_again(world: Arc<World>) {
    let (payment, id) = (Payment::of(&fresh("order"), &fresh("product")), fresh("evt"));
    world.tables.add_product(&payment.product, STOCK).await;
    let answer = world.sender.deliver(&id, &payment.body()).await;
    assert!(is_failure(&answer), "{answer:?}");
    assert_eq!(world.tables.marks(&id).await, 0);
    world.tables.add_order(&payment.order).await;
    assert!(world.sender.deliver(&id, &payment.body()).await.is_new());
    world.is_paid_once(&payment).await;
}

pub(crate) async fn e12_fields_of_wrong_types_fail_and_change_nothing(world: Arc<World>) {
    let payment = world.payment().await;
    let fields = [
        "/paymentLink",
        "/paymentLink/metadata",
        "/paymentLink/metadata/orderId",
        "/transaction",
        "/transaction/id",
        "/transaction/completedAt",
    ];
    let wrong = [Value::Null, json!(7), json!([]), json!({}), json!(""), json!("x".repeat(300))];
    let before = world.everything().await;
    for field in fields {
        for value in &wrong {
            let mut event = payment.event();
            *event.pointer_mut(field).unwrap() = value.clone();
            let answer = world.sender.deliver(&fresh("evt"), event.to_string().as_bytes()).await;
            assert_eq!(answer.status, 500, "{field} {value}: {answer:?}");
            assert_eq!(world.everything().await, before, "{field} {value}");
        }
    }
    world.is_not_paid(&payment).await;
}

/// Not together with other claims: the database is everybody's.
pub(crate) async fn a_database_that_is_away_is_503_with_retry_after(world: Arc<World>) {
    let (payment, id) = (world.payment().await, fresh("evt"));
    // So that it has connections to lose.
    assert!(world.sender.deliver(&fresh("evt"), &world.payment().await.body()).await.is_new());
    world.stage.postgres.kill();
    for _ in 0..2 {
        let answer = world.sender.deliver(&id, &payment.body()).await;
        assert_eq!((answer.status, &answer.json["received"]), (503, &json!(false)), "{answer:?}");
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
    }
    world.stage.postgres.restart();
    let answer = world.sender.deliver(&id, &payment.body()).await;
    assert!(answer.is_new(), "{answer:?}");
    world.is_paid_once(&payment).await;
}

/// It takes connections, and says nothing more: its own timeouts are no help then. Not together with other claims.
pub(crate) async fn a_database_that_hangs_is_503_with_retry_after(world: Arc<World>) {
    let (payment, id) = (world.payment().await, fresh("evt"));
    // So that it has a connection that was good.
    assert!(world.sender.deliver(&fresh("evt"), &world.payment().await.body()).await.is_new());
    world.stage.postgres.pause();
    let (seconds, delivery) = (crate::world::stopwatch(), world.sender.sign(&id, payment.body()));
    // In a task, so that the database goes on whatever comes of it.
    let answer = tokio::spawn(world.sender.send_to_end(delivery)).await;
    let waited = seconds();
    world.stage.postgres.resume();
    let answer = answer.unwrap();
    assert_eq!((answer.status, &answer.json["received"]), (503, &json!(false)), "{answer:?}");
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
    assert!(waited < WAIT_TIMEOUT.as_secs_f64() + GIVEN_UP, "{waited} s");
    let answer = world.sender.deliver(&id, &payment.body()).await;
    assert!(answer.is_new(), "{answer:?}");
    world.is_paid_once(&payment).await;
}

/// The same while the work is done, of which nothing stays.
pub(crate) async fn a_database_that_hangs_under_the_work_is_503_and_rolls_back(world: Arc<World>) {
    // The library gives a handler five minutes.
    if world.sample == Sample::Axum {
        return;
    }
    let (payment, id) = (world.payment().await, fresh("evt"));
    let client = world.tables.connect().await;
    client.batch_execute("BEGIN").await.unwrap();
    client.execute("SELECT FROM orders WHERE id = $1 FOR UPDATE", &[&payment.order]).await.unwrap();
    let work = tokio::spawn(world.sender.send_to_end(world.sender.sign(&id, payment.body())));
    let waiting =
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    // Asked anew each time: within a transaction the answer stays the same.
    let others = world.tables.connect().await;
    eventually("the work", async || others.query_opt(waiting, &[]).await.unwrap()).await;
    world.stage.postgres.pause();
    let answer = work.await;
    world.stage.postgres.resume();
    let answer = answer.unwrap();
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
    client.batch_execute("ROLLBACK").await.unwrap();
    assert!(world.sender.deliver(&id, &payment.body()).await.is_new());
    world.is_paid_once(&payment).await;
}
