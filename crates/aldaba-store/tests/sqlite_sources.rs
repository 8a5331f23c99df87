//! Events of a source by their states, where there are many of them and few are in the one that is asked for.

use aldaba_delivery::{MessageId, Reason};
use aldaba_store::conformance::{Scene, at};
use aldaba_store::sqlite::{Options, SqliteStore};
use aldaba_store::{
    Accept, Change, EventState, ListPage, ListRange, NewDelivery, Order, Page, Record, Seq, SourceEvent,
    SourceEventsQuery, Store, Tenant, TimeRange,
};
use std::sync::Arc;

async fn read(
    scene: &Scene,
    tenant: &Tenant,
    state: Option<EventState>,
    (after, limit): (Option<MessageId>, usize),
    (order, walk): (Order, usize),
) -> ListPage<SourceEvent, MessageId> {
    let part = ListRange { within: TimeRange::default(), page: Page { after, limit }, order, walk };
    let query = SourceEventsQuery { app: tenant.application.id, state, part };
    scene.store.source_events(query).await.expect("a read")
}

fn ids(found: &ListPage<SourceEvent, MessageId>) -> Vec<MessageId> {
    found.items.iter().map(|event| event.message.id).collect()
}

/// Events to all endpoints of an application.
async fn events(scene: &Scene, tenant: &Tenant, count: usize) -> Vec<(Accept, Seq)> {
    let mut all = Vec::new();
    for _ in 0..count {
        let event = scene.event(tenant);
        let first = scene.accepted(&event).await;
        all.push((event, first));
    }
    all
}

#[tokio::test]
async fn the_few_that_failed_or_wait_are_found_among_many_in_one_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&Options::new(folder.path())).expect("a store"));
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let all = events(&scene, &tenant, 300).await;
    for (number, (event, seq)) in all.iter().enumerate() {
        match number {
            7 => scene.record(vec![scene.dead(event, *seq, Reason::Exhausted)]).await,
            // It still waits.
            150 => continue,
            _ => scene.record(vec![scene.delivered(event, *seq)]).await,
        };
    }
    for order in [Order::Ascending, Order::Descending] {
        for (state, place) in [(EventState::Failed, 7), (EventState::Processing, 150)] {
            // Far fewer than there are may be looked at.
            let found = read(&scene, &tenant, Some(state), (None, 50), (order, 20)).await;
            assert_eq!((ids(&found), found.stopped), (vec![all[place].0.message.id], None), "{state:?}");
        }
    }
}

#[tokio::test]
async fn few_or_many_the_same_events_are_found_page_by_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&Options::new(folder.path())).expect("a store"));
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(3).await;
    let all = events(&scene, &tenant, 60).await;
    for (number, (event, first)) in all.iter().enumerate() {
        for (place, NewDelivery { endpoint, .. }) in event.deliveries.iter().enumerate() {
            let record = match (number / 3usize.pow(place as u32)) % 3 {
                0 => scene.delivered(event, *first),
                1 => scene.dead(event, *first, Reason::Rejected),
                _ => continue,
            };
            let seq = Seq(first.0 + place as i64);
            scene.record(vec![Record { seq, endpoint: *endpoint, ..record }]).await;
        }
    }
    let gone = tenant.endpoints[0].id;
    let delete =
        Change::DeleteEndpoint { app: tenant.application.id, endpoint: gone, at: at(5), notices: Vec::new() };
    scene.change(delete).await;
    for order in [Order::Ascending, Order::Descending] {
        let every = read(&scene, &tenant, None, (None, 100), (order, usize::MAX)).await.items;
        for state in [EventState::Processing, EventState::Failed, EventState::Processed] {
            let expected: Vec<_> =
                every.iter().filter(|event| event.state() == state).map(|event| event.message.id).collect();
            assert!(!expected.is_empty(), "{state:?}");
            // With room for an index, and with too little for it.
            for walk in [usize::MAX, 9] {
                let (mut after, mut found) = (None, Vec::new());
                loop {
                    let page = read(&scene, &tenant, Some(state), (after, 4), (order, walk)).await;
                    found.extend(ids(&page));
                    after = page.stopped.or_else(|| ids(&page).last().copied());
                    if page.stopped.is_none() && page.items.len() < 4 {
                        break;
                    }
                }
                assert_eq!(found, expected, "{state:?} {order:?} {walk}");
            }
        }
    }
}
