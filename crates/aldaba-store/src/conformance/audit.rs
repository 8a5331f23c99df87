//! The audit log: what was changed has a row, what was not has none.

use super::retention::remove_all;
use super::scene::{ask, made};
use super::{Scene, at};
use crate::{
    Actor, ActorFilter, ActorKind, AuditEntry, AuditPage, AuditQuery, Change, Changed, Deed, Order, Page,
    Record, Resent, Stale, Store, Who,
};
use aldaba_delivery::{AppId, AuditId, EndpointId, Reason};
use std::sync::Arc;

fn query(scene: &Scene) -> AuditQuery {
    AuditQuery {
        org: scene.org,
        app: None,
        action: None,
        actor: None,
        after: None,
        before: None,
        page: Page { after: None, limit: 100 },
        order: Order::Ascending,
        walk: 1000,
    }
}

async fn read(scene: &Scene, query: AuditQuery) -> AuditPage {
    scene.store.audit(query).await.unwrap()
}

pub(super) async fn log(scene: &Scene) -> Vec<AuditEntry> {
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
    let first = scene.audit(create(key).deed());
    assert_eq!(scene.change_by(create(key), Some(first.clone())).await, made());
    assert_eq!(first.deed.resource, application.id.to_string());
    // Neither a repeat nor a refusal is a change.
    let repeat = scene.change_by(create(key), Some(scene.audit(create(key).deed()))).await;
    assert_eq!(repeat, Changed::Repeated { resource: *application.id.as_bytes() });
    let gone =
        Change::DeleteEndpoint { app: application.id, endpoint: scene.id(), at: at(1), notices: Vec::new() };
    let entry = scene.audit(gone.deed());
    assert_eq!(scene.change_by(gone, Some(entry)).await, Changed::NotFound);
    let app = application.id;
    let endpoint = scene.new_endpoint(app);
    scene.create_endpoint(&endpoint).await;
    let resume =
        Change::ResumeEndpoint { app, endpoint: endpoint.id, at: at(2), recovery: None, notices: Vec::new() };
    let entry = scene.audit(resume.deed());
    assert_eq!(scene.change_by(resume, Some(entry)).await, Changed::Unchanged);
    // A change that nobody has asked for has no row.
    assert_eq!(log(&scene).await, [(*first).clone()]);
}

pub async fn every_actor_and_deed_comes_back_as_it_was_given(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (app, endpoint): (AppId, EndpointId) = (scene.with_endpoints(0).await.application.id, scene.id());
    let actors = [
        Who::Key { id: scene.id(), prefix: "abcd1234".into(), name: "la llave ñ".into() },
        Who::OrganizationToken,
        Who::PortalToken { app, session: Some("user_1".into()) },
        Who::PortalToken { app, session: None },
        Who::CommandLine,
        Who::Program,
    ];
    let mut entries = Vec::new();
    for who in actors {
        let fields = vec!["url".to_owned(), "eventTypes".to_owned()];
        let deed =
            Deed { fields, ..Deed::new("endpoint.update", &endpoint).of_app(app).at_endpoint(endpoint) };
        let actor = Actor { org: scene.org, who };
        let entry = AuditEntry { id: scene.id(), actor, deed, count: 3 };
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
    let entry = scene.audit(Deed::new("delivery.discard", "").of_app(app));
    assert_eq!(discard(dead[..2].to_vec(), &entry).await, 2);
    assert_eq!(discard(dead[..2].to_vec(), &scene.audit(Deed::new("delivery.discard", ""))).await, 0);
    assert_eq!(log(&scene).await, [AuditEntry { count: 2, ..(*entry).clone() }]);
}

pub async fn records_that_share_an_entry_leave_one_row(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let cancel = scene.audit(Deed::new("delivery.cancel", "").of_app(tenant.application.id));
    let mut records = Vec::new();
    for _ in 0..3 {
        let event = scene.event(&tenant);
        let seq = scene.accepted(&event).await;
        records.push(Record { audit: Some(cancel.clone()), ..scene.dead(&event, seq, Reason::Cancelled) });
    }
    // It is not what the record was made for.
    records[1].attempts_before = 7;
    scene.record(records).await;
    let fenced = scene.audit(Deed::new("delivery.cancel", ""));
    let event = scene.event(&tenant);
    let seq = scene.accepted(&event).await;
    let record = Record { attempts_before: 7, ..scene.delivered(&event, seq) };
    scene.record(vec![Record { audit: Some(fenced), ..record }]).await;
    // An attempt by hand.
    let resend = scene.audit(Deed::new("message.resend", &event.message.id));
    let (endpoint, message, attempt) = (event.deliveries[0].endpoint, event.message.id, scene.attempt());
    let resent =
        Resent { endpoint, message, attempt, at: at(9), audit: Some(resend.clone()), idempotency: None };
    ask(|done| scene.store.resent(resent.clone(), done)).await.unwrap();
    let elsewhere = scene.audit(Deed::new("message.resend", &event.message.id));
    let nowhere = Resent { endpoint: scene.id(), audit: Some(elsewhere), attempt: scene.attempt(), ..resent };
    ask(|done| scene.store.resent(nowhere, done)).await.unwrap();
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
            0 => Who::CommandLine,
            1 => Who::PortalToken { app: apps[0], session: None },
            _ => Who::OrganizationToken,
        };
        let action = if number < 5 { "a.one" } else { "a.two" };
        let actor = Actor { org: scene.org, who };
        let id = scene.id_at(at(number as i64));
        let entry = AuditEntry { id, actor, deed: Deed::new(action, &number).of_app(app), count: 1 };
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
        walk: 4,
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
    let old = async |before, limit| scene.store.old_audit(at(before), limit).await.unwrap();
    let stale = |numbers: &[usize]| numbers.iter().map(|n| Stale::Audit(all[*n])).collect::<Vec<_>>();
    assert_eq!(old(0, 9).await, []);
    assert_eq!(old(3, 9).await, stale(&[0, 1, 2]));
    assert_eq!(old(99, 2).await, stale(&[0, 1]));
    assert_eq!(remove_all(&scene, old(3, 9).await, at(99)).await.audit, 3);
    assert_eq!(ids(&read(&scene, query(&scene)).await), all[3..]);
}
