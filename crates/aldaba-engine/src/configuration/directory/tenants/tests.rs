use super::*;
use aldaba_delivery::{AppId, EndpointId, OrgId, Timestamp, WhenDisabled};
use aldaba_store::{Application, Subscription};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;

const ORG: OrgId = OrgId::from_bytes([1; 20]);
const APP: AppId = AppId::from_bytes([2; 20]);
const NOW: Timestamp = Timestamp::from_millis(0);

fn which(key: &str) -> ApplicationRef {
    ApplicationRef { org: ORG, key: key.into() }
}

fn tenant(endpoints: usize) -> Tenant {
    let application = Application {
        id: APP,
        org: ORG,
        uid: None,
        name: String::new(),
        throttle_rate: None,
        alert_email: None,
        metadata: "{}".into(),
        created_at: NOW,
        updated_at: NOW,
    };
    let endpoint = Subscription {
        id: EndpointId::from_bytes([3; 20]),
        disabled: false,
        ordered: false,
        when_disabled: WhenDisabled::Skip,
        event_types: Box::default(),
        channels: Box::default(),
        direct: false,
        filter: None,
    };
    Tenant::new(application, 1, vec![endpoint; endpoints])
}

/// Counts reads, and lets the test end them.
struct Reads {
    begun: AtomicUsize,
    gate: Arc<Semaphore>,
    found: Mutex<Result<Option<Tenant>, Error>>,
}

impl Reads {
    fn finding(found: Result<Option<Tenant>, Error>) -> Arc<Self> {
        let gate = Arc::new(Semaphore::new(0));
        Arc::new(Self { begun: AtomicUsize::new(0), gate, found: Mutex::new(found) })
    }

    fn read(&self) -> Read<Option<Tenant>> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let (gate, found) = (self.gate.clone(), self.found.lock().clone());
        Box::pin(async move {
            gate.acquire().await.expect("it is never closed").forget();
            found
        })
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    fn let_go(&self, reads: usize) {
        self.gate.add_permits(reads);
    }
}

fn ask(tenants: &Arc<Tenants>, reads: &Arc<Reads>) -> tokio::task::JoinHandle<TenantResult> {
    let (tenants, reads) = (tenants.clone(), reads.clone());
    tokio::spawn(async move { tenants.get(&which("a"), || reads.read()).await })
}

/// Runs every task until it waits.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn concurrent_callers_share_one_read() {
    let (tenants, reads) = (Arc::new(Tenants::new(10, 10)), Reads::finding(Ok(Some(tenant(1)))));
    let asking: Vec<_> = (0..100).map(|_| ask(&tenants, &reads)).collect();
    settle().await;
    assert_eq!(reads.begun(), 1);
    reads.let_go(1);
    for asked in asking {
        assert!(asked.await.unwrap().unwrap().is_some());
    }
    ask(&tenants, &reads).await.unwrap().unwrap();
    assert_eq!(reads.begun(), 1, "and then it is kept");
    assert!(tenants.table.lock().reads.is_empty());
}

#[tokio::test]
async fn a_cancelled_read_is_taken_over() {
    let (tenants, reads) = (Arc::new(Tenants::new(10, 10)), Reads::finding(Ok(Some(tenant(1)))));
    let first = ask(&tenants, &reads);
    settle().await;
    let second = ask(&tenants, &reads);
    settle().await;
    first.abort();
    settle().await;
    assert_eq!(reads.begun(), 2);
    reads.let_go(1);
    assert!(second.await.unwrap().unwrap().is_some());
}

#[tokio::test]
async fn concurrent_callers_share_an_error_and_the_next_one_reads_again() {
    let (tenants, reads) = (Arc::new(Tenants::new(10, 10)), Reads::finding(Err(Error::Timeout)));
    let asking: Vec<_> = (0..10).map(|_| ask(&tenants, &reads)).collect();
    settle().await;
    reads.let_go(2);
    for asked in asking {
        assert_eq!(asked.await.unwrap().unwrap_err(), Error::Timeout);
    }
    assert_eq!(reads.begun(), 1);
    ask(&tenants, &reads).await.unwrap().unwrap_err();
    assert_eq!(reads.begun(), 2);
}

