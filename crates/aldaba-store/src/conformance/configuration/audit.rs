//! The audit log: what was changed has a row, what was not has none.

use crate::conformance::policies;
use crate::conformance::retention::{found, remove_all};
use crate::conformance::scene::{ask, made};
use crate::conformance::{Scene, at};
use crate::operations::{ExpiredItem, Search};
use crate::{
    Actor, ActorFilter, ActorIdentity, ActorKind, Application, AuditAction, AuditEntry, AuditPage,
    AuditQuery, Change, Changed, FieldChange, ManualRecord, Order, Page, Record, Store,
};
use aldaba_delivery::{AppId, AuditId, EndpointId, Reason, Timestamp};
use serde_json::json;
use std::sync::Arc;

fn query(scene: &Scene) -> AuditQuery {
    AuditQuery {
        org: scene.org,
        app: None,
        endpoint: None,
        kind: None,
        resource: None,
        field: None,
        action: None,
        actor: None,
        after: None,
        before: None,
        page: Page { after: None, limit: 100 },
        order: Order::Ascending,
        most: 1000,
    }
}

async fn read(scene: &Scene, query: AuditQuery) -> AuditPage {
    scene.store.audit(query).await.unwrap()
}

pub(crate) async fn log(scene: &Scene) -> Vec<AuditEntry> {
    read(scene, query(scene)).await.found
}

fn ids(page: &AuditPage) -> Vec<AuditId> {
    page.found.iter().map(|entry| entry.id).collect()
}

pub async fn a_change_and_its_row_are_made_together(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let application = scene.new_application();
    let create = |idempotency| Change::CreateApplication { application: application.clone(), idempotency };
    let key = Some(scene.key());
    let first = scene.audit(create(key).audit_action());
    assert_eq!(scene.change_by(create(key), Some(first.clone())).await, made());
    assert_eq!(first.action.resource, application.id.to_string());
    // Neither a repeat nor a refusal is a change.
    let repeat = scene.change_by(create(key), Some(scene.audit(create(key).audit_action()))).await;
    assert_eq!(repeat, Changed::Repeated { resource: *application.id.as_bytes() });
    let gone =
        Change::DeleteEndpoint { app: application.id, endpoint: scene.id(), at: at(1), notices: Vec::new() };
    let entry = scene.audit(gone.audit_action());
    assert_eq!(scene.change_by(gone, Some(entry)).await, Changed::NotFound);
    let app = application.id;
    let endpoint = scene.new_endpoint(app);
    scene.create_endpoint(&endpoint).await;
    let resume =
        Change::ResumeEndpoint { app, endpoint: endpoint.id, at: at(2), recovery: None, notices: Vec::new() };
    let entry = scene.audit(resume.audit_action());
    assert_eq!(scene.change_by(resume, Some(entry)).await, Changed::Unchanged);
    // A change that nobody has asked for has no row.
    assert_eq!(log(&scene).await, [first.with_values_of(&create(None), None)]);
}

pub async fn every_actor_and_action_comes_back_as_it_was_given(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (app, endpoint): (AppId, EndpointId) = (scene.with_endpoints(0).await.application.id, scene.id());
    let actors = [
        ActorIdentity::Key { id: scene.id(), prefix: "abcd1234".into(), name: "la llave ñ".into() },
        ActorIdentity::OrganizationToken { name: Some("la ficha ñ".into()) },
        ActorIdentity::OrganizationToken { name: None },
        ActorIdentity::PortalToken { app, session: Some("user_1".into()) },
        ActorIdentity::PortalToken { app, session: None },
        ActorIdentity::CommandLine,
        ActorIdentity::Program,
    ];
    let mut entries = Vec::new();
    for who in actors {
        let changes = vec![
            FieldChange { field: "url".into(), before: json!("ñ"), after: json!(null), cut: true },
            FieldChange { field: "eventTypes".into(), before: json!([]), after: json!(["a"]), cut: false },
        ];
        let action = AuditAction::new("endpoint.update", &endpoint)
            .of_app(app)
            .at_endpoint(endpoint)
            .with_changes(changes);
        let actor = Actor { org: scene.org, identity: who };
        let entry = AuditEntry { id: scene.id(), actor, action, count: 3 };
        let change = Change::GrantPortalAccess { app };
        assert_eq!(scene.change_by(change, Some(Arc::new(entry.clone()))).await, made());
        entries.push(entry);
    }
    assert_eq!(log(&scene).await, entries);
}

