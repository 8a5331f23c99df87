//! Alerts: what fires, what is resolved, and who has taken note of it.

use super::retention::{find, remove};
use super::scene::made;
use super::{Scene, at};
use crate::operations::{ExpiredItem, Search};
use crate::{
    Alert, AlertsQuery, AuditAction, Change, Changed, ListRange, Notice, Order, Page, PendingAlert, Record,
    Store,
};
use aldaba_delivery::alert::AlertRule;
use aldaba_delivery::{AlertId, EndpointId, Health, HealthStatus, OrgId, Reason, Timestamp};
use std::sync::Arc;

fn alert(scene: &Scene, rule: AlertRule, fired_at: Timestamp) -> Alert {
    Alert {
        id: scene.id_at(fired_at),
        org: scene.org,
        app: None,
        endpoint: None,
        rule,
        value: 0.123_456_789,
        threshold: 0.1,
        fired_at,
        resolved_at: None,
        acknowledged_at: None,
        acknowledged_by: None,
    }
}

async fn write(scene: &Scene, fired: Vec<Alert>, resolved: Vec<(AlertId, Timestamp)>) {
    let (notices, mails) = (Vec::new(), Vec::new());
    assert_eq!(scene.change(Change::WriteAlerts { fired, resolved, notices, mails }).await, made());
}

fn query(scene: &Scene) -> AlertsQuery {
    let part = ListRange::page(Page { after: None, limit: 100 }, Order::Descending);
    AlertsQuery { org: scene.org, app: None, rule: None, firing: None, part }
}

async fn list(scene: &Scene, query: AlertsQuery) -> Vec<Alert> {
    scene.store.alerts(query).await.unwrap().items
}

/// Makes an endpoint fail so many times in a row, or succeed with 0, and returns what it has of alerts.
async fn fails(scene: &Scene, endpoint: EndpointId, count: u32, now: Timestamp) -> Vec<Alert> {
    let before = scene.endpoint(endpoint).await;
    let tenant = scene.tenant(before.app).await.unwrap();
    let event = scene.event(&tenant);
    let seq = scene.accepted(&event).await;
    let health = Health { failure_count: count, epoch: before.health.epoch, ..Health::default() };
    scene.record(vec![Record { health: Some(health), at: now, ..scene.delivered(&event, seq) }]).await;
    let mut found = list(scene, AlertsQuery { app: Some(before.app), ..query(scene) }).await;
    found.retain(|alert| alert.endpoint == Some(endpoint));
    found
}

pub async fn an_alert_comes_back_as_it_was_written_and_is_resolved_once(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let [first, second] =
        [AlertRule::QueueLength, AlertRule::RetryRate].map(|rule| alert(&scene, rule, at(1)));
    write(&scene, vec![first.clone(), second.clone()], Vec::new()).await;
    // Written again after an answer that was lost.
    write(&scene, vec![first.clone()], Vec::new()).await;
    assert_eq!(scene.store.alert(scene.org, first.id).await.unwrap(), Some(first.clone()));
    assert_eq!(scene.store.alert(OrgId::MAX, first.id).await.unwrap(), None);
    assert_eq!(scene.store.judged_alerts(None, 10).await.unwrap(), [first.clone(), second.clone()]);
    assert_eq!(scene.store.judged_alerts(Some(first.id), 10).await.unwrap(), std::slice::from_ref(&second));
    write(&scene, Vec::new(), vec![(first.id, at(5))]).await;
    write(&scene, Vec::new(), vec![(first.id, at(9))]).await;
    let resolved = Alert { resolved_at: Some(at(5)), ..first };
    assert_eq!(list(&scene, query(&scene)).await, [second.clone(), resolved.clone()]);
    let firing = list(&scene, AlertsQuery { firing: Some(true), ..query(&scene) }).await;
    assert_eq!(firing, std::slice::from_ref(&second));
    assert_eq!(list(&scene, AlertsQuery { firing: Some(false), ..query(&scene) }).await, [resolved]);
    let of_rule = AlertsQuery { rule: Some(AlertRule::RetryRate), ..query(&scene) };
    assert_eq!(list(&scene, of_rule).await, std::slice::from_ref(&second));
    assert_eq!(list(&scene, AlertsQuery { org: OrgId::MAX, ..query(&scene) }).await, []);
    assert_eq!(scene.store.judged_alerts(None, 10).await.unwrap(), [second]);
}

