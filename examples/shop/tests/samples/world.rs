use shop::{Aldaba, Backend, Mailbox, Payment, Running, Sample, Sender, Settings, Signing, Tables, fresh};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tempfile::TempDir;
use test_servers::Postgres;
use tokio::sync::Mutex;

/// How much of everything there is at first.
pub(crate) const STOCK: i32 = 100;

/// The servers that all samples share.
pub(crate) struct Stage {
    // Dropped in this order: processes end before their data go.
    pub(crate) aldaba: Aldaba,
    pub(crate) mailbox: Mailbox,
    pub(crate) postgres: Postgres,
    pub(crate) folder: TempDir,
}

/// A sample, and what is its own.
pub(crate) struct World {
    pub(crate) stage: Arc<Stage>,
    pub(crate) sample: Sample,
    pub(crate) signing: Signing,
    pub(crate) running: Mutex<Running>,
    pub(crate) sender: Sender,
    pub(crate) tables: Tables,
    /// What the worker at the edge calls.
    pub(crate) backend: Backend,
    /// Where it keeps its marks.
    pub(crate) keys: PathBuf,
}

impl Stage {
    pub(crate) async fn set() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let postgres = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
        let (aldaba, mailbox) = (Aldaba::start(folder.path()).await, Mailbox::start(folder.path()).await);
        Self { aldaba, mailbox, postgres, folder }
    }
}

impl World {
    pub(crate) async fn new(stage: &Arc<Stage>, sample: Sample, signing: Signing) -> Self {
        let tables = Tables::create(stage.postgres.database()).await;
        let (backend, keys) = (Backend::start().await, stage.folder.path().join(fresh("keys")));
        let settings = settings(&tables, &stage.mailbox.url(), &backend, &keys);
        let running = Running::start(sample, signing, settings, stage.folder.path()).await;
        let sender = running.sender(signing);
        let stage = Arc::clone(stage);
        Self { stage, sample, signing, running: Mutex::new(running), sender, tables, backend, keys }
    }

    /// A second process of the sample, on the same tables, with another mail server.
    pub(crate) async fn with_mails_to(&self, url: &str) -> Running {
        let settings = settings(&self.tables, url, &self.backend, &self.keys);
        Running::start(self.sample, self.signing, settings, self.stage.folder.path()).await
    }

    /// What the sample is told beside what all are.
    pub(crate) fn settings(&self) -> Settings {
        settings(&self.tables, &self.stage.mailbox.url(), &self.backend, &self.keys)
    }

    /// A payment of an order that is there, for a product that is there.
    pub(crate) async fn payment(&self) -> Payment {
        let payment = Payment::of(&fresh("order"), &fresh("product"));
        self.tables.add_order(&payment.order).await;
        self.tables.add_product(&payment.product, STOCK).await;
        payment
    }

    /// The payment has had its effect once.
    pub(crate) async fn is_paid_once(&self, payment: &Payment) {
        let order = self.tables.order(&payment.order).await;
        assert_eq!(order.status, "paid");
        assert_eq!(order.transaction.as_ref(), Some(&payment.transaction));
        assert_eq!(self.tables.stock(&payment.product).await, STOCK - 1);
    }

    /// The payment has had no effect.
    pub(crate) async fn is_not_paid(&self, payment: &Payment) {
        let order = self.tables.order(&payment.order).await;
        assert_eq!((order.status.as_str(), order.transaction), ("pending", None));
        assert_eq!(self.tables.stock(&payment.product).await, STOCK);
    }

    /// Everything that a refused request must leave as it was: tables, calls of the backend.
    pub(crate) async fn everything(&self) -> ((i64, i64, i64), usize) {
        (self.tables.everything().await, self.backend.count())
    }

    pub(crate) async fn log(&self) -> String {
        self.running.lock().await.log()
    }
}

fn settings(tables: &Tables, mails: &str, backend: &Backend, keys: &Path) -> Settings {
    Settings::default()
        .with("DATABASE_URL", tables.url())
        .with("SMTP_URL", mails)
        .with("BACKEND_URL", backend.url())
        .with("KV_FOLDER", keys.to_str().unwrap())
}

/// Seconds since now.
#[expect(clippy::disallowed_methods, reason = "a stopwatch for people; nothing is decided by it")]
pub(crate) fn stopwatch() -> impl Fn() -> f64 {
    let started = Instant::now();
    move || started.elapsed().as_secs_f64()
}
