//! Some of the runs lose a tenant: its application is deleted, with all that waits for its endpoints and addresses.

use super::{Order, Scenario, What};
use crate::entropy::Dice;

pub(super) fn add(scenario: &mut Scenario) {
    let mut dice = Dice::of(scenario.seed, "departing");
    if dice.percent(80) {
        return;
    }
    let moments: Vec<_> = scenario.orders.iter().map(|order| order.at).collect();
    let at = dice.pick(&moments) + dice.millis(0, 5000);
    let tenant = dice.index(scenario.tenants);
    scenario.orders.push(Order { at, what: What::DeleteApplication { tenant } });
}
