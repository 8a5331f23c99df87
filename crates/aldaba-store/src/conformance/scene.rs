//! What the cases are told with. Ids are counted up, so they sort in the order they were made.

use crate::{
    Accept, Accepted, Actor, Application, ApplicationRef, AuditAction, AuditEntry, Change, Changed, Content,
    Done, DueQuery, Endpoint, EndpointConfig, Error, IdempotencyKey, NewAttempt, NewDelivery, NewMessage,
    PendingDelivery, Record, Recorded, Seq, Store, Subscription, Tenant, Trigger,
};
use aldaba_delivery::{
    AppId, Ending, EndpointId, Filter, Health, Id, IdKind, OrgId, Reason, Timestamp, Transition,
};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// A moment, in seconds from where every case begins.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis((1_780_000_000 + seconds) * 1000)
}

/// A store and an organization that uses it.
pub struct Scene {
    pub store: Arc<dyn Store>,
    pub org: OrgId,
    made: AtomicU64,
}

impl Scene {
    pub fn new(store: Arc<dyn Store>) -> Self {
        let mut scene = Self { store, org: OrgId::first_at(at(0)), made: AtomicU64::new(0) };
        scene.org = scene.id();
        scene
    }

    /// An id that is greater than all before it.
    pub fn id<K: IdKind>(&self) -> Id<K> {
        self.id_at(at(0))
    }

    /// The same, of a moment.
    pub fn id_at<K: IdKind>(&self, at: Timestamp) -> Id<K> {
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        let mut random = [0; 15];
        random[7..].copy_from_slice(&made.to_be_bytes());
        Id::new(at, random)
    }