pub async fn discarded_deliveries_are_counted_in_one_row(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let app = tenant.application.id;
    let mut dead = Vec::new();
    for _ in 0..3 {
        let event = scene.event(&tenant);
        let seq = scene.accepted(&event).await;
        scene.record(vec![scene.dead(&event, seq, Reason::Exhausted)]).await;
        dead.push(seq);
    }
    let discard = async |deliveries: Vec<_>, entry: &Arc<AuditEntry>| {
        ask(|done| scene.store.discard(app, deliveries, Some(entry.clone()), done)).await.unwrap()
    };
    let entry = scene.audit(AuditAction::new("delivery.discard", "").of_app(app));
    assert_eq!(discard(dead[..2].to_vec(), &entry).await, 2);
    assert_eq!(discard(dead[..2].to_vec(), &scene.audit(AuditAction::new("delivery.discard", ""))).await, 0);
    assert_eq!(log(&scene).await, [AuditEntry { count: 2, ..(*entry).clone() }]);
}

pub async fn records_that_share_an_entry_leave_one_row(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let cancel = scene.audit(AuditAction::new("delivery.cancel", "").of_app(tenant.application.id));
    let mut records = Vec::new();
    for _ in 0..3 {
        let event = scene.event(&tenant);
        let seq = scene.accepted(&event).await;
        records.push(Record { audit: Some(cancel.clone()), ..scene.dead(&event, seq, Reason::Cancelled) });
    }
    // It is not what the record was made for.
    records[1].attempts_before = 7;
    scene.record(records).await;
    let fenced = scene.audit(AuditAction::new("delivery.cancel", ""));
    let event = scene.event(&tenant);
    let seq = scene.accepted(&event).await;
    let record = Record { attempts_before: 7, ..scene.delivered(&event, seq) };
    scene.record(vec![Record { audit: Some(fenced), ..record }]).await;
    // An attempt by hand.
    let resend = scene.audit(AuditAction::new("message.resend", &event.message.id));
    let (endpoint, message, attempt) = (event.deliveries[0].endpoint, event.message.id, scene.attempt());
    let resent = ManualRecord {
        org: scene.org,
        endpoint,
        message,
        attempt,
        at: at(9),
        audit: Some(resend.clone()),
        idempotency: None,
    };
    ask(|done| scene.store.record_manual(resent.clone(), done)).await.unwrap();
    let elsewhere = scene.audit(AuditAction::new("message.resend", &event.message.id));
    let nowhere = ManualRecord {
        org: scene.org,
        endpoint: scene.id(),
        audit: Some(elsewhere),
        attempt: scene.attempt(),
        ..resent
    };
    ask(|done| scene.store.record_manual(nowhere, done)).await.unwrap();
    let cancelled = AuditEntry { count: 2, ..(*cancel).clone() };
    assert_eq!(log(&scene).await, [cancelled, (*resend).clone()]);
}

/// Ten rows, one a second, by turns of two applications, actors and actions.
async fn ten(scene: &Scene) -> (Vec<AuditId>, [AppId; 2]) {
    let apps = [scene.with_endpoints(0).await.application.id, scene.with_endpoints(0).await.application.id];
    let mut ids = Vec::new();
    for number in 0..10 {
        let app = apps[number % 2];
        let who = match number % 3 {
            0 => ActorIdentity::CommandLine,
            1 => ActorIdentity::PortalToken { app: apps[0], session: None },
            _ => ActorIdentity::OrganizationToken { name: None },
        };
        let action = if number < 5 { "a.one" } else { "a.two" };
        let actor = Actor { org: scene.org, identity: who };
        let id = scene.id_at(at(number as i64));
        let entry = AuditEntry { id, actor, action: AuditAction::new(action, &number).of_app(app), count: 1 };
        scene.change_by(Change::GrantPortalAccess { app }, Some(Arc::new(entry))).await;
        ids.push(id);
    }
    (ids, apps)
}

pub async fn the_log_is_filtered(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (all, apps) = ten(&scene).await;
    let pick = |numbers: &[usize]| numbers.iter().map(|number| all[*number]).collect::<Vec<_>>();
    let found = async |query| ids(&read(&scene, query).await);
    let base = || query(&scene);
    assert_eq!(found(base()).await, all);
    assert_eq!(found(AuditQuery { app: Some(apps[1]), ..base() }).await, pick(&[1, 3, 5, 7, 9]));
    assert_eq!(found(AuditQuery { app: Some(scene.id()), ..base() }).await, []);
    assert_eq!(found(AuditQuery { action: Some("a.two".into()), ..base() }).await, pick(&[5, 6, 7, 8, 9]));
    let actor = |actor| AuditQuery { actor: Some(actor), ..base() };
    assert_eq!(found(actor(ActorFilter::Kind(ActorKind::CommandLine))).await, pick(&[0, 3, 6, 9]));
    assert_eq!(found(actor(ActorFilter::Portal(apps[0]))).await, pick(&[1, 4, 7]));
    assert_eq!(found(actor(ActorFilter::Portal(apps[1]))).await, []);
    assert_eq!(found(actor(ActorFilter::Key(scene.id()))).await, []);
    let times = AuditQuery { after: Some(at(2)), before: Some(at(5)), ..base() };
    assert_eq!(found(times.clone()).await, pick(&[2, 3, 4]));
    let both = AuditQuery { app: Some(apps[0]), order: Order::Descending, ..times };
    assert_eq!(found(both).await, pick(&[4, 2]));
    assert_eq!(found(AuditQuery { org: scene.id(), ..base() }).await, [], "another organization's");
}

