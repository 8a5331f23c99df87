//! Whole rounds against the real store: exactly what should go is gone.

use super::*;
use crate::SystemClock;
use aldaba_delivery::policy::Overrides;
use aldaba_delivery::{AppId, Gate, GateKey, GateScope, MessageId, Origin, Reason, ReplayId};
use aldaba_store::conformance::{Scene, at, find};
use aldaba_store::operations::Search;
use aldaba_store::{
    Accept, Accepted, AuditEntry, Change, GateRecord, Hour, MessagesQuery, NewDelivery, Order, Page, Record,
    Recorded, Replay, ReplayFilter, ReplayKind, ReplayState, RevokedToken, StoreOptions, Tenant,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::task::Poll;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

fn open(folder: &Path) -> Arc<dyn Store> {
    aldaba_store::open(&StoreOptions::new(folder)).expect("a store")
}

fn keeper(store: Arc<dyn Store>) -> Retention {
    Retention {
        store,
        clock: Arc::new(SystemClock::new()),
        policies: Policies::new(&Overrides::default()).expect("the built-in policies are valid"),
        options: RetentionOptions::default(),
        idempotency_kept: Duration::from_secs(24 * 3600),
        credentials: Credentials::default(),
        trust: ClockTrust::default(),
        walk: RetentionWalk::default(),
    }
}

async fn round(store: &Arc<dyn Store>, now: Timestamp) -> RemovedCounts {
    let round = keeper(store.clone()).run_once(now).await;
    round.end.expect("a whole round");
    round.removed
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(future)
}

/// An application with an endpoint for each of these policies.
async fn tenant(scene: &Scene, policies: &[&str]) -> Tenant {
    let application = scene.new_application();
    scene.create_application(&application).await;
    for policy in policies {
        let endpoint = scene.new_endpoint(application.id).with(|config| config.policy = (*policy).into());
        scene.create_endpoint(&endpoint).await;
    }
    scene.tenant(application.id).await.expect("just made")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Waits,
    Delivered(i64),
    Dead(i64),
}

/// Events to one endpoint of the application each, with how they ended, in one commit or two.
async fn events(scene: &Scene, tenant: &Tenant, wanted: &[(usize, End)]) -> Vec<Accept> {
    let event = |(endpoint, _): &(usize, End)| {
        let endpoint = tenant.endpoints[*endpoint].id;
        Accept {
            deliveries: vec![NewDelivery { endpoint, due_at: at(0), ordered: false, skipped: None }],
            ..scene.event(tenant)
        }
    };
    let events: Vec<_> = wanted.iter().map(event).collect();
    let accepted = scene.accept(events.clone()).await;
    let ended = events.iter().zip(accepted).zip(wanted).filter_map(|((event, accepted), (_, end))| {
        let Accepted::New { first } = accepted else { panic!("not accepted: {accepted:?}") };
        match end {
            End::Waits => None,
            End::Delivered(moment) => Some(Record { at: at(*moment), ..scene.delivered(event, first) }),
            End::Dead(moment) => {
                Some(Record { at: at(*moment), ..scene.dead(event, first, Reason::Exhausted) })
            }
        }
    });
    let ended: Vec<_> = ended.collect();
    assert!(scene.record(ended).await.iter().all(|recorded| *recorded == Recorded::Applied));
    events
}

async fn messages(store: &Arc<dyn Store>, app: AppId) -> BTreeSet<MessageId> {
    let page = Page { after: None, limit: 100_000 };
    let query = MessagesQuery::all(app, page, Order::Ascending);
    let messages = store.messages(query).await.expect("a read").items;
    messages.into_iter().map(|message| message.id).collect()
}

fn ids<'a>(events: impl IntoIterator<Item = &'a Accept>) -> BTreeSet<MessageId> {
    events.into_iter().map(|event| event.message.id).collect()
}

