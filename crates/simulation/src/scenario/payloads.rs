//! Payloads that are kept for a short time only, in some of the runs.

use super::{Scenario, What};
use crate::entropy::Dice;
use std::time::Duration;

pub(super) fn add(scenario: &mut Scenario) {
    let mut dice = Dice::of(scenario.seed, "payloads");
    if dice.percent(50) {
        return;
    }
    for order in &mut scenario.orders {
        if let What::Send(event) = &mut order.what
            && dice.percent(40)
        {
            let longest = dice.pick(&[Duration::from_secs(30), Duration::from_secs(3600)]);
            event.payload_kept = Some(dice.span(Duration::ZERO, longest));
        }
    }
}
