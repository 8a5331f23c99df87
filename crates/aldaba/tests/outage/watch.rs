//! A server's own alerts and a Prometheus beside it, and whether both say the same.

use crate::black_box::{Client, wait_at_most};
use crate::prometheus::Prometheus;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How far the moments of both may be apart on a busy machine: each looks once a second, at what is scraped once a second.
const TOLERANCE_SECONDS: i64 = 5;
pub(crate) const LIMIT: Duration = Duration::from_secs(180);

/// When each rule fired for the whole server, and when that was over.
pub(crate) type Alerts = BTreeMap<String, (i64, Option<i64>)>;

pub(crate) struct Watch {
    operator: Client,
    prometheus: Prometheus,
    began: i64,
    rules: &'static [&'static str],
}

impl Watch {
    /// Watches these rules of a server, which is started when Prometheus is there: a rule may fire at once. `changes`: texts in
    /// Prometheus's rules, and those of the server's settings.
    pub(crate) fn start<S>(
        folder: &Path,
        address: SocketAddr,
        rules: &'static [&'static str],
        changes: &[(&str, &str)],
        serve: impl FnOnce() -> S,
    ) -> (Self, S) {
        let prometheus = Prometheus::start(folder, address, changes);
        let (began, server) = (prometheus.now(), serve());
        assert!(wait_at_most(LIMIT, || prometheus.scrapes()), "Prometheus does not scrape the server");
        let token = operator_token(&folder.join("data"));
        let operator = Client::connect(address, &token).expect("the server listens");
        (Self { operator, prometheus, began, rules }, server)
    }

    pub(crate) fn alerts(&mut self) -> Alerts {
        let answer = self.operator.get("/alert?limit=250").expect("an answer");
        let mut alerts = Alerts::new();
        for alert in answer.body["data"].as_array().into_iter().flatten() {
            let moment = |name: &str| alert[name].as_str().map(seconds);
            let rule = alert["rule"].as_str().expect("a rule").to_owned();
            let before = alerts.insert(rule, (moment("firedAt").expect("a moment"), moment("resolvedAt")));
            assert_eq!(before, None, "it fired twice: {alert}");
        }
        alerts
    }

    /// Waits until every rule fires on both sides: a scrape comes after what it shows.
    pub(crate) fn all_fire(&mut self) {
        let fire = || {
            let (ours, theirs) = (self.alerts(), self.prometheus.firing());
            self.rules.iter().all(|rule| ours.contains_key(*rule) && theirs.contains(*rule))
        };
        let fired = wait_at_most(LIMIT, fire);
        let (ours, theirs) = (self.alerts(), self.prometheus.firing());
        assert!(fired, "not every rule of {:?} fires: {ours:?} here, {theirs:?} there", self.rules);
    }

    /// Waits until no alert fires here, and does something meanwhile, again and again.
    pub(crate) fn all_are_resolved(&mut self, mut meanwhile: impl FnMut()) {
        let over = || {
            meanwhile();
            let alerts = self.alerts();
            !alerts.is_empty() && alerts.values().all(|(_, resolved)| resolved.is_some())
        };
        let resolved = wait_at_most(LIMIT, over);
        assert!(resolved, "not every rule is resolved: {:?}", self.alerts());
    }

    /// The queries of the dashboard that have no data here.
    pub(crate) fn panels_without_data(&self) -> Vec<String> {
        self.prometheus.panels_without_data()
    }

    /// Every rule fired on both sides at the same moment, and ended at the same moment.
    pub(crate) fn both_agree(&mut self) {
        let alerts = self.alerts();
        let until = alerts.values().filter_map(|(_, resolved)| *resolved).max().expect("there are some") + 10;
        assert!(wait_at_most(LIMIT, || self.prometheus.now() >= until), "time passes");
        let theirs = self.prometheus.fired(self.began, until);
        for rule in self.rules {
            let (fired, resolved) = alerts[*rule];
            let resolved = resolved.expect("it is resolved");
            let (first, last) =
                theirs.get(*rule).unwrap_or_else(|| panic!("{rule} did not fire in Prometheus: {theirs:?}"));
            println!("{rule}: fired {} s apart, resolved {} s apart", first - fired, last + 1 - resolved);
            assert!((first - fired).abs() <= TOLERANCE_SECONDS, "{rule}: {first} there, {fired} here");
            assert!(
                (last + 1 - resolved).abs() <= TOLERANCE_SECONDS,
                "{rule}: until {last} there, {resolved} here"
            );
        }
    }
}

fn seconds(rfc3339: &str) -> i64 {
    rfc3339.parse::<jiff::Timestamp>().expect("a moment").as_second()
}

fn operator_token(data: &Path) -> String {
    let made = Command::new(env!("CARGO_BIN_EXE_aldaba"))
        .args(["token", "create", "--org", "org_00000000000SvixManagement00", "--data"])
        .arg(data)
        .output()
        .expect("the command runs");
    String::from_utf8(made.stdout).expect("a token is text").trim().to_owned()
}
