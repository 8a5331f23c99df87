//! An event has its effect once, however often it comes.

use crate::world::{STOCK, World};
use futures_util::future::join_all;
use shop::{Payment, fresh};
use std::sync::Arc;

pub(crate) async fn e13_a_first_event_has_its_effect_and_a_repeat_is_a_duplicate(world: Arc<World>) {
    let (payment, id) = (world.payment().await, fresh("evt"));
    let first = world.sender.deliver(&id, &payment.body()).await;
    assert!(first.is_new(), "{first:?}");
    world.is_paid_once(&payment).await;
    let order = world.tables.order(&payment.order).await;
    assert_eq!(order.method.as_deref(), Some("card"));
    assert_eq!(order.paid_at.as_deref(), Some("2026-01-31 12:30:45"));
    assert!(order.updated, "its row says when it was changed");

    let second = world.sender.deliver(&id, &payment.body()).await;
    assert!(second.is_duplicate(), "{second:?}");
    world.is_paid_once(&payment).await;
    assert_eq!(world.tables.marks(&id).await, 1);
}

pub(crate) async fn e12_an_order_has_the_name_of_its_customer(world: Arc<World>) {
    let order = fresh("order");
    let nameless = world.tables.connect().await;
    let insert = "INSERT INTO orders (id, amount) VALUES ($1, 2599)";
    let refused = nameless.execute(insert, &[&order]).await.expect_err("there is no such order");
    assert!(
        refused.as_db_error().is_some_and(|error| error.column() == Some("customer_name")),
        "{refused:?}"
    );
    world.tables.add_order(&order).await;
    assert!(!world.tables.order(&order).await.updated, "nobody has changed it");
}

pub(crate) async fn e13_three_copies_leave_one_mark_and_one_effect(world: Arc<World>) {
    let (payment, id) = (world.payment().await, fresh("evt"));
    for _ in 0..3 {
        assert_eq!(world.sender.deliver(&id, &payment.body()).await.status, 200);
    }
    assert_eq!(world.tables.marks(&id).await, 1);
    world.is_paid_once(&payment).await;
}

pub(crate) async fn e13_ten_parallel_copies_are_all_answered_200_and_one_of_them_is_new(world: Arc<World>) {
    for _ in 0..5 {
        let (payment, id) = (world.payment().await, fresh("evt"));
        let body = payment.body();
        let answers = join_all((0..10).map(|_| world.sender.deliver(&id, &body))).await;
        assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
        assert_eq!(answers.iter().filter(|answer| answer.is_new()).count(), 1);
        assert_eq!(answers.iter().filter(|answer| answer.is_duplicate()).count(), 9);
        assert_eq!(world.tables.marks(&id).await, 1);
        world.is_paid_once(&payment).await;
    }
}

/// The mark alone does it: the guards of the shop are for what no mark can see.
pub(crate) async fn a_repeat_does_not_run_where_no_guard_would_hold_it(world: Arc<World>) {
    let (payment, id) = (world.payment().await, fresh("evt"));
    assert!(world.sender.deliver(&id, &payment.body()).await.is_new());
    world.tables.forget_payment(&payment.order).await;
    assert!(world.sender.deliver(&id, &payment.body()).await.is_duplicate());
    assert_eq!(world.tables.order(&payment.order).await.status, "pending");
    assert_eq!(world.tables.stock(&payment.product).await, STOCK - 1);
}

pub(crate) async fn e12_a_second_event_of_a_payment_has_no_second_effect(world: Arc<World>) {
    let payment = world.payment().await;
    for id in [fresh("evt"), fresh("evt")] {
        assert!(world.sender.deliver(&id, &payment.body()).await.is_new());
        assert_eq!(world.tables.marks(&id).await, 1);
    }
    world.is_paid_once(&payment).await;
}

pub(crate) async fn e12_the_stock_does_not_fall_below_zero(world: Arc<World>) {
    let product = fresh("rare");
    world.tables.add_product(&product, 1).await;
    for _ in 0..2 {
        let payment = Payment::of(&fresh("order"), &product);
        world.tables.add_order(&payment.order).await;
        assert!(world.sender.deliver(&fresh("evt"), &payment.body()).await.is_new());
        assert_eq!(world.tables.order(&payment.order).await.status, "paid");
        assert_eq!(world.tables.stock(&product).await, 0);
    }
}

/// Its type is that of the body: the one in a header of branded deliveries is not signed, and here it lies.
pub(crate) async fn an_event_that_nobody_handles_is_marked(world: Arc<World>) {
    let payment = world.payment().await;
    let mut event = payment.event();
    event["type"] = "payment.failed".into();
    let (id, body) = (fresh("evt"), event.to_string());
    assert!(world.sender.deliver(&id, body.as_bytes()).await.is_new());
    assert!(world.sender.deliver(&id, body.as_bytes()).await.is_duplicate());
    world.is_not_paid(&payment).await;
}

pub(crate) async fn e6_old_marks_are_cleaned_and_young_ones_stay(world: Arc<World>) {
    let (payment, old, young) = (world.payment().await, fresh("evt"), fresh("evt"));
    assert!(world.sender.deliver(&old, &payment.body()).await.is_new());
    assert!(world.sender.deliver(&young, &payment.body()).await.is_new());
    for (id, days) in [(&old, 31), (&young, 29)] {
        let age = format!(
            "UPDATE webhook_events SET processed_at = NOW() - INTERVAL '{days} days' WHERE event_id = '{id}'"
        );
        world.tables.run(&age).await;
    }
    assert_eq!(world.tables.clean().await, 1);
    assert_eq!((world.tables.marks(&old).await, world.tables.marks(&young).await), (0, 1));
}
