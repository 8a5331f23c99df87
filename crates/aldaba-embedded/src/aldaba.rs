use crate::running::Running;
use crate::{Application, Builder, Error, Leftover};
use aldaba_delivery::{AppId, OrgId, names};
use aldaba_engine::{
    ChangeError, CreateOutcome, Directory, Engine, Installation, NewApplication, default_organization,
};
use aldaba_store::{Actor, Application as Stored, ApplicationRef, Order, Page};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, mem};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// An engine inside this program. Clones are handles on the same engine, and may be used from any thread and any runtime.
///
/// When the last handle is dropped (an [`Application`] is one too), the engine stops. Accepted messages are on disk and
/// are sent after the next start; requests in flight are cancelled and sent again then. The drop waits for the disk until
/// the folder is free. [`shutdown`](Self::shutdown) lets requests in flight finish.
#[derive(Clone)]
pub struct Aldaba(Arc<SharedState>);

struct SharedState {
    engine: Engine,
    installation: Installation,
    handle: Handle,
    org: OrgId,
    actor: Arc<Actor>,
    longest_payload: usize,
    state: Mutex<RunState>,
}

enum RunState {
    Running(Running),
    /// The engine is shutting down, or has shut down: the result, once it is known.
    Ending(watch::Receiver<Option<Leftover>>),
}

impl Aldaba {
    /// A builder. Every option except the data folder has a default.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(
        installation: Installation,
        running: Running,
        handle: Handle,
        longest_payload: usize,
    ) -> Self {
        let org = default_organization();
        Self(Arc::new(SharedState {
            engine: installation.engine.clone(),
            installation,
            handle,
            org,
            actor: Arc::new(Actor::program(org)),
            longest_payload,
            state: Mutex::new(RunState::Running(running)),
        }))
    }

    /// The application with this name, created if it does not exist: one of your customers. The name is its `uid`, or the
    /// id of an existing application.
    pub async fn application(&self, uid: impl Into<String>) -> Result<Application, Error> {
        let uid = uid.into();
        if let Some(found) = self.find_application(uid.clone()).await? {
            return Ok(found);
        }
        if uid.parse::<AppId>().is_ok() {
            return Err(Error::NotFound("application"));
        }
        names::uid(&uid, "app_").map_err(Error::invalid("uid"))?;
        let new = NewApplication {
            org: self.0.org,
            uid: Some(uid.clone()),
            name: uid.clone(),
            throttle_rate: None,
            metadata: "{}".into(),
        };
        let directory = self.directory();
        let made = self.run(async move {
            match directory.create_application(new, None).await {
                Ok(CreateOutcome::Created(made) | CreateOutcome::Existing(made)) => Ok(Some(made)),
                // Another call has created it.
                Err(ChangeError::UidTaken) => Ok(None),
                Err(error) => Err(error.into()),
            }
        });
        match made.await? {
            Some(made) => Ok(Application::new(self.clone(), made)),
            None => self.find_application(uid).await?.ok_or(Error::NotFound("application")),
        }
    }

    /// The application with this `uid` or id, if it exists.
    pub async fn find_application(&self, key: impl Into<String>) -> Result<Option<Application>, Error> {
        let which = ApplicationRef { org: self.0.org, key: key.into() };
        let store = self.engine().store().clone();
        let found = self.run(async move { Ok(store.application(which).await?) }).await?;
        Ok(found.map(|found| Application::new(self.clone(), found)))
    }

    /// Lists up to `limit` applications in the order of their creation, after the given one.
    pub async fn applications(&self, after: Option<AppId>, limit: usize) -> Result<Vec<Application>, Error> {
        let (store, org) = (self.engine().store().clone(), self.0.org);
        let page = Page { after, limit };
        let found: Vec<Stored> =
            self.run(async move { Ok(store.applications(org, page, Order::Ascending).await?) }).await?;
        Ok(found.into_iter().map(|found| Application::new(self.clone(), found)).collect())
    }

    /// The number of deliveries in flight: sent and not yet recorded.
    pub async fn in_flight(&self) -> usize {
        let engine = self.engine().clone();
        self.run(async move { Ok(engine.in_flight().await) }).await.unwrap_or(0)
    }

    /// The number of pending deliveries, for a first attempt or a retry.
    pub async fn waiting(&self) -> Result<u64, Error> {
        let store = self.engine().store().clone();
        self.run(async move { Ok(store.waiting().await?) }).await
    }

    /// Resolves with the reason if the engine has failed: the disk failed, or a bug ended it. Accepted messages are not
    /// lost; drop the engine and start another.
    pub async fn failed(&self) -> String {
        tokio::select! {
            why = self.engine().store().failed() => why,
            () = self.engine().failed() => "a bug: delivering has ended".to_owned(),
        }
    }

    /// Shuts down: accepts and starts nothing more, and waits up to `limit` for requests in flight. Then writes everything,
    /// for up to 2 s more. Returns how many requests were still in flight, and whether the disk was too slow, so that the data
    /// folder is still in use.
    ///
    /// All other handles get [`Error::Stopped`] from now on. A second call waits for the first and returns its result.
    /// Dropping the future does not stop the shutdown.
    pub async fn shutdown(&self, limit: Duration) -> Leftover {
        let mut ended = self.ending(limit);
        // Without a result there was no thread for the shutdown.
        ended.wait_for(Option::is_some).await.ok().and_then(|left| *left).unwrap_or_default()
    }

    fn ending(&self, limit: Duration) -> watch::Receiver<Option<Leftover>> {
        let mut state = self.0.state.lock();
        if let RunState::Ending(ended) = &*state {
            return ended.clone();
        }
        let (tell, ended) = watch::channel(None);
        if let RunState::Running(running) = mem::replace(&mut *state, RunState::Ending(ended.clone())) {
            running.shut_down(limit, tell);
        }
        ended
    }

    /// Runs a future on the engine's threads, where its timers and sockets are. It continues if nobody waits.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        match self.0.handle.spawn(task).await {
            Ok(result) => result,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(Error::Stopped),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub(crate) fn installation(&self) -> &Installation {
        &self.0.installation
    }

    /// The directory, with the program as the actor.
    pub(crate) fn directory(&self) -> Directory {
        self.engine().directory().by(&self.0.actor)
    }

    pub(crate) fn actor(&self) -> &Arc<Actor> {
        &self.0.actor
    }

    pub(crate) fn longest_payload(&self) -> usize {
        self.0.longest_payload
    }
}

impl fmt::Debug for Aldaba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running = matches!(*self.0.state.lock(), RunState::Running(_));
        f.debug_struct("Aldaba").field("running", &running).finish_non_exhaustive()
    }
}
