//! What a copy does while somebody else is at the same event: here a transaction of the test's own, as another process of the
//! receiver would have it.

use crate::world::World;
use shop::{Answer, Payment, WAIT_TIMEOUT, fresh};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

/// A copy that has not answered after this time waits.
const A_WHILE: Duration = Duration::from_millis(300);

/// Marks an event and does not commit. A copy of the event is on its way.
async fn begin(world: &Arc<World>, id: &str, payment: &Payment) -> (Client, JoinHandle<Answer>) {
    let client = world.tables.connect().await;
    let body = payment.event().to_string();
    let mark = "INSERT INTO webhook_events (event_id, event_type, payload) VALUES ($1, '', $2::text::jsonb)";
    client.batch_execute("BEGIN").await.unwrap();
    client.execute(mark, &[&id, &body]).await.unwrap();
    let (sender, id) = (world.sender, id.to_owned());
    let mut copy = tokio::spawn(async move { sender.deliver(&id, body.as_bytes()).await });
    let early = tokio::time::timeout(A_WHILE, &mut copy).await;
    assert!(early.is_err(), "it was answered while the work could still fail: {early:?}");
    (client, copy)
}

pub(crate) async fn a_copy_waits_for_work_in_progress_and_is_a_duplicate_after_its_commit(world: Arc<World>) {
    let (payment, id) = (world.payment().await, fresh("evt"));
    let (client, copy) = begin(&world, &id, &payment).await;
    client.batch_execute("COMMIT").await.unwrap();
    let answer = copy.await.unwrap();
    assert!(answer.is_duplicate(), "{answer:?}");
    world.is_not_paid(&payment).await;
}

pub(crate) async fn a_copy_waits_for_work_in_progress_and_is_new_after_its_rollback(world: Arc<World>) {
    let (payment, id) = (world.payment().await, fresh("evt"));
    let (client, copy) = begin(&world, &id, &payment).await;
    client.batch_execute("ROLLBACK").await.unwrap();
    let answer = copy.await.unwrap();
    assert!(answer.is_new(), "{answer:?}");
    world.is_paid_once(&payment).await;
}

pub(crate) async fn past_the_wait_timeout_a_copy_is_409_with_retry_after(world: Arc<World>) {
    let (payment, id) = (world.payment().await, fresh("evt"));
    let seconds = crate::world::stopwatch();
    let (client, copy) = begin(&world, &id, &payment).await;
    let answer = copy.await.unwrap();
    assert!(seconds() > WAIT_TIMEOUT.as_secs_f64() * 0.9, "{} s", seconds());
    assert_eq!(answer.status, 409, "{answer:?}");
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(world.tables.marks(&id).await, 0);
    world.is_not_paid(&payment).await;
    assert!(world.sender.deliver(&id, &payment.body()).await.is_new());
}
