//! Ordered lanes.

use super::*;

/// One ordered lane with three deliveries.
fn ordered_lane() -> World {
    let mut world = with_lanes(1000, 1, 3, |_| 0);
    world.ordering = Ordering::Fifo(OnExhausted::Block);
    world
}

#[test]
fn an_ordered_lane_starts_the_next_when_the_one_before_is_on_disk() {
    let mut world = ordered_lane();
    let endpoint = lane_id(0);
    for row in 0..3 {
        let seq = row_of(0, row).seq;
        assert_eq!(world.started(), [(endpoint, seq)]);
        world.scheduler.left_wire(endpoint, seq, Some((true, Duration::from_millis(1))));
        assert_eq!(world.started(), [], "its result is not written yet");
        world.rows.entry(endpoint).or_default().retain(|row| row.seq != seq);
        world.scheduler.recorded(endpoint, seq, None, Timestamp::from_millis(0));
    }
    assert_eq!(world.started(), []);
}

#[test]
fn a_lane_that_becomes_ordered_waits_for_all_that_is_in_flight() {
    let mut world = with_lanes(1000, 1, 10, |_| 0);
    let mut flying = world.started();
    assert_eq!(flying.len(), 8);
    world.ordering = Ordering::Fifo(OnExhausted::Skip);
    world.scheduler.endpoint_changed(lane_id(0));
    assert_eq!(world.started(), []);
    for start in flying.split_off(1) {
        world.end(start, true);
        assert_eq!(world.started(), [], "the first one is still under way");
    }
    world.end(flying[0], true);
    assert_eq!(world.started(), [(lane_id(0), row_of(0, 8).seq)]);
}

#[test]
fn a_block_holds_the_lane_until_its_ordering_no_longer_asks_for_it() {
    let mut world = ordered_lane();
    let now = Timestamp::from_millis(0);
    let first = world.started()[0];
    let health = world.scheduler.health(lane_id(0)).expect("it is awake").0;
    *health = health.blocked(now);
    world.end(first, true);
    assert_eq!(world.started(), []);
    world.scheduler.endpoint_changed(lane_id(0));
    assert_eq!(world.started(), [], "another change makes no difference");
    world.ordering = Ordering::Fifo(OnExhausted::Skip);
    world.scheduler.endpoint_changed(lane_id(0));
    assert_eq!(world.started(), [(lane_id(0), row_of(0, 1).seq)]);
}

#[test]
fn what_is_due_does_not_wait_for_a_head_that_only_an_older_ordering_put_there() {
    let mut world = with_lanes(4, 1, 0, |_| 1);
    world.ordering = Ordering::Fifo(OnExhausted::Skip);
    assert_eq!(world.started(), []);
    let (endpoint, app) = (lane_id(0), AppId::from_bytes([1; 20]));
    // It is no ordered one any more, so that a message for later is taken.
    world.ordering = Ordering::None;
    world.scheduler.endpoint_changed(endpoint);
    let later = PendingDelivery { due_at: Timestamp::from_millis(3_600_000), ..row_of(0, 1) };
    let rows = [later, row_of(0, 2)];
    world.rows.insert(endpoint, rows.to_vec());
    for waiting in rows {
        world.scheduler.enqueue(
            endpoint,
            app,
            BufferedDelivery { pending: waiting, content: None },
            Timestamp::from_millis(0),
        );
    }
    assert_eq!(world.started(), [(endpoint, Seq(2))]);
}
