//! Payloads are deleted while something of them waits, in some of the runs.

use super::{Order, Scenario, What};
use crate::entropy::Dice;

pub(super) fn add(scenario: &mut Scenario) {
    let mut dice = Dice::of(scenario.seed, "expunging");
    if dice.percent(60) {
        return;
    }
    let moments: Vec<_> = scenario.orders.iter().map(|order| order.at).collect();
    for _ in 0..dice.pick(&[1, 5, 20]) {
        let at = dice.pick(&moments) + dice.millis(0, 5000);
        let tenant = dice.index(scenario.tenants);
        scenario.orders.push(Order { at, what: What::Expunge { tenant } });
    }
}