pub async fn an_alert_and_its_notices_are_one_commit(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let notice = Notice { org: scene.org, event: "alert.firing".into(), body: "{}".into() };
    let fired = vec![alert(&scene, AlertRule::QueueLength, at(1))];
    let write =
        Change::WriteAlerts { fired, resolved: Vec::new(), notices: vec![notice.clone()], mails: Vec::new() };
    assert_eq!(scene.change(write).await, made());
    let kept = scene.store.notices(scene.org, 10).await.unwrap();
    assert_eq!(kept.into_iter().map(|(_, notice)| notice).collect::<Vec<_>>(), [notice]);
}

pub async fn an_alert_is_acknowledged_once_and_while_it_fires(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let fired = alert(&scene, AlertRule::QueueLength, at(1));
    let id = fired.id;
    write(&scene, vec![fired.clone()], Vec::new()).await;
    let note = |org, moment, by: &str| Change::AcknowledgeAlert { org, alert: id, at: moment, by: by.into() };
    let entry = scene.audit(AuditAction::new("alert.acknowledge", &id));
    assert_eq!(scene.change(note(OrgId::MAX, at(2), "x")).await, Changed::NotFound);
    assert_eq!(scene.change_by(note(scene.org, at(2), "ana"), Some(entry)).await, made());
    assert_eq!(scene.change(note(scene.org, at(3), "luis")).await, Changed::Unchanged);
    let noted = Alert { acknowledged_at: Some(at(2)), acknowledged_by: Some("ana".into()), ..fired };
    assert_eq!(scene.store.alert(scene.org, id).await.unwrap(), Some(noted.clone()));
    write(&scene, Vec::new(), vec![(id, at(5))]).await;
    let resolved = Alert { resolved_at: Some(at(5)), ..noted };
    assert_eq!(scene.store.alert(scene.org, id).await.unwrap(), Some(resolved));
    let other = alert(&scene, AlertRule::RetryRate, at(1));
    write(&scene, vec![other.clone()], vec![(other.id, at(5))]).await;
    let late = Change::AcknowledgeAlert { org: scene.org, alert: other.id, at: at(6), by: "ana".into() };
    assert_eq!(scene.change(late).await, Changed::Unchanged);
}

pub async fn an_endpoint_has_an_alert_from_its_third_failure_to_its_next_success(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let endpoint = scene.with_endpoints(1).await.endpoints[0].id;
    assert_eq!(fails(&scene, endpoint, 2, at(1)).await, []);
    let found = fails(&scene, endpoint, 3, at(2)).await;
    let [alert] = &found[..] else { panic!("{found:?}") };
    assert_eq!((alert.rule, alert.fired_at, alert.is_firing()), (AlertRule::EndpointFailing, at(2), true));
    assert_eq!((alert.value.to_bits(), alert.threshold.to_bits()), (3.0_f64.to_bits(), 2.0_f64.to_bits()));
    assert_eq!(fails(&scene, endpoint, 4, at(3)).await, found);
    let found = fails(&scene, endpoint, 0, at(4)).await;
    assert_eq!(found[0].resolved_at, Some(at(4)));
    // What the engine judges has none of it.
    assert_eq!(scene.store.judged_alerts(None, 10).await.unwrap(), []);
}

pub async fn an_endpoint_that_fails_by_turns_has_one_alert(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let endpoint = scene.with_endpoints(1).await.endpoints[0].id;
    for round in 0..5 {
        fails(&scene, endpoint, 3, at(10 * round)).await;
        fails(&scene, endpoint, 0, at(10 * round + 5)).await;
    }
    assert_eq!(fails(&scene, endpoint, 3, at(60)).await.len(), 1);
    fails(&scene, endpoint, 0, at(61)).await;
    let later = at(62) + Alert::REOPENED_WITHIN;
    assert_eq!(fails(&scene, endpoint, 3, later).await.len(), 2);
}

