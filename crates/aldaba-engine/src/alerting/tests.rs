//! Rounds against the real store.

mod pending;

use super::*;
use crate::{Statistics, SystemClock, SystemEntropy};
use aldaba_delivery::alert::Measured;
use aldaba_store::conformance::at;
use aldaba_store::{AlertsQuery, Application, ListRange, NewMail, NextMail, Order, Page, StoreOptions};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::Path;

const ORG: OrgId = OrgId::from_bytes([1; 20]);
const OTHER: OrgId = OrgId::from_bytes([2; 20]);

/// Measurements that a test sets.
#[derive(Default)]
struct Scripted(Mutex<BTreeMap<(OrgId, AlertRule), Measured>>);

impl Scripted {
    fn set(&self, org: OrgId, rule: AlertRule, value: f64) {
        self.0.lock().insert((org, rule), Measured::of(value));
    }
}

impl Measurements for Scripted {
    fn organizations(&self) -> Vec<OrgId> {
        self.0.lock().keys().map(|(org, _)| *org).collect()
    }

    fn measure(&self, scope: Scope, rules: &[(AlertRule, AlertLimits)], _: Timestamp) -> Vec<Measured> {
        let org = match scope {
            Scope::Server => management(),
            Scope::Organization(org) => org,
        };
        let set = self.0.lock();
        let value = |rule: AlertRule| set.get(&(org, rule)).copied().unwrap_or(Measured::Nothing);
        rules.iter().map(|(rule, _)| value(*rule)).collect()
    }
}

struct Stage {
    store: Arc<dyn Store>,
    values: Arc<Scripted>,
    alerting: Alerting,
}

impl Stage {
    async fn open(folder: &Path, rules: &str) -> Self {
        let store = aldaba_store::open(&StoreOptions::new(folder)).expect("a store");
        let values = Arc::new(Scripted::default());
        let rules = Arc::new(AlertRules::parse(rules).unwrap());
        let alerting = Alerting {
            store: store.clone(),
            clock: Arc::new(SystemClock::new()),
            entropy: Arc::new(SystemEntropy::new()),
            listeners: OperationalListeners::read(&*store).await.unwrap(),
            mail_queue: MailQueue::new(Some(Duration::ZERO)),
            measurements: values.clone(),
            settings: watch::channel(AlertSettings {
                rules: rules.clone(),
                interval: Duration::from_secs(15),
            })
            .1,
            rules,
            board: AlertBoard::default(),
            memory: AlertMemory::default(),
        };
        Self { store, values, alerting }
    }

    /// Rounds of 15 s from this second on, up to another one and without it.
    async fn rounds(&mut self, from: i64, until: i64) {
        for second in (from..until).step_by(15) {
            self.alerting.run_once(at(second)).await.unwrap();
        }
    }

    async fn alerts(&self, org: OrgId) -> Vec<Alert> {
        let part = ListRange::page(Page { after: None, limit: 100 }, Order::Ascending);
        let query = AlertsQuery { org, app: None, rule: None, firing: None, part };
        self.store.alerts(query).await.unwrap().items
    }

    async fn notices(&self, org: OrgId) -> Vec<Notice> {
        let kept = self.store.notices(org, 100).await.unwrap();
        kept.into_iter().map(|(_, notice)| notice).collect()
    }

    fn listens(&self, id: u8, org: OrgId) {
        self.alerting.listeners.put(&Application {
            id: aldaba_delivery::AppId::from_bytes([id; 20]),
            org: management(),
            uid: Some(org.to_string()),
            name: String::new(),
            throttle_rate: None,
            alert_email: None,
            metadata: "{}".into(),
            created_at: at(0),
            updated_at: at(0),
        });
    }

    async fn close(self) {
        self.store.close().await.unwrap();
    }
}

#[tokio::test]
async fn an_organization_and_the_server_are_judged_each_by_its_own_values() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(folder.path(), "").await;
    stage.values.set(ORG, AlertRule::QueueLength, 500.0);
    stage.values.set(OTHER, AlertRule::QueueLength, 5.0);
    stage.values.set(management(), AlertRule::DiskSpace, 1000.0);
    stage.rounds(0, 60).await;
    assert!(stage.alerts(ORG).await.is_empty(), "a minute is not over");
    stage.rounds(60, 75).await;
    let of_org = stage.alerts(ORG).await;
    let [alert] = &of_org[..] else { panic!("{of_org:?}") };
    assert_eq!((alert.rule, alert.fired_at, alert.is_firing()), (AlertRule::QueueLength, at(60), true));
    assert_eq!(stage.alerts(OTHER).await, []);
    let of_server = stage.alerts(management()).await;
    assert_eq!(of_server.iter().map(|alert| alert.rule).collect::<Vec<_>>(), [AlertRule::DiskSpace]);
    let firing: Vec<_> =
        stage.alerting.board.counts().into_iter().filter(|firing| firing.count > 0).collect();
    assert_eq!(
        firing,
        [
            FiringCount { rule: AlertRule::QueueLength, scope: AlertScope::Organization, count: 1 },
            FiringCount { rule: AlertRule::DiskSpace, scope: AlertScope::Server, count: 1 },
        ]
    );
    stage.values.set(ORG, AlertRule::QueueLength, 80.0);
    stage.rounds(75, 90).await;
    assert_eq!(stage.alerts(ORG).await[0].resolved_at, Some(at(75)));
}