    pub fn key(&self) -> IdempotencyKey {
        let mut digest = [0xd1; 16];
        digest[8..].copy_from_slice(&self.made.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        IdempotencyKey { digest: digest.into(), expires_at: at(24 * 3600) }
    }

    pub fn new_application(&self) -> Application {
        Application {
            id: self.id(),
            org: self.org,
            uid: None,
            name: "Panadería Sol".into(),
            throttle_rate: Some(50),
            alert_email: Some("avisos@example.com".into()),
            metadata: r#"{"plan":"gold"}"#.into(),
            created_at: at(0),
            updated_at: at(0),
        }
    }

    pub fn new_endpoint(&self, app: AppId) -> Endpoint {
        Endpoint {
            id: self.id(),
            app,
            org: self.org,
            config: EndpointConfig::new("https://example.com/hook", "standard"),
            sealed: vec![0, 1, 2, 255],
            created_at: at(0),
            updated_at: at(0),
            deleted: false,
            direct: false,
            health: Health::default(),
            last_error: None,
        }
    }

    pub async fn change(&self, change: Change) -> Changed {
        self.change_by(change, None).await
    }

    /// The same with an entry for the audit log.
    pub async fn change_by(&self, change: Change, audit: Option<Arc<AuditEntry>>) -> Changed {
        ask(|done| self.store.change(change, audit, done)).await.unwrap()
    }

    /// What somebody at the command line does.
    pub fn audit(&self, action: AuditAction) -> Arc<AuditEntry> {
        let actor = Actor::command_line(self.org);
        Arc::new(AuditEntry { id: self.id(), actor, action, count: 1 })
    }

    pub async fn create_application(&self, application: &Application) -> Changed {
        self.change(Change::CreateApplication { application: application.clone(), idempotency: None }).await
    }

    pub async fn create_endpoint(&self, endpoint: &Endpoint) -> Changed {
        self.change(Change::CreateEndpoint {
            endpoint: endpoint.clone(),
            idempotency: None,
            notices: Vec::new(),
        })
        .await
    }

    /// An application with some endpoints, as a sender sees it.
    pub async fn with_endpoints(&self, endpoints: usize) -> Tenant {
        let application = self.new_application();
        assert_eq!(self.create_application(&application).await, made());
        for _ in 0..endpoints {
            assert_eq!(self.create_endpoint(&self.new_endpoint(application.id)).await, made());
        }
        self.tenant(application.id).await.expect("just made")
    }

    pub async fn tenant(&self, app: AppId) -> Option<Tenant> {
        self.store.tenant(self.which(&app.to_string())).await.unwrap()
    }

    /// An endpoint as it is on disk, deleted or not.
    pub async fn endpoint(&self, id: EndpointId) -> Endpoint {
        self.store.lane_endpoints(vec![id]).await.unwrap().pop().expect("an endpoint with this id")
    }

    pub fn which(&self, key: &str) -> ApplicationRef {
        ApplicationRef { org: self.org, key: key.into() }
    }

    /// An event for all endpoints of the application, due at once.
    pub fn event(&self, tenant: &Tenant) -> Accept {
        self.event_due(tenant, at(0))
    }

    pub fn event_due(&self, tenant: &Tenant, due_at: Timestamp) -> Accept {
        let content = Content::new("invoice.paid", Bytes::from_static(b"{\"n\": 1}"));
        let deliver = |endpoint: &Subscription| NewDelivery {
            endpoint: endpoint.id,
            due_at,
            ordered: endpoint.ordered,
            skipped: None,
        };
        Accept {
            org: self.org,
            app: tenant.application.id,
            version: tenant.version,
            message: NewMessage {
                id: self.id(),
                content: Arc::new(content),
                channels: Vec::new(),
                tags: Vec::new(),
                headers: Vec::new(),
                event_id_until: None,
                created_at: at(0),
                deliver_at: None,
                payload_until: None,
                only_for: None,
                job: None,
            },
            deliveries: tenant.endpoints.iter().map(deliver).collect(),
            idempotency: None,
            quota: None,
            direct: None,
            creates: None,
        }
    }

    pub async fn accept(&self, batch: Vec<Accept>) -> Vec<Accepted> {
        ask(|done| self.store.accept(batch, done)).await.unwrap()
    }

    /// Accepts one event that nothing speaks against; the number of its first delivery.
    pub async fn accepted(&self, accept: &Accept) -> Seq {
        match self.accept(vec![accept.clone()]).await[..] {
            [Accepted::New { first }] => first,
            ref other => panic!("not accepted: {other:?}"),
        }
    }

    pub async fn record(&self, batch: Vec<Record>) -> Vec<Recorded> {
        ask(|done| self.store.record(batch, done)).await.unwrap()
    }

    pub fn attempt(&self) -> NewAttempt {
        NewAttempt {
            id: self.id(),
            started_at: at(1),
            duration: Duration::from_micros(12_345),
            status_code: Some(200),
            failure: None,
            error: String::new(),
            response: Bytes::from_static(b"ok"),
            trigger: Trigger::Scheduled,
            success: true,
            event_type: "invoice.paid".into(),
        }
    }

    /// The first delivery of an event was delivered at the first attempt.
    pub fn delivered(&self, accept: &Accept, seq: Seq) -> Record {
        Record {
            seq,
            org: Some(accept.org),
            app: accept.app,
            endpoint: accept.deliveries[0].endpoint,
            message: accept.message.id,
            clock_start: accept.message.created_at,
            attempts_before: 0,
            attempt: Some(self.attempt()),
            transition: Transition::Settle(Ending::Delivered),
            at: at(2),
            health: None,
            gates: Vec::new(),
            notices: Vec::new(),
            mails: Vec::new(),
            audit: None,
            idempotency: None,
        }
    }

    /// The first delivery of an event failed at the first attempt, and is due again.
    pub fn failed(&self, accept: &Accept, seq: Seq, due_at: Timestamp) -> Record {
        let attempt =
            NewAttempt { status_code: Some(503), error: "HTTP 503".into(), success: false, ..self.attempt() };
        let transition = Transition::Retry { due_at };
        Record { attempt: Some(attempt), transition, ..self.delivered(accept, seq) }
    }

    /// The first delivery of an event ended without an attempt.
    pub fn dead(&self, accept: &Accept, seq: Seq, reason: Reason) -> Record {
        let transition = Transition::Settle(Ending::Dead(reason));
        Record { attempt: None, transition, ..self.delivered(accept, seq) }
    }

    pub async fn due(&self, endpoint: EndpointId) -> Vec<PendingDelivery> {
        self.store.due(DueQuery { endpoint, ordered: false, after: None, limit: 1000 }).await.unwrap()
    }

    /// The same by number: what an ordered lane reads.
    pub async fn in_order(&self, endpoint: EndpointId) -> Vec<Seq> {
        let query = DueQuery { endpoint, ordered: true, after: None, limit: 1000 };
        self.store.due(query).await.unwrap().iter().map(|waiting| waiting.seq).collect()
    }
}

/// What a change that was made and removed nothing answers.
pub(super) fn filter(text: &str) -> Arc<Filter> {
    Arc::new(Filter::parse(text).unwrap())
}

pub(super) fn made() -> Changed {
    Changed::Done { removed: Vec::new() }
}

/// Submits a write and waits for its result.
pub(super) async fn ask<T: Send + 'static>(write: impl FnOnce(Done<T>)) -> Result<T, Error> {
    let (told, fate) = oneshot::channel();
    write(Done::new(move |result| {
        let _ = told.send(result);
    }));
    fate.await.expect("`Done` is called exactly once")
}

impl std::fmt::Debug for Scene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scene").field("org", &self.org).finish_non_exhaustive()
    }
}
