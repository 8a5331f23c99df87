//! An engine on this machine: a data folder, the network, the machine's clock and its chance. What starts
//! one, a server or a program that has it inside, says only what is to be different.

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
    /// What secrets are sealed with. `None`: the folder's own key, made at the first start.
    pub encryption_key: Option<[u8; 32]>,
    pub wire: WireOptions,
    pub overrides: Overrides,
    pub engine: Options,
}

/// A running engine, with what it runs on.
#[derive(Clone, Debug)]
pub struct Installation {
    pub engine: Engine,
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
    Folder(#[from] FolderError),
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error(transparent)]
    Engine(#[from] StartError),
}

impl Installation {
    /// Takes the data folder, brings its database to the present schema, and starts delivering what waits in it.
    pub async fn start(setup: Setup) -> Result<Self, SetupError> {
        let Setup { store, clock, entropy, encryption_key, wire, overrides, engine } = setup;
        // What can be refused without the folder is refused before it is touched.
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

/// Opening reads and may migrate, on a disk that may be slow.
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
        // The runtime ends, and with it whoever waits for this.
        Err(_) => std::future::pending().await,
    }
}

/// A database and a key that do not belong together are refused before either is changed.
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
        (Some(check), Some(key)) if !Vault::new(key).made(&check) => return Err(StartError::OtherKey.into()),
        (Some(_), None) => return Err(folder.key_missing().into()),
        _ => {}
    }
    let store = opening.finish()?;
    // After the database: a crash in between must not leave a key that looks as if a database was lost beside it.
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
