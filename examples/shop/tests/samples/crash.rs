//! A receiver that is killed again and again while events come.

use crate::world::World;
use shop::{Lost, Payment, fresh};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const EVENTS: usize = 40;
const COPIES: usize = 3;
/// Requests at once.
const WIDTH: usize = 12;
/// It is killed when so many copies were answered with 200.
const KILLS: [usize; 6] = [5, 20, 40, 60, 80, 100];
const STOCK: i32 = 1000;

/// Every effect is counted in the transaction that has it, and takes a moment, so that kills hit it. Half of the orders have no
/// guard: they are never seen as paid, so that the mark alone holds a second effect.
const COUNTED: &str = "
    CREATE TABLE effects (order_id TEXT NOT NULL);
    CREATE FUNCTION count_effect() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO effects VALUES (NEW.id);
        PERFORM pg_sleep(0.03);
        IF NEW.id LIKE 'unguarded%' THEN
            NEW.status := 'pending';
            NEW.transaction_id := NULL;
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER count_effect BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION count_effect();
";

/// The trigger is for this claim alone.
const UNCOUNTED: &str =
    "DROP TRIGGER count_effect ON orders; DROP FUNCTION count_effect; DROP TABLE effects;";

pub(crate) async fn killed_under_load_every_event_has_one_effect(world: Arc<World>) {
    world.tables.run(COUNTED).await;
    let product = fresh("product");
    world.tables.add_product(&product, STOCK).await;
    let mut events = Vec::new();
    for number in 0..EVENTS {
        let order = fresh(if number % 2 == 0 { "unguarded" } else { "guarded" });
        world.tables.add_order(&order).await;
        events.push((fresh("evt"), Payment::of(&order, &product)));
    }

    let counts = Arc::new(AnswerCounts::default());
    let mut copies = send_all(&world, &events, &counts);
    for answered in KILLS {
        while counts.answered.load(Ordering::Relaxed) < answered {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut running = world.running.lock().await;
        running.kill();
        running.start_again().await;
    }
    while let Some(copy) = copies.join_next().await {
        copy.unwrap();
    }

    let cut_off = counts.cut_off.load(Ordering::Relaxed);
    println!("{} kills have cut off {cut_off} requests, which were sent again", KILLS.len());
    assert!(cut_off > 0, "no kill has hit anything");
    assert!(counts.new.load(Ordering::Relaxed) <= EVENTS);
    let client = world.tables.connect().await;
    for (id, payment) in &events {
        let effects = "SELECT COUNT(*) FROM effects WHERE order_id = $1";
        let effects: i64 = client.query_one(effects, &[&payment.order]).await.unwrap().get(0);
        assert_eq!((effects, world.tables.marks(id).await), (1, 1), "{id} {}", payment.order);
        let order = world.tables.order(&payment.order).await;
        let expected = if payment.order.starts_with("unguarded") { "pending" } else { "paid" };
        assert_eq!(order.status, expected, "{}", payment.order);
    }
    assert_eq!(world.tables.stock(&product).await, STOCK - EVENTS as i32);
    world.tables.run(UNCOUNTED).await;
}

#[derive(Default)]
struct AnswerCounts {
    answered: AtomicUsize,
    new: AtomicUsize,
    cut_off: AtomicUsize,
}

/// Every copy is sent until it is answered with 200, as a sender does.
fn send_all(world: &Arc<World>, events: &[(String, Payment)], counts: &Arc<AnswerCounts>) -> JoinSet<()> {
    let width = Arc::new(Semaphore::new(WIDTH));
    let mut copies = JoinSet::new();
    for (id, payment) in events {
        for _ in 0..COPIES {
            let (sender, id, body) = (world.sender, id.clone(), payment.body());
            let (counts, width) = (Arc::clone(counts), Arc::clone(&width));
            copies.spawn(async move {
                let _place = width.acquire().await.unwrap();
                loop {
                    match sender.try_send(sender.sign(&id, body.clone())).await {
                        Ok(answer) if answer.status == 200 => {
                            counts.new.fetch_add(usize::from(answer.is_new()), Ordering::Relaxed);
                            counts.answered.fetch_add(1, Ordering::Relaxed);
                            return;
                        }
                        Ok(answer) => assert!(answer.status >= 409, "{answer:?}"),
                        Err(lost) => {
                            counts.cut_off.fetch_add(usize::from(lost == Lost::CutOff), Ordering::Relaxed);
                        }
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        }
    }
    copies
}
