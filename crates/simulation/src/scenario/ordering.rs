//! Ordered endpoints, endpoints that change their ordering, and messages for later. They have dice of
//! their own.

use super::{Order, Scenario, What};
use crate::entropy::Dice;
use aldaba_delivery::{OnExhausted, Ordering};
use std::time::Duration;

pub(super) fn add(scenario: &mut Scenario) {
    let mut dice = Dice::of(scenario.seed, "ordering");
    let orderings = [
        Ordering::None,
        Ordering::Fifo(OnExhausted::Skip),
        Ordering::Fifo(OnExhausted::Skip),
        Ordering::Fifo(OnExhausted::Block),
    ];
    // Half of the runs have none of it.
    if dice.percent(50) {
        return;
    }
    for door in &mut scenario.doors {
        door.ordering = dice.pick(&orderings);
    }
    let moments: Vec<_> = scenario.orders.iter().map(|order| order.at).collect();
    for door in 0..scenario.doors.len() {
        for _ in 0..dice.pick(&[0, 0, 0, 1, 3]) {
            let (at, ordering) = (dice.pick(&moments) + dice.millis(0, 5000), dice.pick(&orderings));
            scenario.orders.push(Order { at, what: What::ChangeOrdering { door, ordering } });
        }
    }
    let length = scenario.faults_end.since(scenario.start);
    for order in &mut scenario.orders {
        if let What::Send(event) = &mut order.what
            && dice.percent(15)
        {
            // Some are over already, and mean at once.
            let earlier = Duration::from_secs(60).min(order.at.since(scenario.start));
            let from = scenario.start + order.at.since(scenario.start).saturating_sub(earlier);
            let longest = dice.pick(&[Duration::from_secs(120), length / 4]);
            event.deliver_at = Some(from + dice.span(Duration::ZERO, longest));
        }
    }
}