pub async fn the_log_is_filtered_by_what_was_changed(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let (app, endpoints) =
        (tenant.application.id, [&tenant.endpoints[0], &tenant.endpoints[1]].map(|one| one.id));
    let of_endpoint = |action, number: usize| {
        AuditAction::new(action, &endpoints[number]).of_app(app).at_endpoint(endpoints[number])
    };
    let actions = [
        of_endpoint("endpoint.create", 0),
        of_endpoint("endpoint.create", 1),
        of_endpoint("endpoint.update", 0).with_fields(&["url"]),
        of_endpoint("endpoint.headers.update", 0).with_fields(&["headers.x-a"]),
        AuditAction::new("message.resend", "msg").of_app(app).at_endpoint(endpoints[0]),
        AuditAction::new("policy.update", "url").with_fields(&["schedule"]),
    ];
    let mut all = Vec::new();
    for (number, action) in actions.into_iter().enumerate() {
        let id = scene.id_at(at(number as i64));
        let entry = AuditEntry { id, actor: Actor::program(scene.org), action, count: 1 };
        scene.change_by(Change::GrantPortalAccess { app }, Some(Arc::new(entry))).await;
        all.push(id);
    }
    let pick = |numbers: &[usize]| numbers.iter().map(|number| all[*number]).collect::<Vec<_>>();
    let found = async |query| ids(&read(&scene, query).await);
    let base = || query(&scene);
    let resource = |text: &str| AuditQuery { resource: Some(text.into()), ..base() };
    assert_eq!(found(resource(&endpoints[0].to_string())).await, pick(&[0, 2, 3]));
    assert_eq!(found(resource("url")).await, pick(&[5]));
    assert_eq!(found(resource("nothing")).await, []);
    let kind = |text: &str| AuditQuery { kind: Some(text.into()), ..base() };
    assert_eq!(found(kind("endpoint")).await, pick(&[0, 1, 2, 3]));
    assert_eq!(found(kind("policy")).await, pick(&[5]));
    assert_eq!(found(kind("endpoint.headers")).await, [], "a kind is what stands before the first point");
    let of = |number: usize| AuditQuery { endpoint: Some(endpoints[number]), ..base() };
    assert_eq!(found(of(0)).await, pick(&[0, 2, 3, 4]));
    assert_eq!(found(of(1)).await, pick(&[1]));
    let field = |text: &str| AuditQuery { field: Some(text.into()), ..base() };
    assert_eq!(found(field("url")).await, pick(&[2]));
    let several = AuditQuery {
        kind: Some("endpoint".into()),
        app: Some(app),
        action: Some("endpoint.update".into()),
        ..of(0)
    };
    assert_eq!(found(several.clone()).await, pick(&[2]));
    assert_eq!(found(AuditQuery { kind: Some("policy".into()), ..several.clone() }).await, []);
    assert_eq!(found(AuditQuery { org: scene.id(), ..several }).await, [], "another organization's");
    // Page by page, both ways.
    for order in [Order::Ascending, Order::Descending] {
        let mut expected = pick(&[0, 1, 2, 3]);
        if order == Order::Descending {
            expected.reverse();
        }
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = Page { after, limit: 1 };
            let Some(last) = found(AuditQuery { order, page, ..kind("endpoint") }).await.pop() else { break };
            seen.push(last);
            after = Some(last);
        }
        assert_eq!(seen, expected);
    }
}

