//! Aldaba itself as the sender.

use crate::world::{STOCK, World};
use serde_json::json;
use shop::{Manner, Payment, eventually, fresh};
use std::sync::Arc;

/// The first delivery fails, because the order is not there yet or the backend is down. Aldaba tries again with the same
/// id, and that has its effect; sent again by hand, still with the same id, it is a duplicate.
pub(crate) async fn aldaba_retries_a_failure_and_a_resend_is_a_duplicate(world: Arc<World>) {
    let aldaba = &world.stage.aldaba;
    let payment = Payment::of(&fresh("order"), &fresh("product"));
    world.tables.add_product(&payment.product, STOCK).await;
    world.backend.answers(Manner::Badly);
    let url = world.running.lock().await.url();
    let endpoint = aldaba.add_endpoint(&url, world.signing.name()).await;
    let message = aldaba.send(&payment.event()).await;
    let failed = eventually("an attempt", async || aldaba.answers(&message).await.pop()).await;
    assert_eq!((failed.0, &failed.1["received"]), (500, &json!(false)), "{failed:?}");

    world.tables.add_order(&payment.order).await;
    world.backend.answers(Manner::Well);
    let last = async || aldaba.answers(&message).await.pop().filter(|(status, _)| *status == 200);
    let handled = eventually("a success", last).await;
    assert_eq!(handled.1, json!({"received": true}));

    aldaba.resend(&message, &endpoint).await;
    let repeated = json!({"received": true, "duplicate": true});
    eventually("a duplicate", async || {
        aldaba.answers(&message).await.pop().filter(|last| last.1 == repeated)
    })
    .await;
    aldaba.disable(&endpoint).await;

    if world.sample.marks_by_key() {
        let attempts = aldaba.answers(&message).await.len();
        assert_eq!(world.backend.calls(&message).len(), attempts - 1);
    } else {
        assert_eq!(world.tables.marks(&message).await, 1);
        world.is_paid_once(&payment).await;
    }
}
