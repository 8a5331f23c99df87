//! Erasures and exports of an application.

use super::scene::{ask, made};
use super::{Scene, at};
use crate::{
    AuditAction, AuditEntry, AuditQuery, Change, Changed, ErasedCounts, Erasure, ErasureState, ErasureStep,
    ErasureStepped, ErasuresQuery, ExportCursor, ExportQuery, Exported, MessagesQuery, Order, Page,
    ReplayEnd, Store,
};
use aldaba_delivery::{AppId, ErasureId, MessageId, OrgId, Reason};
use std::sync::Arc;

fn planned(scene: &Scene, app: AppId, entry: &AuditEntry) -> Erasure {
    Erasure {
        id: scene.id(),
        org: scene.org,
        app,
        state: ErasureState::Running,
        removed: ErasedCounts::default(),
        first: None,
        reached: None,
        audited: None,
        entry: entry.id,
        created_at: at(10),
        updated_at: at(10),
    }
}

async fn start(scene: &Scene, app: AppId) -> (Erasure, Changed) {
    let entry = scene.audit(AuditAction::new("application.erase", &app).of_app(app));
    let erasure = planned(scene, app, &entry);
    let change = Change::StartErasure { erasure: Box::new(erasure.clone()), source: None, idempotency: None };
    let changed = scene.change_by(change, Some(entry)).await;
    (erasure, changed)
}

async fn step(scene: &Scene, id: ErasureId) -> ErasureStepped {
    let step = ErasureStep { id, entry: scene.id(), now: at(11) };
    ask(|done| scene.store.step_erasure(step, done)).await.unwrap()
}

async fn finish(scene: &Scene, id: ErasureId) -> Erasure {
    loop {
        let stepped = step(scene, id).await;
        assert!(!stepped.waits);
        let erasure = stepped.erasure.expect("it was started");
        if erasure.state == ErasureState::Finished {
            return erasure;
        }
    }
}

async fn audit(scene: &Scene, app: AppId) -> Vec<AuditEntry> {
    let query = AuditQuery {
        org: scene.org,
        app: Some(app),
        endpoint: None,
        kind: None,
        resource: None,
        field: None,
        action: None,
        actor: None,
        after: None,
        before: None,
        page: Page { after: None, limit: 100 },
        order: Order::Descending,
        most: 1000,
    };
    scene.store.audit(query).await.unwrap().found
}

async fn messages(scene: &Scene, app: AppId) -> usize {
    let page = Page { after: None, limit: 100 };
    scene.store.messages(MessagesQuery::all(app, page, Order::Ascending)).await.unwrap().items.len()
}

pub async fn an_erasure_removes_everything_of_its_application_and_nothing_of_another(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(2).await, scene.with_endpoints(1).await);
    let (app, endpoint) = (tenant.application.id, tenant.endpoints[0].id);
    let created =
        Change::CreateEndpoint { endpoint: scene.new_endpoint(app), idempotency: None, notices: Vec::new() };
    let action = created.audit_action();
    scene.change_by(created, Some(scene.audit(action))).await;
    let tenant = scene.tenant(app).await.expect("just made");
    for tenant in [&tenant, &other] {
        for _ in 0..3 {
            let event = scene.event(tenant);
            let first = scene.accepted(&event).await;
            for (number, delivery) in event.deliveries.iter().enumerate() {
                let seq = crate::Seq(first.0 + number as i64);
                let record = crate::Record { endpoint: delivery.endpoint, ..scene.delivered(&event, seq) };
                scene.record(vec![record]).await;
            }
        }
    }
    let counted = scene.store.count_erasure(app, None, 1000).await.unwrap();
    assert_eq!(
        (
            counted.counts.messages,
            counted.counts.deliveries,
            counted.counts.attempts,
            counted.counts.endpoints,
            counted.next
        ),
        (3, 9, 9, 3, None)
    );
    let (erasure, changed) = start(&scene, app).await;
    assert_eq!(changed, made());
    assert!(scene.tenant(app).await.is_none(), "nothing is accepted any more");
    let over = finish(&scene, erasure.id).await;
    let ErasedCounts { messages: removed, deliveries, attempts, endpoints, .. } = over.removed;
    assert_eq!((removed, deliveries, attempts, endpoints), (3, 9, 9, 3));
    assert_eq!(messages(&scene, app).await, 0);
    assert!(scene.store.lane_endpoints(vec![endpoint]).await.unwrap().is_empty());
    assert_eq!(scene.store.erasable(scene.org, app).await.unwrap(), None);
    // Another application has all that it had.
    assert_eq!(messages(&scene, other.application.id).await, 3);
    assert!(scene.tenant(other.application.id).await.is_some_and(|tenant| tenant.endpoints.len() == 1));
    // The log says what was done, without the values, and by whom it was erased, with counts.
    let rows = audit(&scene, app).await;
    let names: Vec<_> = rows.iter().map(|row| &*row.action.name).collect();
    assert_eq!(names, ["application.erased", "application.erase", "endpoint.create"]);
    assert_eq!(rows[0].actor, rows[1].actor);
    let count = rows[0].action.changes.iter().find(|change| change.field == "messages").expect("a count");
    assert_eq!(count.before, 3);
    assert!(rows[2].action.changes.is_empty() && !rows[2].action.fields.is_empty());
    // A step of one that is over changes nothing.
    assert_eq!(step(&scene, erasure.id).await.erasure, Some(over));
}

