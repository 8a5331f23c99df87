//! An engine on this machine: data folder, network, system clock and system randomness. The server and
//! embedding programs specify only what differs.

use crate::engine::ENCRYPTION_CHECK;
use crate::wire::{Wire, WireError, WireOptions};
use crate::{
    Clock, DataFolder, Engine, Entropy, FolderError, Options, Parts, Policies, Profiles, StartError, Vault,
};
use aldaba_delivery::OrgId;
use aldaba_delivery::PolicyError;
use aldaba_delivery::policy::Overrides;
use aldaba_store::{Monotonic, OpenError, Opening, Store, StoreOptions};
use std::fmt;
use std::sync::Arc;

/// The organization of requests that name none.
pub const DEFAULT_ORGANIZATION: &str = "org_23rb8YdGqMT0qIzpgGwdXfHirMu";

/// The default organization's id.
pub fn default_organization() -> OrgId {
    DEFAULT_ORGANIZATION.parse().expect("it is an id")
}

/// How to run an engine on this machine.
pub struct Setup {
    /// Its folder is the data folder. `clock` replaces the clock in it.
    pub store: StoreOptions,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    /// The encryption key for secrets. `None`: the folder's own key, created at the first start.
    pub encryption_key: Option<[u8; 32]>,
    pub wire: WireOptions,
    pub overrides: Overrides,
    pub engine: Options,
}

/// A running engine and its HTTP client.
#[derive(Clone, Debug)]
pub struct Installation {
    pub engine: Engine,
    pub wire: Wire,
}

/// Why the engine did not start. Everything that was opened is closed again.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("a setting makes a built-in policy invalid: {0}")]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error(transparent)]
    Engine(#[from] StartError),
}

impl Installation {
    /// Opens the data folder, migrates its database and starts delivering.
    pub async fn start(setup: Setup) -> Result<Self, SetupError> {
        let Setup { store, clock, entropy, encryption_key, wire, overrides, engine } = setup;
        // Checks everything that does not need the folder before touching it.
        let policies = Policies::new(&overrides)?;
        Profiles::new(&engine.profile, &engine.brand).map_err(StartError::from)?;
        let wire = Wire::new(wire)?;
        let (store, vault) = open(store, encryption_key, clock.clone(), entropy.clone()).await?;
        let parts = Parts { store, transport: Arc::new(wire.clone()), clock, entropy, vault, policies };
        let engine = Engine::start(parts, engine).await?;
        wire.supervise_with(engine.background().clone());
        Ok(Self { engine, wire })
    }
}

/// Opens the store off the runtime: it reads and may migrate, on a disk that may be slow.
async fn open(
    options: StoreOptions,
    key: Option<[u8; 32]>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<(Arc<dyn Store>, Vault), SetupError> {
    let options = StoreOptions { clock: Monotonic::new(move || clock.monotonic()), ..options };
    let opened = tokio::task::spawn_blocking(move || open_with_key(&options, key, &*entropy)).await;
    match opened {
        Ok(opened) => opened,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime is shutting down, and this task with it.
        Err(_) => std::future::pending().await,
    }
}

/// Refuses a database and a key that do not match before either is changed.
fn open_with_key(
    options: &StoreOptions,
    given: Option<[u8; 32]>,
    entropy: &dyn Entropy,
) -> Result<(Arc<dyn Store>, Vault), SetupError> {
    let folder = DataFolder::at(&options.folder);
    let opening = Opening::begin(options)?;
    if opening.is_new() && folder.has_encryption_key() && !options.accept_older_data {
        return Err(folder.database_missing().into());
    }
    let found = match given {
        Some(key) => Some(key),
        None => folder.existing_encryption_key()?,
    };
    match (opening.setting(ENCRYPTION_CHECK)?, found) {
        (Some(check), Some(key)) if !Vault::new(key).matches_check_value(&check) => {
            return Err(StartError::OtherKey.into());
        }
        (Some(_), None) => return Err(folder.key_missing().into()),
        _ => {}
    }
    let store = opening.finish()?;
    // Created after the database: a crash in between must not leave a key without a database, which looks
    // like a lost database.
    let key = match given {
        Some(key) => key,
        None => folder.encryption_key(entropy)?,
    };
    Ok((store, Vault::new(key)))
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