#[test]
fn a5_delivered_ones_go_after_24_hours_and_beyond_the_newest_1000_of_the_application() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    block_on(async {
        let scene = Scene::new(store.clone());
        let busy = tenant(&scene, &["quick", "quick", "standard"]).await;
        let other = tenant(&scene, &["quick"]).await;
        // 1,300 over two endpoints by turns, and some that are not counted.
        let wanted: Vec<_> = (0..1300).map(|n| (n % 2, End::Delivered(DAY + n as i64))).collect();
        let delivered = events(&scene, &busy, &wanted).await;
        let apart = [(0, End::Dead(1)), (1, End::Waits), (2, End::Delivered(2)), (2, End::Waits)];
        let apart = events(&scene, &busy, &apart).await;
        let neighbour = events(&scene, &other, &[(0, End::Delivered(DAY))]).await;

        let removed = round(&store, at(DAY + 1300)).await;
        assert_eq!((removed.deliveries, removed.attempts, removed.messages), (300, 300, 300));
        let kept: BTreeSet<_> = ids(&delivered[300..]).union(&ids(&apart)).copied().collect();
        assert_eq!(messages(&store, busy.application.id).await, kept);
        assert_eq!(messages(&store, other.application.id).await, ids(&neighbour));
        assert_eq!(round(&store, at(DAY + 1300)).await, RemovedCounts::default(), "once is enough");

        // 24 hours after the 800th of them.
        assert_eq!(round(&store, at(2 * DAY + 799)).await.deliveries, 501);
        let kept: BTreeSet<_> = ids(&delivered[800..]).union(&ids(&apart)).copied().collect();
        assert_eq!(messages(&store, busy.application.id).await, kept);
        assert_eq!(messages(&store, other.application.id).await, BTreeSet::new());

        // Failed ones stay until somebody removes them, and what waits is needed.
        round(&store, at(3000 * DAY)).await;
        let kept = ids([&apart[0], &apart[1], &apart[3]]);
        assert_eq!(messages(&store, busy.application.id).await, kept);
        assert_eq!(store.waiting().await, Ok(2));
    });
}

#[test]
fn a_round_that_was_cut_off_by_a_restart_is_begun_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let wanted: Vec<_> = (0..500).map(|n| (n % 2, End::Delivered(n as i64))).collect();
    let app = block_on(async {
        let store = open(folder.path());
        let scene = Scene::new(store.clone());
        let tenant = tenant(&scene, &["quick", "standard"]).await;
        events(&scene, &tenant, &wanted).await;
        let mut keeper = keeper(store.clone());
        let mut round = pin!(keeper.run_once(at(DAY)));
        // It moves between two looks only, by a slice at most: one has been removed, and more are to come.
        while messages(&store, tenant.application.id).await.len() == 500 {
            let moved = poll_fn(|context| Poll::Ready(round.as_mut().poll(context))).await;
            assert!(moved.is_pending(), "it is over");
        }
        store.close().await.expect("it closes");
        let RetentionRound { removed, end, .. } = round.await;
        assert_eq!(end, Err(Error::Closed));
        assert!((1..250).contains(&removed.deliveries), "{removed:?}");
        tenant.application.id
    });
    block_on(async {
        let store = open(folder.path());
        let left = messages(&store, app).await.len();
        let removed = round(&store, at(DAY + 500)).await;
        assert_eq!(left as u64 - removed.deliveries, 250, "the other policy keeps its own for longer");
        assert_eq!(messages(&store, app).await.len(), 250);
    });
}

#[test]
fn a_round_that_removes_much_delays_the_next_one_no_more_than_one_that_removes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    block_on(async {
        let scene = Scene::new(store.clone());
        let tenant = tenant(&scene, &["quick"]).await;
        let wanted: Vec<_> = (0..3000).map(|n| (0, End::Delivered(n))).collect();
        events(&scene, &tenant, &wanted).await;
        let mut keeper = keeper(store.clone());
        let begun = keeper.clock.monotonic();
        let round = keeper.run_once(at(3 * DAY)).await;
        let took = keeper.clock.monotonic() - begun;
        assert_eq!((round.end, round.removed.deliveries), (Ok(()), 3000));
        // A slice has at most 100, and the writer rests after each.
        assert!(took >= PAUSE * 30, "{took:?}");
        assert!(round.in_vain < took / 4, "{:?} of {took:?}", round.in_vain);
    });
}