#[tokio::test]
async fn who_listens_is_told_once_when_it_fires_and_once_when_it_is_resolved() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(folder.path(), "").await;
    stage.listens(1, ORG);
    stage.listens(2, management());
    for org in [ORG, OTHER, management()] {
        stage.values.set(org, AlertRule::QueueLength, 500.0);
    }
    stage.rounds(0, 600).await;
    for org in [ORG, OTHER, management()] {
        stage.values.set(org, AlertRule::QueueLength, 0.0);
    }
    stage.rounds(600, 900).await;
    for org in [ORG, management()] {
        let notices = stage.notices(org).await;
        assert_eq!(
            notices.iter().map(|notice| notice.event.as_str()).collect::<Vec<_>>(),
            ["alert.firing", "alert.resolved"]
        );
        let body: serde_json::Value = serde_json::from_str(&notices[0].body).unwrap();
        assert_eq!(body["rule"], "queue-length");
        assert_eq!(body["scope"], if org == ORG { "organization" } else { "server" });
        let text = body["text"].as_str().unwrap();
        assert!(text.starts_with("Alert: Many deliveries are waiting, 500 (limit: 100). "), "{text}");
    }
    assert_eq!(stage.notices(OTHER).await, []);
    assert_eq!(stage.alerts(OTHER).await.len(), 1);
}

#[tokio::test]
async fn the_operator_gets_a_mail_in_both_languages_about_the_server_and_none_about_organizations() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(folder.path(), "disk-space < 1000 for 0s; queue-length > 1 for 0s").await;
    stage.values.set(management(), AlertRule::DiskSpace, 10.0);
    stage.values.set(ORG, AlertRule::QueueLength, 10.0);
    stage.rounds(0, 15).await;
    let next = stage.store.next_mail(at(60), at(60), None).await.unwrap();
    let NextMail::Due(batch) = next else { panic!("no mail: {next:?}") };
    let [mail] = &batch.mails[..] else { panic!("{batch:?}") };
    assert_eq!((mail.kind.as_str(), batch.address.as_str()), (NewMail::CRITICAL, ""));
    let said: crate::AlertMail = serde_json::from_str(&mail.body).unwrap();
    assert_eq!(said.en.subject, "Alert: The disk is almost full");
    assert_eq!(said.es.subject, "Alerta: El disco está casi lleno");
    assert!(said.en.paragraphs.last().unwrap().starts_with("Make room"), "{said:?}");
    assert!(said.es.paragraphs.last().unwrap().starts_with("Libere espacio"), "{said:?}");
}

#[tokio::test]
async fn a_restart_neither_forgets_nor_repeats() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(folder.path(), "").await;
    stage.listens(1, ORG);
    stage.values.set(ORG, AlertRule::QueueLength, 500.0);
    stage.rounds(0, 75).await;
    let before = stage.alerts(ORG).await;
    stage.close().await;
    let mut stage = Stage::open(folder.path(), "").await;
    stage.listens(1, ORG);
    stage.values.set(ORG, AlertRule::QueueLength, 90.0);
    stage.rounds(90, 300).await;
    assert_eq!(stage.alerts(ORG).await, before, "still beyond the value that would resolve it");
    stage.values.set(ORG, AlertRule::QueueLength, 10.0);
    stage.rounds(300, 330).await;
    let after = stage.alerts(ORG).await;
    assert_eq!((after.len(), after[0].resolved_at), (1, Some(at(300))));
    assert_eq!(stage.notices(ORG).await.len(), 2);
}

#[tokio::test]
async fn a_restart_resolves_nothing_before_anybody_has_looked() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(folder.path(), "").await;
    stage.values.set(ORG, AlertRule::FailedEndpoints, 50.0);
    stage.rounds(0, 75).await;
    let before = stage.alerts(ORG).await;
    assert_eq!(before.len(), 1);
    stage.close().await;
    let mut stage = Stage::open(folder.path(), "").await;
    let statistics = Statistics::new(stage.store.live_counts(), Arc::new(SystemClock::new()));
    stage.alerting.measurements = Arc::new(EngineMeasurements {
        statistics: statistics.clone(),
        background: crate::Background::new(Arc::new(SystemClock::new())),
        store: stage.store.clone(),
        trust: crate::ClockTrust::default(),
        certificates: crate::CertificateExpiries::default(),
    });
    stage.rounds(90, 120).await;
    assert_eq!(stage.alerts(ORG).await, before);
    statistics.view.lock().seen_at = Some(at(120));
    stage.rounds(120, 135).await;
    assert_eq!(stage.alerts(ORG).await[0].resolved_at, Some(at(120)), "none has failed");
}

