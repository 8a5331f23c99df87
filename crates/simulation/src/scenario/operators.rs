//! Operators: endpoints are turned off and on, resumed, gates opened, and what waits is sent manually, in some of
//! the runs.

use super::{Order, Scenario, What};
use crate::entropy::Dice;
use std::time::Duration;

pub(super) fn add(scenario: &mut Scenario) {
    let mut dice = Dice::of(scenario.seed, "hands");
    scenario.options.held = Duration::from_secs(dice.pick(&[30 * 24 * 3600, 30 * 24 * 3600, 6 * 3600]));
    if dice.percent(40) {
        return;
    }
    let moments: Vec<_> = scenario.orders.iter().map(|order| order.at).collect();
    for door in 0..scenario.doors.len() {
        scenario.doors[door].holds = dice.percent(50);
        for _ in 0..dice.pick(&[0, 0, 1, 2, 4]) {
            let at = dice.pick(&moments) + dice.millis(0, 5000);
            let what = match dice.between(0, 4) {
                0 => What::Resume { door },
                1 => What::OpenGates { door },
                2 => What::Resend { door },
                _ => What::Disable { door },
            };
            if matches!(what, What::Disable { .. }) {
                let span = dice.pick(&[1000, 60_000, 4 * 3_600_000]);
                let on_again = at + dice.millis(0, span);
                scenario.orders.push(Order { at: on_again, what: What::Enable { door } });
            }
            scenario.orders.push(Order { at, what });
        }
        // In the end somebody looks after most of them, so that what is held gets out.
        if dice.percent(70) {
            let at = scenario.faults_end + dice.millis(1000, 3_600_000);
            scenario.orders.push(Order { at, what: What::Enable { door } });
        }
    }
}