#[test]
fn reading_that_finds_nothing_takes_a_fiftieth_of_the_time() {
    let pause = |in_vain: u64| {
        let round = RetentionRound {
            removed: RemovedCounts::default(),
            in_vain: Duration::from_millis(in_vain),
            end: Ok(()),
        };
        round.pause(Duration::from_secs(60)).as_secs()
    };
    assert_eq!([pause(0), pause(1200), pause(2000)], [60, 60, 100]);
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let round = block_on(async { keeper(store).run_once(at(DAY)).await });
    assert!(round.in_vain > Duration::ZERO);
}

#[test]
fn what_is_deleted_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    block_on(async {
        let scene = Scene::new(store.clone());
        let tenant = tenant(&scene, &["quick", "standard"]).await;
        let app = tenant.application.id;
        events(&scene, &tenant, &[(0, End::Dead(5)), (1, End::Dead(5)), (1, End::Delivered(6))]).await;
        let nobody = Accept { deliveries: Vec::new(), ..scene.event(&tenant) };
        scene.accept(vec![Accept { idempotency: Some(scene.key()), ..nobody }]).await;
        scene.change(Change::DeleteApplication { app, at: at(7) }).await;
        store.close().await.expect("a clean end");
    });
    drop(store);
    let store = open(folder.path());
    block_on(async {
        // Its idempotency key is over after a day, its counters after 30.
        assert_eq!(round(&store, at(2 * DAY)).await, RemovedCounts { keys: 1, ..Default::default() });
        // Two minutes, the hours of two endpoints and one of the application.
        assert_eq!(round(&store, at(31 * DAY)).await.counters, 5);
        // All of it is over after 90 days, though a dead one under `quick` would wait for a hand.
        let rest = RemovedCounts {
            deliveries: 3,
            attempts: 1,
            messages: 4,
            endpoints: 2,
            applications: 1,
            ..Default::default()
        };
        assert_eq!(round(&store, at(90 * DAY + 6)).await, rest);
    });
    drop(store);
    assert_eq!(not_empty(folder.path()), Vec::<&str>::new());
}

/// A replay that found nothing and ended at once, at this moment.
async fn ended_replay(scene: &Scene, tenant: &Tenant, moment: Timestamp) -> ReplayId {
    let replay = Replay {
        id: scene.id(),
        org: scene.org,
        app: tenant.application.id,
        endpoint: tenant.endpoints[0].id,
        kind: ReplayKind::Recover,
        filter: ReplayFilter::nothing(moment),
        rate: 1,
        state: ReplayState::Running,
        reached: None,
        looked_at: 0,
        opened: 0,
        created_at: moment,
        updated_at: moment,
    };
    let id = replay.id;
    scene.change(Change::StartReplay { replay, idempotency: None }).await;
    scene.change(Change::CancelReplay { org: scene.org, replay: id, at: moment }).await;
    id
}

#[test]
fn a_replay_goes_30_days_after_its_end_but_not_before_the_key_it_was_started_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    block_on(async {
        let scene = Scene::new(store.clone());
        let tenant = tenant(&scene, &["standard"]).await;
        let first = ended_replay(&scene, &tenant, at(0)).await;
        let second = ended_replay(&scene, &tenant, at(1)).await;
        let mut careful = keeper(store.clone());
        careful.idempotency_kept = Duration::from_secs(40 * 24 * 3600);
        assert_eq!(careful.run_once(at(40 * DAY)).await.removed, RemovedCounts::default());
        assert_eq!(round(&store, at(30 * DAY)).await, RemovedCounts::default());
        assert_eq!(round(&store, at(30 * DAY + 1)).await, RemovedCounts { replays: 1, ..Default::default() });
        assert_eq!(store.replay(scene.org, first).await, Ok(None));
        assert!(store.replay(scene.org, second).await.is_ok_and(|replay| replay.is_some()));
    });
}

