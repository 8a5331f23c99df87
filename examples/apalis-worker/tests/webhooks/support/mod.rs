//! A world for a worker: Aldaba as a process, a gate in front of it, a receiver, and a queue in a folder that goes.

mod aldaba;
pub(crate) mod gate;
mod http;
pub(crate) mod queue;
mod receiver;

pub(crate) use gate::Gate;
pub(crate) use receiver::Receiver;

use aldaba::Aldaba;
use apalis::prelude::{FetchById, Status, TaskId};
use queue::{Database, Pool, Storage};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::timeout;

/// What should happen, happens within this time.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(40);
/// What should not happen has not happened after this time.
pub(crate) const QUIET: Duration = Duration::from_secs(2);

const WORKER: &str = env!("CARGO_BIN_EXE_apalis-worker");

pub(crate) struct World {
    // Dropped in this order: processes end before their data go.
    pub(crate) aldaba: Aldaba,
    pub(crate) gate: Gate,
    pub(crate) receiver: Receiver,
    pub(crate) pool: Pool,
    database: Database,
    _folder: TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_receiver(Receiver::start(200).await).await
    }

    pub(crate) async fn with_receiver(receiver: Receiver) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let aldaba = Aldaba::start(&folder.path().join("aldaba")).await;
        let gate = Gate::open(aldaba.address).await;
        let database = Database::new(folder.path());
        let pool = Pool::connect(&database.url).await.unwrap();
        let world = Self { aldaba, gate, receiver, pool, database, _folder: folder };
        assert!(world.command().arg("setup").status().unwrap().success());
        world
    }

    /// Puts an email into the queue that tells the receiver how it ended; its id.
    pub(crate) fn send(&self, to: &str) -> String {
        self.send_with_url(to, &self.receiver.url)
    }

    pub(crate) fn send_with_url(&self, to: &str, url: &str) -> String {
        self.enqueue(&["send", to, url])
    }

    /// Puts an email into the queue of which nobody wants to know; its id.
    pub(crate) fn send_without_url(&self, to: &str) -> String {
        self.enqueue(&["send", to])
    }

    fn enqueue(&self, words: &[&str]) -> String {
        let output = self.command().args(words).stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", output.status);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn work(&self) -> Worker {
        Worker(self.command().arg("work").spawn().unwrap())
    }

    pub(crate) fn work_and_report_before_stored(&self) -> Worker {
        Worker(self.command().arg("work").env("REPORT_BEFORE_STORED", "1").spawn().unwrap())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(WORKER);
        command
            .env("JOBS_DATABASE", &self.database.url)
            .env("HEARTBEAT_SECONDS", "1")
            .env("ALDABA_URL", self.gate.url())
            .env("ALDABA_TOKEN", &self.aldaba.token)
            .env("ALDABA_APP", &self.aldaba.app);
        command
    }

    /// A job's status in the queue, and how often it was run.
    pub(crate) async fn stored(&self, id: &str) -> (Status, usize) {
        let mut queue = Storage::<serde_json::Value>::new(&self.pool);
        let task = queue.fetch_by_id(&id.parse::<TaskId>().unwrap()).await.unwrap().expect("a job is gone");
        (task.status(), task.attempt())
    }

    pub(crate) async fn wait_until_stored(&self, id: &str, status: Status) {
        let stored = async {
            while self.stored(id).await.0 != status {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if timeout(WAIT_TIMEOUT, stored).await.is_err() {
            panic!("the job was never {status}; it is {:?}", self.stored(id).await);
        }
    }
}

/// A worker process, killed at the latest when this is dropped.
pub(crate) struct Worker(Child);

impl Worker {
    /// SIGKILL: it has no time to do anything.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
