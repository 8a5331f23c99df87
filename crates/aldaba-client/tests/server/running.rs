//! The server, in this process.

use aldaba::config::Config;
use aldaba::server::{Failed, Server, Threads, listen};
use aldaba::{DEFAULT_ORGANIZATION, JwtSecret, issue_token};
use aldaba_client::{Client, NewApplication};
use aldaba_delivery::Timestamp;
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const JWT_SECRET: &str = "the secret of the tests, long enough";
/// When the tests' tokens were made; they last ten years.
const ISSUED: Timestamp = Timestamp::from_millis(1_750_000_000_000);

fn jwt_secret() -> JwtSecret {
    JwtSecret::new(JWT_SECRET).unwrap()
}

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) client: Client,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), Failed>>,
    folder: TempDir,
}

pub(crate) fn token() -> String {
    issue_token(&jwt_secret(), DEFAULT_ORGANIZATION.parse().unwrap(), ISSUED)
}

pub(crate) fn client_of(address: SocketAddr) -> Client {
    Client::new(&format!("http://{address}"), &token()).unwrap()
}

/// An address with a closed port.
pub(crate) fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a stopwatch: how long callers wait is what is tested")]
pub(crate) async fn timed<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let started = std::time::Instant::now();
    let output = future.await;
    (output, started.elapsed())
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::within(tempfile::tempdir().unwrap(), SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    pub(crate) async fn within(folder: TempDir, address: SocketAddr) -> Self {
        let mut config = Config::default();
        config.store.folder = folder.path().join("data");
        // Tests share their processors with others, and are not about that.
        config.store.queue_wait = Duration::from_secs(30);
        config.jwt_secret = Some(jwt_secret());
        config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
        let server = Server::start(listen(address).unwrap(), config).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(server.run(Threads::one(), async move { drop(stopped.await) }));
        Self { address, client: client_of(address), stop, ended, folder }
    }

    /// Stops it in order and gives its folder back.
    pub(crate) async fn stop(self) -> TempDir {
        let _ = self.stop.send(());
        self.ended.await.unwrap().unwrap();
        self.folder
    }

    /// An application with this uid.
    pub(crate) async fn application(&self, uid: &str) {
        self.client.applications().create(&NewApplication::with_uid("an application", uid)).await.unwrap();
    }
}