#[tokio::test]
async fn a_trouble_of_thousands_of_organizations_at_once_loses_no_alert() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(folder.path(), "queue-length > 100 for 0s; retry-rate > 0.2 for 0s").await;
    let orgs: Vec<_> = (0..6_000_u64)
        .map(|number| {
            let mut id = [7; 20];
            id[..8].copy_from_slice(&number.to_be_bytes());
            OrgId::from_bytes(id)
        })
        .collect();
    for org in &orgs {
        stage.values.set(*org, AlertRule::QueueLength, 500.0);
        stage.values.set(*org, AlertRule::RetryRate, 0.9);
    }
    stage.rounds(0, 15).await;
    for org in &orgs {
        assert_eq!(stage.alerts(*org).await.len(), 2, "{org}");
    }
}

#[tokio::test]
async fn alerts_of_endpoints_end_where_their_rule_is_turned_off() {
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::open(folder.path(), "").await;
    let alert = Alert {
        id: AlertId::new(at(0), [1; 15]),
        org: ORG,
        app: Some(aldaba_delivery::AppId::from_bytes([3; 20])),
        endpoint: Some(aldaba_delivery::EndpointId::from_bytes([4; 20])),
        rule: AlertRule::EndpointFailing,
        value: 3.0,
        threshold: 2.0,
        fired_at: at(0),
        resolved_at: None,
        acknowledged_at: None,
        acknowledged_by: None,
    };
    let (notices, mails) = (Vec::new(), Vec::new());
    let fired = vec![alert];
    stage.alerting.change(Change::WriteAlerts { fired, resolved: Vec::new(), notices, mails }).await.unwrap();
    stage.close().await;
    let mut stage = Stage::open(folder.path(), "endpoint-failing off").await;
    stage.rounds(30, 45).await;
    assert_eq!(stage.alerts(ORG).await[0].resolved_at, Some(at(30)));
}

#[tokio::test]
async fn a_rule_that_is_turned_off_resolves_what_fires() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(folder.path(), "").await;
    stage.values.set(ORG, AlertRule::QueueLength, 500.0);
    stage.rounds(0, 75).await;
    stage.close().await;
    let mut stage = Stage::open(folder.path(), "queue-length off").await;
    stage.values.set(ORG, AlertRule::QueueLength, 500.0);
    stage.rounds(90, 300).await;
    let alerts = stage.alerts(ORG).await;
    assert_eq!((alerts.len(), alerts[0].resolved_at), (1, Some(at(90))));
}

#[tokio::test]
async fn thresholds_of_the_configuration_count() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(folder.path(), "queue-length > 600 for 0s; retry-rate > 0.5 for 30s").await;
    stage.values.set(ORG, AlertRule::QueueLength, 600.0);
    stage.values.set(ORG, AlertRule::RetryRate, 0.6);
    stage.rounds(0, 15).await;
    stage.values.set(ORG, AlertRule::QueueLength, 601.0);
    stage.rounds(15, 45).await;
    let fired: Vec<_> = stage.alerts(ORG).await.iter().map(|alert| (alert.rule, alert.fired_at)).collect();
    assert_eq!(fired, [(AlertRule::QueueLength, at(15)), (AlertRule::RetryRate, at(30))]);
}

#[tokio::test]
async fn what_cannot_be_stored_is_stored_later() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(folder.path(), "").await;
    stage.rounds(0, 15).await;
    stage.close().await;
    // A store that is closed refuses every write.
    let mut stage = Stage::open(folder.path(), "queue-length > 100 for 0s").await;
    stage.rounds(0, 15).await;
    stage.values.set(ORG, AlertRule::QueueLength, 500.0);
    let working = stage.alerting.store.clone();
    let other = tempfile::tempdir().unwrap();
    let closed = aldaba_store::open(&StoreOptions::new(other.path())).expect("a store");
    closed.close().await.unwrap();
    stage.alerting.store = closed;
    assert_eq!(stage.alerting.run_once(at(15)).await, Err(Error::Closed));
    stage.alerting.store = working;
    stage.values.set(ORG, AlertRule::QueueLength, 0.0);
    stage.rounds(30, 45).await;
    let alerts = stage.alerts(ORG).await;
    assert_eq!((alerts.len(), alerts[0].fired_at, alerts[0].resolved_at), (1, at(15), Some(at(30))));
}