#[tokio::test]
async fn an_application_created_during_a_read_that_missed_it_is_found() {
    let (tenants, reads) = (Arc::new(Tenants::new(10, 10)), Reads::finding(Ok(None)));
    let before = ask(&tenants, &reads);
    settle().await;
    *reads.found.lock() = Ok(Some(tenant(1)));
    let after = ask(&tenants, &reads);
    settle().await;
    reads.let_go(2);
    assert!(before.await.unwrap().unwrap().is_none());
    assert!(after.await.unwrap().unwrap().is_some());
    assert_eq!(reads.begun(), 2);
}

#[tokio::test]
async fn reports_of_a_stale_configuration_do_not_drop_the_newer_one() {
    let (tenants, reads) = (Arc::new(Tenants::new(10, 10)), Reads::finding(Ok(Some(tenant(1)))));
    reads.let_go(100);
    let old = ask(&tenants, &reads).await.unwrap().unwrap().unwrap();
    // A hundred messages used the stale one, and all report it.
    for _ in 0..100 {
        tenants.forget(&which("a"), &old);
        ask(&tenants, &reads).await.unwrap().unwrap();
    }
    assert_eq!(reads.begun(), 2);
}

#[test]
fn the_cache_is_limited_by_applications_and_by_endpoints() {
    let limits = TenantLimits { applications: 3, endpoints: 10 };
    let mut table = TenantTable::default();
    let mut insert = |key: &str, endpoints| {
        table.insert(which(key), Arc::new(tenant(endpoints)), limits);
        let endpoints: usize = table.cached.values().map(|tenant| tenant.endpoints.len()).sum();
        assert_eq!(endpoints, table.endpoints);
        (table.cached.len(), table.endpoints)
    };
    assert_eq!(insert("a", 4), (1, 4));
    assert_eq!(insert("a", 5), (1, 5), "a newer one takes the place of the older");
    assert_eq!(insert("b", 5), (2, 10));
    assert_eq!(insert("c", 1), (1, 1), "one endpoint too many");
    assert_eq!(insert("d", 0), (2, 1));
    assert_eq!(insert("e", 0), (3, 1));
    assert_eq!(insert("f", 0), (1, 0), "one application too many");
    assert_eq!(insert("g", 50), (1, 50), "larger than the limit: kept alone");
}

#[tokio::test]
async fn a_deleted_application_is_dropped_under_all_its_keys() {
    let tenants = Tenants::new(10, 10);
    let insert = async |key: &str, app: AppId| {
        let mut found = tenant(2);
        found.application.id = app;
        tenants.get(&which(key), || Box::pin(std::future::ready(Ok(Some(found.clone()))))).await.unwrap();
    };
    let other = AppId::from_bytes([4; 20]);
    insert("id", APP).await;
    insert("uid", APP).await;
    insert("other", other).await;
    assert_eq!(tenants.size(), (2, 3, 6));
    tenants.forget_application(APP);
    assert_eq!(tenants.size(), (1, 1, 2));
    // Its uid now belongs to another application.
    insert("uid", other).await;
    tenants.forget_application(APP);
    assert_eq!(tenants.size(), (1, 2, 4));
    tenants.forget_application(other);
    assert_eq!(tenants.size(), (0, 0, 0));
}

#[test]
fn a_filter_weighs_as_much_as_it_is_long() {
    let plain = tenant(3);
    assert_eq!(plain.weight(), 3);
    let text = format!("{{\"tag\":{{\"in\":[{}]}}}}", vec![format!("\"{}\"", "x".repeat(100)); 20].join(","));
    let mut endpoints = plain.endpoints.clone();
    endpoints[1].filter = Some(aldaba_delivery::Filter::parse(&text).unwrap().into());
    let filtered = Tenant::new(plain.application.clone(), 1, endpoints);
    assert_eq!(filtered.weight(), 3 + text.len().div_ceil(256));
}