#[test]
fn the_audit_log_is_kept_a_year_and_ended_tokens_until_they_have_surely_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    block_on(async {
        let scene = Scene::new(store.clone());
        let app = tenant(&scene, &["standard"]).await.application.id;
        let token =
            |mark: u8, end: i64| RevokedToken { org: scene.org, mark: [mark; 32], expires_at: Some(at(end)) };
        for token in [token(1, DAY), token(2, 400 * DAY)] {
            scene.change(Change::RevokeToken { token }).await;
        }
        for moment in [at(0), at(HOUR)] {
            let change = Change::GrantPortalAccess { app };
            let entry =
                AuditEntry { id: scene.id_at(moment), ..(*scene.audit(change.audit_action())).clone() };
            scene.change_by(change, Some(Arc::new(entry))).await;
        }
        let mut keeper = keeper(store.clone());
        keeper.credentials = Credentials::read(&*store).await.expect("a read");
        let revocations = keeper.credentials.revocations.clone();
        let round = async |keeper: &mut Retention, now| keeper.run_once(now).await.removed;
        let one = |audit, revocations| RemovedCounts { audit, revocations, ..Default::default() };
        // A day longer: the clock may be ahead by so much, and trusted all the same.
        assert_eq!(round(&mut keeper, at(2 * DAY)).await, one(0, 0));
        assert!(revocations.is_revoked(&[1; 32]));
        assert_eq!(round(&mut keeper, at(2 * DAY + 1)).await, one(0, 1));
        assert!(!revocations.is_revoked(&[1; 32]) && revocations.is_revoked(&[2; 32]), "the memory follows");
        assert_eq!(round(&mut keeper, at(365 * DAY)).await, one(0, 0));
        assert_eq!(round(&mut keeper, at(365 * DAY + 1)).await, one(1, 0));
        assert_eq!(store.revoked_tokens().await, Ok(vec![token(2, 400 * DAY)]));
    });
}

/// The tables of history and directory that still have rows.
fn not_empty(folder: &Path) -> Vec<&'static str> {
    let store = open(folder);
    block_on(async {
        let mut left = Vec::new();
        if !store.kept_endpoints(None, 10).await.expect("a read").is_empty() {
            left.push("endpoint");
        }
        let all = (Timestamp::MIN, Timestamp::MAX);
        for (table, search) in [
            ("application", Search::Applications { after: None }),
            ("unique_key", Search::Keys { after: None, before: Timestamp::MAX }),
            ("message", Search::Messages { after: None, created: all }),
        ] {
            // One row is as many as it may look at.
            if find(&*store, search, 1).await.1.is_some() {
                left.push(table);
            }
        }
        left
    })
}

/// What should be left, said in another way than the code says it.
fn expected(policies: &[&str], wanted: &[(usize, End)], now: i64) -> Vec<bool> {
    let is_quick = |endpoint: usize| policies[endpoint] == "quick";
    let kept = |(number, (endpoint, end)): (usize, &(usize, End))| match end {
        End::Waits => true,
        End::Dead(moment) => is_quick(*endpoint) || now - moment < 365 * DAY,
        End::Delivered(moment) if is_quick(*endpoint) => {
            let newer = wanted.iter().enumerate().filter(|(other, (endpoint, end))| {
                matches!(end, End::Delivered(at) if (at, other) > (moment, &number)) && is_quick(*endpoint)
            });
            now - moment < DAY && newer.count() < 1000
        }
        End::Delivered(moment) => now - moment < 90 * DAY,
    };
    wanted.iter().enumerate().map(kept).collect()
}

