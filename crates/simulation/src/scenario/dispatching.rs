//! Some of the runs send to addresses that are no endpoints.

use super::{Door, EventPlan, Order, Scenario, What};
use crate::entropy::Dice;
use crate::receiver::{Mood, Spell};
use crate::store::Span;
use aldaba_delivery::Ordering;
use aldaba_delivery::policy::BUILTIN_NAMES;
use aldaba_signature::SigningKey;
use std::time::Duration;

/// The last to be added: nothing else happens to these doors.
pub(super) fn add(scenario: &mut Scenario) {
    let mut dice = Dice::of(scenario.seed, "dispatching");
    if dice.percent(60) {
        return;
    }
    let moments: Vec<_> = scenario.orders.iter().map(|order| order.at).collect();
    let length = scenario.faults_end.since(scenario.start);
    for _ in 0..dice.between(1, 3) {
        let number = scenario.doors.len();
        let from = scenario.start + dice.span(Duration::from_secs(60), length);
        let mood =
            dice.pick(&[Mood::Answers(500), Mood::Answers(410), Mood::Flaky, Mood::Breaks, Mood::Silent]);
        let spell = Spell { span: Span { from, to: from + dice.span(Duration::from_secs(1), length) }, mood };
        scenario.doors.push(Door {
            tenant: dice.index(scenario.tenants),
            host: dice.index(scenario.hosts.len()),
            policy: dice.pick(&BUILTIN_NAMES),
            profile: None,
            event_types: Vec::new(),
            channels: Vec::new(),
            filter: None,
            throttle_rate: None,
            ordering: Ordering::None,
            key: SigningKey::generate_hmac([number.to_le_bytes()[0]; 24]),
            moods: vec![spell],
            late: true,
            holds: false,
        });
        for _ in 0..dice.pick(&[1, 5, 40]) {
            let event = EventPlan {
                number: scenario.orders.len(),
                tenant: scenario.doors[number].tenant,
                event_type: "job.status",
                channels: Vec::new(),
                has_event_id: dice.percent(30),
                has_key: dice.percent(50),
                twice: dice.percent(10),
                again: dice.percent(10),
                deliver_at: None,
                payload_kept: None,
                padding: dice.index(200),
                address: Some(number),
            };
            let at = dice.pick(&moments) + dice.millis(0, 5000);
            scenario.orders.push(Order { at, what: What::Send(event) });
        }
    }
}