pub async fn an_entry_has_the_values_that_its_change_has_found_and_left(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let application = scene.new_application();
    let make = Change::CreateApplication { application: application.clone(), idempotency: None };
    scene.change_by(make.clone(), Some(scene.audit(make.audit_action()))).await;
    let renamed = |name: &str, millis: i64| {
        let updated_at = Timestamp::from_millis(application.updated_at.millis() + millis);
        Application { name: name.into(), updated_at, ..application.clone() }
    };
    let update = |now: &Application, was| Change::UpdateApplication { application: now.clone(), was };
    let (second, third) = (renamed("second", 1), renamed("third", 2));
    let change = update(&second, application.updated_at);
    assert_eq!(scene.change_by(change.clone(), Some(scene.audit(change.audit_action()))).await, made());
    // It has read what is no longer there: it changes nothing, and says nothing.
    let late = update(&third, application.updated_at);
    assert_eq!(scene.change_by(late.clone(), Some(scene.audit(late.audit_action()))).await, Changed::Stale);
    let delete = Change::DeleteApplication { app: application.id, at: at(9) };
    assert_eq!(scene.change_by(delete.clone(), Some(scene.audit(delete.audit_action()))).await, made());
    // Nobody reads before it whom it takes the place of.
    let policy = |attempts| Change::ReplacePolicy { policy: policies::own(&scene, "mine", attempts) };
    let own = Change::CreatePolicy { policy: policies::own(&scene, "mine", 3) };
    scene.change_by(own.clone(), Some(scene.audit(own.audit_action()))).await;
    for attempts in [4, 5] {
        scene.change_by(policy(attempts), Some(scene.audit(policy(attempts).audit_action()))).await;
    }
    let delete = Change::DeletePolicy { org: scene.org, name: "mine".into() };
    scene.change_by(delete.clone(), Some(scene.audit(delete.audit_action()))).await;

    let log = log(&scene).await;
    let actions: Vec<_> = log.iter().map(|entry| &*entry.action.name).collect();
    let [create, update, delete] = ["application.create", "application.update", "application.delete"];
    let policies = ["policy.create", "policy.update", "policy.update", "policy.delete"];
    assert_eq!(actions, [&[create, update, delete][..], &policies].concat());
    let value = |number: usize, field: &str| {
        let change =
            log[number].action.changes.iter().find(|change| change.field == field).expect("the field");
        assert!(log[number].action.fields.iter().any(|name| name == field));
        (change.before.clone(), change.after.clone())
    };
    let name = serde_json::Value::from(application.name.clone());
    assert_eq!(value(0, "name"), (serde_json::Value::Null, name.clone()));
    assert_eq!(value(1, "name"), (name, "second".into()));
    assert_eq!(log[1].action.changes.len(), 1, "only what is another: {:?}", log[1].action);
    assert_eq!(value(2, "name"), ("second".into(), serde_json::Value::Null));
    for (number, attempts) in [(4, [3, 4]), (5, [4, 5])] {
        let (before, after) = value(number, "limit");
        assert_eq!(
            [&before["attempts"], &after["attempts"]],
            [&attempts[0].into(), &attempts[1].into()] as [&serde_json::Value; 2]
        );
    }
    assert_eq!(value(6, "limit").0["attempts"], 5);
    assert_eq!(value(6, "limit").1, serde_json::Value::Null);
}

pub async fn the_log_is_listed_both_ways_page_by_page(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (all, apps) = ten(&scene).await;
    for (app, expected) in [(None, all.clone()), (Some(apps[0]), all.iter().copied().step_by(2).collect())] {
        for order in [Order::Ascending, Order::Descending] {
            let mut expected = expected.clone();
            if order == Order::Descending {
                expected.reverse();
            }
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let page = Page { after, limit: 3 };
                let found = read(&scene, AuditQuery { app, order, page, ..query(&scene) }).await;
                assert_eq!(found.stopped, None);
                let Some(last) = ids(&found).last().copied() else { break };
                seen.extend(ids(&found));
                after = Some(last);
            }
            assert_eq!(seen, expected);
        }
    }
}

pub async fn a_filter_of_the_log_that_finds_little_gives_up_and_can_go_on(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (all, _) = ten(&scene).await;
    let rare = |after| AuditQuery {
        action: Some("a.two".into()),
        page: Page { after, limit: 2 },
        most: 4,
        ..query(&scene)
    };
    let first = read(&scene, rare(None)).await;
    assert_eq!((ids(&first), first.stopped), (vec![], Some(all[3])));
    let second = read(&scene, rare(first.stopped)).await;
    assert_eq!((ids(&second), second.stopped), (vec![all[5], all[6]], None));
    let last = read(&scene, rare(Some(all[8]))).await;
    assert_eq!((ids(&last), last.stopped), (vec![all[9]], None), "the end is no giving up");
}

pub async fn old_rows_of_the_log_go_the_oldest_first(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (all, _) = ten(&scene).await;
    let old = async |before, limit| found(&scene, Search::Audit(at(before)), limit).await;
    let stale = |numbers: &[usize]| numbers.iter().map(|n| ExpiredItem::Audit(all[*n])).collect::<Vec<_>>();
    assert_eq!(old(0, 9).await, []);
    assert_eq!(old(3, 9).await, stale(&[0, 1, 2]));
    assert_eq!(old(99, 2).await, stale(&[0, 1]));
    assert_eq!(remove_all(&scene, old(3, 9).await, at(99)).await.audit, 3);
    assert_eq!(ids(&read(&scene, query(&scene)).await), all[3..]);
}
