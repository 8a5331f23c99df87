//! An engine whose database is unavailable for a while.

use aldaba_delivery::policy::Overrides;
use aldaba_delivery::{MessageId, OrgId, Outcome, ResponseHead};
use aldaba_engine::{
    Clock, Engine, NewApplication, NewEvent, Options, Parts, Policies, SendError, SendReceipt, Sending,
    SystemClock, SystemEntropy, Transport, Vault, WireRequest, WireResponse,
};
use aldaba_store::operations::{Monotonic, Op, Reply, Result};
use aldaba_store::sqlite::{self, SqliteStore};
use aldaba_store::{
    Actor, ApplicationRef, Backend, BackendReads, DeliveryState, EndpointConfig, Error, LiveCounts, Read,
    Store,
};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

const TEST_TIMEOUT: Duration = Duration::from_secs(30);

struct Away {
    store: SqliteStore,
    writes: AtomicBool,
    reads: AtomicBool,
}

fn away() -> Error {
    Error::Unavailable("on purpose".into())
}

impl Backend for Away {
    fn write(&self, op: Op, reply: Reply) {
        match self.writes.load(Ordering::SeqCst) {
            true => reply.call(Err(away())),
            false => self.store.write(op, reply),
        }
    }

    fn read<T, F>(&self, read: F) -> Read<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn BackendReads) -> Result<T> + Send + 'static,
    {
        match self.reads.load(Ordering::SeqCst) {
            true => Box::pin(std::future::ready(Err(away()))),
            false => self.store.read(read),
        }
    }

    fn clock(&self) -> &Monotonic {
        self.store.clock()
    }

    fn count_time(&self) -> Duration {
        self.store.count_time()
    }
}

impl Store for Away {
    fn live_counts(&self) -> LiveCounts {
        self.store.live_counts()
    }

    fn check(&self) -> Read<()> {
        self.store.check()
    }

    fn close(&self) -> Read<()> {
        self.store.close()
    }
}

/// Answers 200 once permitted.
struct Receiver {
    requests: AtomicUsize,
    answers: Arc<Semaphore>,
}

impl Transport for Receiver {
    fn send(&self, _: WireRequest) -> Sending {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let answers = self.answers.clone();
        Box::pin(async move {
            let _answer = answers.acquire().await;
            let answer = ResponseHead { status: 200, phrase: "".into(), retry_after: None };
            WireResponse { outcome: Outcome::Response(answer), body: Bytes::new() }
        })
    }
}

async fn start(store: Arc<Away>, transport: Arc<Receiver>) -> Engine {
    let parts = Parts {
        store,
        transport,
        clock: Arc::new(SystemClock::new()),
        entropy: Arc::new(SystemEntropy::new()),
        vault: Vault::new([9; 32]),
        policies: Policies::new(&Overrides::default()).expect("the built-in policies are valid"),
    };
    Engine::start(parts, Options::default()).await.expect("it starts")
}

/// An application with an endpoint.
async fn with_endpoint(engine: &Engine) -> ApplicationRef {
    let org = OrgId::from_bytes([1; 20]);
    let directory = engine.directory().by(&Arc::new(Actor::program(org)));
    let (uid, name, metadata) = (Some("a".into()), "a".into(), "{}".into());
    let application = NewApplication { org, uid, name, throttle_rate: None, metadata };
    directory.create_application(application, None).await.unwrap();
    let which = ApplicationRef { org, key: "a".into() };
    let endpoint = EndpointConfig::new("https://a.example/", "standard");
    directory.create_endpoint(which.clone(), endpoint.into(), None).await.unwrap();
    which
}

async fn delivered(engine: &Engine, message: MessageId) {
    let delivered = async {
        while !matches!(
            &engine.store().deliveries(message).await.unwrap()[..],
            [round] if matches!(round.state, DeliveryState::Delivered { .. })
        ) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, delivered).await.expect("it is delivered");
}

#[tokio::test]
async fn nothing_is_sent_while_the_database_is_unavailable_and_delivery_resumes_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&sqlite::Options::new(folder.path())).unwrap();
    let store = Arc::new(Away { store, writes: AtomicBool::new(false), reads: AtomicBool::new(false) });
    let receiver = Arc::new(Receiver { requests: AtomicUsize::new(0), answers: Arc::new(Semaphore::new(0)) });
    let requests = || receiver.requests.load(Ordering::SeqCst);
    let engine = start(store.clone(), receiver.clone()).await;
    let which = with_endpoint(&engine).await;
    let event = NewEvent::new("a", Bytes::from_static(b"{}"));
    let send = async |event: NewEvent| -> std::result::Result<MessageId, SendError> {
        match engine.send(&which, event).await? {
            SendReceipt::New { message, .. } => Ok(message),
            SendReceipt::Repeated { message } => panic!("sent before: {message}"),
        }
    };
    let in_flight = send(event.clone()).await.unwrap();
    let began = async {
        while requests() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, began).await.expect("the first request leaves");
    let soon = SystemClock::new().now() + Duration::from_millis(600);
    let due_meanwhile = send(NewEvent { deliver_at: Some(soon), ..event.clone() }).await.unwrap();

    store.writes.store(true, Ordering::SeqCst);
    receiver.answers.add_permits(1000);
    assert_eq!(send(event.clone()).await, Err(SendError::Store(away())));
    // In this time no further request must start.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(requests(), 1, "results could not be recorded");
    store.reads.store(true, Ordering::SeqCst);
    // The engine meets the failing reads meanwhile.
    tokio::time::sleep(Duration::from_millis(300)).await;
    store.writes.store(false, Ordering::SeqCst);
    store.reads.store(false, Ordering::SeqCst);
    for message in [in_flight, due_meanwhile, send(event).await.unwrap()] {
        delivered(&engine, message).await;
    }
    assert_eq!(requests(), 3, "each was sent once");
    engine.shutdown(Duration::from_secs(5)).await;
}