pub async fn an_alert_that_is_reopened_is_no_longer_acknowledged(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let endpoint = scene.with_endpoints(1).await.endpoints[0].id;
    let id = fails(&scene, endpoint, 3, at(1)).await[0].id;
    let note = Change::AcknowledgeAlert { org: scene.org, alert: id, at: at(2), by: "ana".into() };
    assert_eq!(scene.change(note).await, made());
    fails(&scene, endpoint, 0, at(3)).await;
    let found = fails(&scene, endpoint, 3, at(4)).await;
    let [alert] = &found[..] else { panic!("{found:?}") };
    assert_eq!((alert.id, alert.is_firing(), alert.acknowledged_at), (id, true, None));
    assert_eq!(alert.acknowledged_by, None);
}

pub async fn an_endpoint_that_is_gone_has_an_alert_beyond_its_limit_until_it_is_turned_off(
    store: Arc<dyn Store>,
) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let id = tenant.endpoints[0].id;
    let event = scene.event(&tenant);
    let seq = scene.accepted(&event).await;
    let health = Some(Health { status: HealthStatus::Gone, ..Health::default() });
    scene.record(vec![Record { health, at: at(1), ..scene.dead(&event, seq, Reason::EndpointGone) }]).await;
    let found = list(&scene, query(&scene)).await;
    let [alert] = &found[..] else { panic!("{found:?}") };
    assert!(alert.is_firing() && alert.value > alert.threshold, "{alert:?}");
    let before = scene.endpoint(id).await;
    let mut endpoint = before.clone();
    endpoint.config.disabled = true;
    endpoint.updated_at = at(9);
    let was = crate::Fence::from(&before);
    let off = Change::UpdateEndpoint { endpoint, was, resume: false, notices: Vec::new() };
    assert!(scene.change(off).await.is_change());
    assert_eq!(list(&scene, query(&scene)).await[0].resolved_at, Some(at(9)));
}

pub async fn alerts_of_endpoints_that_are_well_under_the_rules_are_settled(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let (bad, well) = (tenant.endpoints[0].id, tenant.endpoints[1].id);
    fails(&scene, bad, 3, at(1)).await;
    // One that fired under rules of which nobody knows any more.
    let stale = Alert {
        app: Some(tenant.application.id),
        endpoint: Some(well),
        ..alert(&scene, AlertRule::EndpointFailing, at(2))
    };
    write(&scene, vec![stale], Vec::new()).await;
    let mut endpoints = scene.store.alerting_endpoints(None, 10).await.unwrap();
    assert_eq!(endpoints, [bad.min(well), bad.max(well)]);
    assert_eq!(scene.store.alerting_endpoints(Some(endpoints[0]), 10).await.unwrap(), [endpoints[1]]);
    endpoints.push(EndpointId::from_bytes([9; 20]));
    assert_eq!(scene.change(Change::SettleEndpointAlerts { endpoints, at: at(5) }).await, made());
    assert_eq!(scene.store.alerting_endpoints(None, 10).await.unwrap(), [bad]);
}

