//! A dispatcher that panics: the engine has failed, loudly, and nothing that was accepted is lost.

use super::SchedulingCommand;
use crate::delivering::{Sending, Transport, WireRequest, WireResponse};
use crate::{
    Engine, NewApplication, NewEvent, Options, Parts, Policies, SendReceipt, SystemClock, SystemEntropy,
    Vault,
};
use aldaba_delivery::policy::Overrides;
use aldaba_delivery::{MessageId, OrgId, Outcome, ResponseHead};
use aldaba_store::{Actor, ApplicationRef, DeliveryState, EndpointConfig, StoreOptions};
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const ORG: OrgId = OrgId::from_bytes([1; 20]);
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Takes everything, or never answers.
struct Receiver {
    answers: bool,
}

impl Transport for Receiver {
    fn send(&self, _: WireRequest) -> Sending {
        let answers = self.answers;
        Box::pin(async move {
            if !answers {
                std::future::pending::<()>().await;
            }
            let answer = ResponseHead { status: 200, phrase: "".into(), retry_after: None };
            WireResponse { outcome: Outcome::Response(answer), body: Bytes::new() }
        })
    }
}

async fn start(folder: &Path, answers: bool) -> Engine {
    let parts = Parts {
        store: aldaba_store::open(&StoreOptions::new(folder)).unwrap(),
        transport: Arc::new(Receiver { answers }),
        clock: Arc::new(SystemClock::new()),
        entropy: Arc::new(SystemEntropy::new()),
        vault: Vault::new([9; 32]),
        policies: Policies::new(&Overrides::default()).expect("the built-in policies are valid"),
    };
    Engine::start(parts, Options::default()).await.expect("it starts")
}

/// An application with an endpoint.
async fn with_endpoint(engine: &Engine) -> ApplicationRef {
    let directory = engine.directory().by(&Arc::new(Actor::program(ORG)));
    let application = NewApplication {
        org: ORG,
        uid: Some("a".into()),
        name: "a".into(),
        throttle_rate: None,
        metadata: "{}".into(),
    };
    directory.create_application(application, None).await.unwrap();
    let which = ApplicationRef { org: ORG, key: "a".into() };
    let endpoint = EndpointConfig::new("https://a.example/", "standard");
    directory.create_endpoint(which.clone(), endpoint.into(), None).await.unwrap();
    which
}

async fn delivered(engine: &Engine, message: MessageId) {
    let delivered = async {
        loop {
            match &engine.store().deliveries(message).await.unwrap()[..] {
                [round] if matches!(round.state, DeliveryState::Delivered { .. }) => break,
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, delivered).await.expect("it is delivered");
}

#[tokio::test]
async fn a_dispatcher_that_panics_fails_the_engine_and_the_next_start_delivers_everything() {
    let folder = tempfile::tempdir().unwrap();
    let engine = start(folder.path(), false).await;
    let which = with_endpoint(&engine).await;
    let send = async || match engine.send(&which, NewEvent::new("a", Bytes::from_static(b"{}"))).await {
        Ok(SendReceipt::New { message, .. }) => message,
        other => panic!("not accepted: {other:?}"),
    };
    let in_flight = send().await;
    while engine.in_flight().await == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let failed = engine.failed();
    engine.inbox().send(SchedulingCommand::Panic);
    tokio::time::timeout(TEST_TIMEOUT, failed).await.expect("the engine reports the failure");
    // What is accepted between the panic and the end of the process is on disk as well.
    let after = send().await;
    engine.close().await;
    drop(engine);

    let engine = start(folder.path(), true).await;
    for message in [in_flight, after] {
        delivered(&engine, message).await;
    }
    engine.shutdown(Duration::from_secs(5)).await;
}