pub async fn an_erasure_leaves_what_waits_and_goes_on_once_it_has_ended(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let app = tenant.application.id;
    let event = scene.event(&tenant);
    let seq = scene.accepted(&event).await;
    let (erasure, _) = start(&scene, app).await;
    for _ in 0..2 {
        let stepped = step(&scene, erasure.id).await;
        assert!(stepped.waits);
        assert_eq!(stepped.erasure.expect("it runs").removed.messages, 0);
    }
    assert_eq!(scene.store.running_erasures().await.unwrap().len(), 1);
    scene.record(vec![scene.dead(&event, seq, Reason::OF_DELETION)]).await;
    assert_eq!(finish(&scene, erasure.id).await.removed.deliveries, 1);
    assert_eq!(scene.store.running_erasures().await.unwrap(), []);
}

pub async fn an_application_is_erased_once_and_a_deleted_one_can_be_erased(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    let app = tenant.application.id;
    scene.change(Change::DeleteApplication { app, at: at(5) }).await;
    assert!(scene.store.erasable(scene.org, app).await.unwrap().is_some_and(|found| found.is_deleted));
    let stranger: OrgId = scene.id();
    assert_eq!(scene.store.erasable(stranger, app).await.unwrap(), None);
    let (first, changed) = start(&scene, app).await;
    assert_eq!(changed, made());
    let (_, repeated) = start(&scene, app).await;
    assert_eq!(repeated, Changed::Repeated { resource: *first.id.as_bytes() });
    assert_eq!(finish(&scene, first.id).await.removed.endpoints, 1);
    assert_eq!(start(&scene, app).await.1, Changed::NotFound);
    // They are listed for their organization.
    let (second, _) = start(&scene, other.application.id).await;
    let list = async |ended, org| {
        let page = Page { after: None, limit: 10 };
        let query = ErasuresQuery { org, ended, page, order: Order::Ascending };
        scene.store.erasures(query).await.unwrap().iter().map(|erasure| erasure.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None, scene.org).await, [first.id, second.id]);
    assert_eq!(list(Some(ReplayEnd::NotYet), scene.org).await, [second.id]);
    assert_eq!(list(Some(ReplayEnd::Well), scene.org).await, [first.id]);
    assert_eq!(list(None, scene.id()).await, []);
    assert_eq!(scene.store.erasure(scene.id(), first.id).await.unwrap(), None);
}

pub async fn an_export_has_each_message_with_its_deliveries_and_attempts_once(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(2).await, scene.with_endpoints(1).await);
    let app = tenant.application.id;
    for _ in 0..3 {
        let event = scene.event(&tenant);
        let first = scene.accepted(&event).await;
        scene.record(vec![scene.failed(&event, first, at(5))]).await;
        scene.accepted(&scene.event(&other)).await;
    }
    let newest = scene.store.newest_message(app).await.unwrap().expect("there are three");
    scene.accepted(&scene.event(&tenant)).await;
    // However small the pages are.
    for bytes in [1, 1 << 20] {
        let (mut from, mut items) = (ExportCursor::Message(MessageId::from_bytes([0; 20])), Vec::new());
        loop {
            let page = scene.store.export(ExportQuery { app, from, until: newest, bytes }).await.unwrap();
            assert!(!page.is_deleted);
            items.extend(page.items);
            match page.next {
                Some(next) => from = next,
                None => break,
            }
        }
        let kinds: String = items
            .iter()
            .map(|item| match item {
                Exported::Message(_) => 'm',
                Exported::Delivery(_) => 'd',
                Exported::Attempt(_) => 'a',
            })
            .collect();
        assert_eq!(kinds, "mddamddamdda", "pages of {bytes} bytes");
    }
    scene.change(Change::DeleteApplication { app, at: at(9) }).await;
    let from = ExportCursor::Message(MessageId::from_bytes([0; 20]));
    let page = scene.store.export(ExportQuery { app, from, until: newest, bytes: 1 }).await.unwrap();
    assert!(page.is_deleted);
}
