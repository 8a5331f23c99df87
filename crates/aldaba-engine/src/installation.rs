//! An engine on this machine: a data folder, the network, the machine's clock and its chance. What starts
//! one, a server or a program that has it inside, says only what is to be different.

use crate::wire::{Wire, WireError, WireOptions};
use crate::{Clock, Engine, Entropy, Options, Parts, Policies, StartError, Vault};
use aldaba_delivery::OrgId;
use aldaba_delivery::PolicyError;
use aldaba_delivery::policy::Overrides;
use aldaba_store::sqlite::{Monotonic, OpenError, Options as StoreOptions, SqliteStore};
use std::fmt;
use std::sync::Arc;

/// The organization of whoever names none.
pub const DEFAULT_ORGANIZATION: &str = "org_23rb8YdGqMT0qIzpgGwdXfHirMu";

/// The same as an id.
pub fn default_organization() -> OrgId {
    DEFAULT_ORGANIZATION.parse().expect("it is an id")
}

/// How an engine is to run on this machine.
pub struct Setup {
    /// Its folder is the data folder. The clock that is here takes the place of the one in it.
    pub store: StoreOptions,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    /// What secrets are sealed with.
    pub encryption_key: [u8; 32],
    pub wire: WireOptions,
    pub overrides: Overrides,
    pub engine: Options,
}

/// A running engine, with what it runs on.
#[derive(Clone, Debug)]
pub struct Installation {
    pub engine: Engine,
    pub store: Arc<SqliteStore>,
    pub wire: Wire,
}

/// Why nothing runs. Nothing is left behind: what was opened is closed again.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("a setting makes a built-in policy impossible: {0}")]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error(transparent)]
    Engine(#[from] StartError),
}

impl Installation {
    /// Takes the data folder, brings its database to the present schema, and starts delivering what waits in it.
    pub async fn start(setup: Setup) -> Result<Self, SetupError> {
        let Setup { store, clock, entropy, encryption_key, wire, overrides, engine } = setup;
        let policies = Policies::new(&overrides)?;
        let wire = Wire::new(wire)?;
        let store = Arc::new(open(store, clock.clone()).await?);
        let parts = Parts {
            store: store.clone(),
            transport: Arc::new(wire.clone()),
            clock,
            entropy,
            vault: Vault::new(encryption_key),
            policies,
        };
        let engine = Engine::start(parts, engine).await?;
        Ok(Self { engine, store, wire })
    }
}

/// Opening reads and may migrate, on a disk that may be slow.
async fn open(options: StoreOptions, clock: Arc<dyn Clock>) -> Result<SqliteStore, OpenError> {
    let options = StoreOptions { clock: Monotonic::new(move || clock.monotonic()), ..options };
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&options)).await;
    match opened {
        Ok(opened) => opened,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime ends, and with it whoever waits for this.
        Err(_) => std::future::pending().await,
    }
}

/// Without the key.
impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("store", &self.store)
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}
