use crate::support::client::Client;
use aldaba::config::Config;
use aldaba::server::{Failed, Server, Threads, listen};
use aldaba::{DEFAULT_ORGANIZATION, JwtSecret, issue_token};
use aldaba_delivery::Timestamp;
use aldaba_engine::{Clock, SystemClock};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) const JWT_SECRET: &str = "the secret of the tests, long enough";
/// When the tests' tokens were made; they last ten years.
pub(crate) const ISSUED: Timestamp = Timestamp::from_millis(1_750_000_000_000);

pub(crate) fn jwt_secret() -> JwtSecret {
    JwtSecret::new(JWT_SECRET).unwrap()
}

/// A server in this process, with its own data folder.
pub(crate) struct Running {
    pub(crate) client: Client,
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), Failed>>,
    folder: TempDir,
}

pub(crate) fn token(org: &str) -> String {
    issue_token(&jwt_secret(), org.parse().unwrap(), ISSUED)
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Deliveries may go to this machine.
    pub(crate) async fn delivering() -> Self {
        Self::with(|config| config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()]).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::within(tempfile::tempdir().unwrap(), change).await
    }

    pub(crate) async fn within(folder: TempDir, change: impl FnOnce(&mut Config)) -> Self {
        Self::on_clock(folder, Arc::new(SystemClock::new()), change).await
    }

    /// On a clock that need not be the machine's.
    pub(crate) async fn on_clock(
        folder: TempDir,
        clock: Arc<dyn Clock>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let mut config = Config::default();
        config.store.folder = folder.path().join("data");
        // Tests share their processors with others, and are not about that.
        config.store.queue_wait = Duration::from_secs(30);
        config.jwt_secret = Some(jwt_secret());
        change(&mut config);
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let server = Server::start_with_clock(listener, config, clock).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(server.run(Threads::one(), async move { drop(stopped.await) }));
        let authorization = Some(format!("Bearer {}", token(DEFAULT_ORGANIZATION)));
        Self { client: Client { address, authorization }, address, stop, ended, folder }
    }

    /// Where its data is.
    pub(crate) fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    /// Stops it in order and gives its folder back.
    pub(crate) async fn stop(self) -> TempDir {
        let _ = self.stop.send(());
        self.ended.await.unwrap().unwrap();
        self.folder
    }

    pub(crate) async fn application(&self) -> String {
        self.client.post("/app", r#"{"name":"an application"}"#).await.expect(201)["id"]
            .as_str()
            .unwrap()
            .into()
    }

    /// An event type that endpoints can ask for.
    pub(crate) async fn event_type(&self, name: &str) {
        let made = self.client.put(&format!("/event-type/{name}"), r#"{"description": ""}"#).await;
        assert!(made.status.is_success(), "{:?}", made.body);
    }

    /// With the event types that it asks for.
    pub(crate) async fn endpoint(&self, app: &str, more: Value) -> Value {
        let mut body = json!({"url": "https://example.com/hook"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        for name in ["eventTypes", "filterTypes"].iter().filter_map(|field| body[field].as_array()).flatten()
        {
            self.event_type(name.as_str().unwrap()).await;
        }
        self.client.post(&format!("/app/{app}/endpoint"), body.to_string()).await.expect(201)
    }

    pub(crate) async fn message(&self, app: &str, event_type: &str) -> String {
        let body = json!({"eventType": event_type, "payload": {"a": 1}});
        let sent = self.client.post(&format!("/app/{app}/msg"), body.to_string()).await.expect(202);
        sent["id"].as_str().unwrap().into()
    }

    /// How many applications, endpoints and messages there are.
    pub(crate) async fn stored(&self, app: &str) -> [usize; 3] {
        let mut counts = [0; 3];
        let lists = ["/app".to_owned(), format!("/app/{app}/endpoint"), format!("/app/{app}/msg")];
        for (count, path) in counts.iter_mut().zip(lists) {
            *count = self.client.get(&path).await.expect(200)["data"].as_array().unwrap().len();
        }
        counts
    }
}
