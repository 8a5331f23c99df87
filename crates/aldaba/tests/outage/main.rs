//! Scripted outages, watched by the server's own alerts and by a real Prometheus with the rules of `contrib/`: every rule about the
//! whole server fires and is resolved in both at the same moments.
//!
//! Rules are judged every second, and fire after five where everybody waits for a minute.

#[path = "../black_box/mod.rs"]
mod black_box;
mod machine;
mod prometheus;
mod receivers;
mod watch;

use aldaba_delivery::alert::{AlertRule, AlertScope};
use std::collections::BTreeSet;

#[test]
fn every_rule_about_the_server_has_its_outage() {
    let watched = machine::RULES.into_iter().flatten().copied().chain(receivers::RULES);
    let of_server = AlertRule::ALL.into_iter().filter(|rule| rule.scopes().contains(&AlertScope::Server));
    assert_eq!(watched.collect::<BTreeSet<_>>(), of_server.map(AlertRule::name).collect());
}