fn end() -> impl Strategy<Value = End> {
    let moment =
        || prop_oneof![0..500 * DAY, 399 * DAY..400 * DAY, Just(399 * DAY), Just(310 * DAY), Just(35 * DAY)];
    prop_oneof![1 => Just(End::Waits), 8 => moment().prop_map(End::Delivered), 3 => moment().prop_map(End::Dead)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn exactly_what_is_over_goes(
        policies in prop::collection::vec(prop::sample::select(vec!["quick", "standard", "persistent"]), 1..4),
        wanted in prop::collection::vec((0..3_usize, end()), 0..60),
        crowd in 0..3_usize,
    ) {
        let now = 400 * DAY;
        let mut wanted: Vec<_> = wanted.into_iter().map(|(n, end)| (n % policies.len(), end)).collect();
        // Sometimes more than are counted, in one second.
        wanted.extend((0..crowd * 600).map(|n| (n % policies.len(), End::Delivered(now - HOUR))));
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path());
        let (left, events) = block_on(async {
            let scene = Scene::new(store.clone());
            let tenant = tenant(&scene, &policies).await;
            let events = events(&scene, &tenant, &wanted).await;
            round(&store, at(now)).await;
            (messages(&store, tenant.application.id).await, events)
        });
        let expected = expected(&policies, &wanted, now);
        let kept = events.iter().zip(&expected).filter(|(_, kept)| **kept).map(|(event, _)| event);
        prop_assert_eq!(left, ids(kept));
    }
}

#[test]
fn a_round_sums_up_hours_that_are_over_and_removes_old_counters_of_all_kinds() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    block_on(async {
        let scene = Scene::new(store.clone());
        let tenant = tenant(&scene, &["standard", "standard"]).await;
        let hour = Hour::of(at(0)).next();
        let start = (hour.start().millis() - at(0).millis()) / 1000;
        let wanted: Vec<_> = (0..6).map(|n| (n % 2, End::Delivered(start + n as i64 * 1500))).collect();
        events(&scene, &tenant, &wanted).await;
        let counted = async || {
            let (since, until) = (hour.start(), at(start + DAY));
            let mut attempts = Vec::new();
            for endpoint in &tenant.endpoints {
                let counts = store.endpoint_attempts(endpoint.id, since, until).await.expect("a read");
                attempts.push(counts.successes);
            }
            attempts
        };
        assert_eq!(counted().await, [3, 3]);
        round(&store, at(start + HOUR + 299)).await;
        assert!(store.summed_through().await.expect("a read") < hour, "it may still be counted for");
        round(&store, at(start + 2 * HOUR + 301)).await;
        assert_eq!(store.summed_through().await, Ok(hour.next()));
        assert_eq!(counted().await, [3, 3]);
        let left = store.unsummed(tenant.endpoints.iter().map(|e| e.id).collect(), hour.next()).await;
        assert_eq!(left, Ok(Vec::new()));
        // Six minutes, and one or two hours of each endpoint.
        let removed = round(&store, at(start + 31 * DAY)).await;
        assert!(removed.counters >= 10, "{removed:?}");
        assert_eq!(counted().await, [0, 0]);
    });
}

#[test]
fn gates_leave_the_disk_a_day_after_their_hold_or_when_a_start_had_no_capacity_for_them() {
    let folder = tempfile::tempdir().expect("a folder");
    block_on(async {
        let scene = Scene::new(open(folder.path()));
        let tenant = tenant(&scene, &["standard"]).await;
        let event = scene.event(&tenant);
        let seq = scene.accepted(&event).await;
        let gate = |host: &str, until: i64| GateRecord {
            key: GateKey { org: scene.org, origin: Origin::new("https", host, 443), scope: GateScope::Host },
            gate: Gate { held_until: Some(at(until)), failed_at: Some(at(0)), ..Gate::default() },
            why: String::new(),
        };
        let [old, young, surplus] = [gate("old", 0), gate("young", 1), gate("surplus", 2 * DAY)];
        let gates = vec![old, young.clone(), surplus.clone()];
        scene.record(vec![Record { gates, ..scene.failed(&event, seq, at(9 * DAY)) }]).await;
        let mut keeper = Retention { walk: RetentionWalk::new(&[surplus]), ..keeper(scene.store.clone()) };
        let RetentionRound { removed, end, .. } = keeper.run_once(at(DAY + 1)).await;
        end.expect("a whole round");
        assert_eq!(removed.gates, 2);
        assert_eq!(scene.store.gates().await.expect("a read"), [young]);
    });
}