pub async fn the_alert_of_an_endpoint_ends_with_a_resume_and_with_its_deletion(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(3).await;
    let app = tenant.application.id;
    let ids: Vec<_> = tenant.endpoints.iter().map(|endpoint| endpoint.id).collect();
    for id in &ids {
        let event = scene.event(&scene.tenant(app).await.unwrap());
        let seq = scene.accepted(&event).await;
        let health = Health { status: HealthStatus::Failed, ..Health::default() };
        let delivered = scene.delivered(&event, seq);
        let record = Record { endpoint: *id, health: Some(health), at: at(1), ..delivered };
        let seq = record.seq.0 + ids.iter().position(|other| other == id).unwrap() as i64;
        scene.record(vec![Record { seq: crate::Seq(seq), ..record }]).await;
    }
    let firing = async || {
        let found = list(&scene, AlertsQuery { firing: Some(true), app: Some(app), ..query(&scene) }).await;
        found.into_iter().filter_map(|alert| alert.endpoint).collect::<Vec<_>>()
    };
    assert_eq!(firing().await.len(), 3);
    let (endpoint, notices) = (ids[0], Vec::new());
    let resume =
        Change::ResumeEndpoint { app, endpoint, at: at(2), recovery: None, notices: notices.clone() };
    assert!(scene.change(resume).await.is_change());
    assert!(!firing().await.contains(&ids[0]));
    scene.change(Change::DeleteEndpoint { app, endpoint: ids[1], at: at(3), notices }).await;
    assert_eq!(firing().await, [ids[2]]);
    scene.change(Change::DeleteApplication { app, at: at(4) }).await;
    assert_eq!(firing().await, []);
}

pub async fn what_is_pending_comes_back_with_the_moment_of_the_last_judgement(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let pending =
        |rule, second| PendingAlert { org: scene.org, rule, threshold: 0.123_456_789, since: at(second) };
    let (queue, retries) = (pending(AlertRule::QueueLength, 1), pending(AlertRule::RetryRate, 2));
    let later = PendingAlert { threshold: 7.5, ..pending(AlertRule::QueueLength, 9) };
    let write = async |pending: Vec<PendingAlert>, over: Vec<AlertRule>, second| {
        let over = over.into_iter().map(|rule| (scene.org, rule)).collect();
        let change = Change::WritePendingAlerts { pending, over, judged_at: at(second) };
        assert_eq!(scene.change(change).await, made());
        let mut found = scene.store.pending_alerts().await.unwrap();
        found.sort_by_key(|one| one.rule);
        let judged = scene.store.setting(PendingAlert::JUDGED_SETTING).await.unwrap();
        assert_eq!(judged, Some(at(second).millis().to_be_bytes().to_vec()));
        found
    };
    assert_eq!(scene.store.pending_alerts().await.unwrap(), []);
    assert_eq!(write(vec![retries, queue], vec![], 3).await, [retries, queue]);
    assert_eq!(write(vec![later], vec![], 4).await, [retries, later]);
    let other = OrgId::MAX;
    let change =
        Change::WritePendingAlerts { pending: vec![], over: vec![(other, later.rule)], judged_at: at(4) };
    assert_eq!(scene.change(change).await, made());
    assert_eq!(write(vec![], vec![AlertRule::RetryRate], 5).await, [later]);
    assert_eq!(write(vec![], vec![AlertRule::QueueLength], 6).await, []);
}

pub async fn resolved_alerts_go_when_they_are_old_or_too_many(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let fired: Vec<_> = (0..4).map(|n| alert(&scene, AlertRule::QueueLength, at(n))).collect();
    let resolved = fired[..3].iter().zip([30, 10, 20]).map(|(alert, end)| (alert.id, at(end))).collect();
    write(&scene, fired.clone(), resolved).await;
    let old = async |before| find(&*scene.store, Search::Alerts(at(before)), 100).await.0;
    assert_eq!(old(10).await, []);
    let of = |number: usize| ExpiredItem::Alert(fired[number].id);
    assert_eq!(old(21).await, [of(1), of(2)]);
    let removed = remove(&scene, vec![of(1), of(3)], at(40)).await;
    assert_eq!(removed.counts.alerts, 1);
    assert_eq!(scene.store.alert(scene.org, fired[3].id).await.unwrap(), Some(fired[3].clone()));
    let many: Vec<_> =
        (0..Alert::MAX_RESOLVED as i64).map(|n| alert(&scene, AlertRule::RetryRate, at(100 + n))).collect();
    let ends = many.iter().map(|alert| (alert.id, alert.fired_at)).collect();
    write(&scene, many, ends).await;
    assert_eq!(old(0).await, [of(2), of(0)], "the oldest of those that are too many");
}
