use crate::endpoint::{headers_refused, key};
use crate::{Aldaba, Attempt, Endpoint, EndpointSpec, Error, Event, Message, Sent};
use aldaba_delivery::{AppId, MessageId, names};
use aldaba_engine::{
    ChangeError, CreateOutcome, Engine, KeyRotation, NewApplication, SendReceipt as Accepted,
};
use aldaba_store::{
    Application as Stored, ApplicationRef, AttemptScope, AttemptsQuery, Endpoint as StoredEndpoint, Order,
    Page,
};
use std::fmt::{self, Display};
use std::time::Duration;

/// The number of endpoints in one read.
const PAGE: usize = 250;

/// One of your customers, with endpoints and messages. It is a handle on the engine, like [`Aldaba`].
#[derive(Clone)]
pub struct Application {
    aldaba: Aldaba,
    stored: Stored,
}

impl Application {
    pub(crate) fn new(aldaba: Aldaba, stored: Stored) -> Self {
        Self { aldaba, stored }
    }

    pub(crate) fn aldaba(&self) -> &Aldaba {
        &self.aldaba
    }

    /// The id, for [`Aldaba::find_application`] and for the API of a server on the same folder.
    pub fn id(&self) -> AppId {
        self.stored.id
    }

    /// Your own name of the application.
    pub fn uid(&self) -> Option<&str> {
        self.stored.uid.as_deref()
    }

    /// The display name. Default: the `uid`.
    pub fn name(&self) -> &str {
        &self.stored.name
    }

    pub(crate) fn which(&self) -> ApplicationRef {
        ApplicationRef { org: self.stored.org, key: self.stored.id.to_string() }
    }

    /// Accepts an event, which is on disk when this returns, and delivers it to every matching endpoint. There is no timeout.
    /// If you drop the future, the event may be accepted; with an [`id`](Event::id) or an
    /// [`idempotency_key`](Event::idempotency_key) you can send it again safely.
    pub async fn send(&self, event: Event) -> Result<Sent, Error> {
        let event = event.checked(self.id(), self.aldaba.longest_payload())?;
        let (engine, which) = (self.aldaba.engine().clone(), self.which());
        self.aldaba.run(async move { Ok(sent(&engine.send(&which, event).await?)) }).await
    }

    /// Accepts several events in one commit, with a result for each. An error applies to all of them.
    pub async fn send_many(&self, events: Vec<Event>) -> Result<Vec<Result<Sent, Error>>, Error> {
        let longest = self.aldaba.longest_payload();
        let events: Vec<_> = events.into_iter().map(|event| event.checked(self.id(), longest)).collect();
        let good = events.iter().filter_map(|event| event.as_ref().ok().cloned()).collect();
        let (engine, which) = (self.aldaba.engine().clone(), self.which());
        let results = self.aldaba.run(async move { Ok(engine.send_many(&which, good).await?) }).await?;
        let mut results = results.into_iter();
        let missing = || Err(Error::Conflict("the event was not looked at".into()));
        let result = |event: Result<_, Error>| {
            event.and_then(|_| results.next().map_or_else(missing, |result| Ok(sent(&result?))))
        };
        Ok(events.into_iter().map(result).collect())
    }

    /// A message with its deliveries, by its id or your own name.
    pub async fn message(&self, key: impl Display) -> Result<Option<Message>, Error> {
        let (app, key, store) = (self.id(), key.to_string(), self.aldaba.engine().store().clone());
        let reading = async move {
            let Some(message) = store.message(app, key).await? else { return Ok(None) };
            let deliveries = store.deliveries(message.id).await?;
            let numbers = deliveries.iter().map(|delivery| delivery.seq).collect();
            let views = store.delivery_views(app, numbers).await?;
            Ok(Some(Message::new(message, views)))
        };
        self.aldaba.run(reading).await
    }

    /// The newest attempts of a message, newest first.
    pub async fn attempts(&self, message: MessageId, limit: usize) -> Result<Vec<Attempt>, Error> {
        let (app, store) = (self.id(), self.aldaba.engine().store().clone());
        let reading = async move {
            // A message of another application is not found.
            store.message(app, message.to_string()).await?.ok_or(Error::NotFound("message"))?;
            let page = Page { after: None, limit };
            let query = AttemptsQuery::all(AttemptScope::Message(message), page, Order::Descending);
            Ok(store.attempts(query).await?.items.into_iter().map(Attempt::from).collect())
        };
        self.aldaba.run(reading).await
    }

    /// Creates the endpoint with this `uid`, or changes the given fields of an existing one. For programs that declare their
    /// endpoints at every start. A secret applies only to a new endpoint; an endpoint that its policy failed stays failed.
    pub async fn put_endpoint(&self, uid: impl Into<String>, spec: EndpointSpec) -> Result<Endpoint, Error> {
        let uid = uid.into();
        if self.endpoint(&uid).await?.is_none() {
            match self.add_endpoint(spec.clone().uid(&uid)).await {
                // Another call has created it.
                Err(Error::UidTaken) => {}
                made => return made,
            }
        }
        self.update_endpoint(&uid, spec.of_one_there_is(&uid)).await
    }

    /// Adds an endpoint: another one with every call, unless its `uid` is taken. It gets events that are accepted from
    /// now on.
    pub async fn add_endpoint(&self, spec: EndpointSpec) -> Result<Endpoint, Error> {
        let new = spec.made(&self.aldaba.installation().wire.guard())?;
        let (directory, which) = (self.aldaba.directory(), self.which());
        let making = async move {
            let (CreateOutcome::Created(made) | CreateOutcome::Existing(made)) =
                directory.create_endpoint(which, new, None).await?;
            Ok(made.into())
        };
        self.aldaba.run(making).await
    }

    /// The endpoint with this id or `uid`, if it exists.
    pub async fn endpoint(&self, key: impl Display) -> Result<Option<Endpoint>, Error> {
        let (app, key, store) = (self.id(), key.to_string(), self.aldaba.engine().store().clone());
        self.aldaba.run(async move { Ok(store.endpoint(app, key).await?.map(Endpoint::from)) }).await
    }

    /// All endpoints, in the order of their creation.
    pub async fn endpoints(&self) -> Result<Vec<Endpoint>, Error> {
        let (app, store) = (self.id(), self.aldaba.engine().store().clone());
        let reading = async move {
            let mut all: Vec<Endpoint> = Vec::new();
            loop {
                let page = Page { after: all.last().map(|last| last.id), limit: PAGE };
                let found = store.endpoints(app, page, Order::Ascending).await?;
                let is_last = found.len() < PAGE;
                all.extend(found.into_iter().map(Endpoint::from));
                if is_last {
                    return Ok(all);
                }
            }
        };
        self.aldaba.run(reading).await
    }

    /// Changes the given fields. Pending deliveries use the new configuration from their next attempt. `disabled(false)`
    /// also resumes a failed endpoint.
    pub async fn update_endpoint(&self, key: impl Display, spec: EndpointSpec) -> Result<Endpoint, Error> {
        if spec.has_secret() {
            let why = "is not changed here: use `rotate_secret`".into();
            return Err(Error::Invalid { field: "secret", why });
        }
        let headers = spec.checked_headers()?;
        let guard = self.aldaba.installation().wire.guard();
        let (app, key, engine) = (self.id(), key.to_string(), self.aldaba.engine().clone());
        let directory = self.aldaba.directory();
        let changing = async move {
            let mut retry = directory.conflict_retry();
            let changed = loop {
                let current = find_endpoint(&engine, app, key.clone()).await?;
                let (config, login) = spec.laid_over(current.config.clone(), &guard)?;
                let resume = spec.turns_on();
                match directory.update_endpoint(&current, config.into(), login, resume).await {
                    Err(ChangeError::Unsettled) => retry.wait().await?,
                    changed => break changed?,
                }
            };
            if let Some(headers) = headers {
                let set = directory.set_headers(&changed, |_| Ok(headers.clone())).await?;
                set.map_err(|problems| headers_refused(&problems))?;
            }
            Ok(changed.into())
        };
        self.aldaba.run(changing).await
    }

    /// Deletes an endpoint. Its pending deliveries end.
    pub async fn delete_endpoint(&self, key: impl Display) -> Result<(), Error> {
        let (app, key, engine) = (self.id(), key.to_string(), self.aldaba.engine().clone());
        let directory = self.aldaba.directory();
        let deleting = async move {
            let endpoint = find_endpoint(&engine, app, key).await?;
            Ok(directory.delete_endpoint(&endpoint).await?)
        };
        self.aldaba.run(deleting).await
    }

    /// Resumes an endpoint that its policy failed, and sends its held deliveries. `false`: there was nothing to resume.
    /// Fails for an endpoint that is turned off: turning it on resumes it.
    pub async fn resume_endpoint(&self, key: impl Display) -> Result<bool, Error> {
        let (app, key, engine) = (self.id(), key.to_string(), self.aldaba.engine().clone());
        let directory = self.aldaba.directory();
        let resuming = async move {
            let endpoint = find_endpoint(&engine, app, key).await?;
            Ok(directory.resume_endpoint(&endpoint).await?.is_some())
        };
        self.aldaba.run(resuming).await
    }

    /// The key with which a receiver verifies signatures: the secret, or the public key of an asymmetric one.
    pub async fn secret(&self, endpoint: impl Display) -> Result<String, Error> {
        let (app, key, engine) = (self.id(), endpoint.to_string(), self.aldaba.engine().clone());
        let reading = async move {
            let endpoint = find_endpoint(&engine, app, key).await?;
            Ok(engine.directory().shown_secret(&endpoint)?)
        };
        self.aldaba.run(reading).await
    }

    /// Replaces the secret; a new one is generated if none is given. The former secret also signs for the time `grace`.
    /// Returns the key for receivers.
    pub async fn rotate_secret(
        &self,
        endpoint: impl Display,
        secret: Option<&str>,
        grace: Duration,
    ) -> Result<String, Error> {
        let rotation = KeyRotation { key: secret.map(key).transpose()?, grace };
        let (app, key, engine) = (self.id(), endpoint.to_string(), self.aldaba.engine().clone());
        let directory = self.aldaba.directory();
        let rotating = async move {
            let endpoint = find_endpoint(&engine, app, key).await?;
            Ok(directory.rotate_key(&endpoint, rotation, None).await?)
        };
        self.aldaba.run(rotating).await
    }

    /// Sets the display name.
    pub async fn rename(&mut self, name: impl Into<String>) -> Result<(), Error> {
        let name = name.into();
        if name.is_empty() {
            return Err(Error::Invalid { field: "name", why: "must have at least one character".into() });
        }
        names::text(&name, Stored::MAX_NAME_BYTES).map_err(Error::invalid("name"))?;
        self.change(move |new| new.name.clone_from(&name)).await
    }

    /// Sets the maximum number of requests per second to all its endpoints together; `None`: unlimited.
    pub async fn set_throttle_rate(&mut self, rate: Option<u16>) -> Result<(), Error> {
        if rate == Some(0) {
            let why = "must be at least 1; `None` for any number".into();
            return Err(Error::Invalid { field: "throttle_rate", why });
        }
        self.change(move |new| new.throttle_rate = rate).await
    }

    async fn change(&mut self, change: impl Fn(&mut NewApplication) + Send + 'static) -> Result<(), Error> {
        let (engine, directory, which) =
            (self.aldaba.engine().clone(), self.aldaba.directory(), self.which());
        let changing = async move {
            let mut retry = directory.conflict_retry();
            loop {
                let found = engine.store().application(which.clone()).await?;
                let current = found.ok_or(Error::NotFound("application"))?;
                let Stored { org, uid, name, throttle_rate, metadata, .. } = current.clone();
                let mut new = NewApplication { org, uid, name, throttle_rate, metadata };
                change(&mut new);
                match directory.update_application(&current, new).await {
                    Err(ChangeError::Unsettled) => retry.wait().await?,
                    changed => return Ok(changed?),
                }
            }
        };
        self.stored = self.aldaba.run(changing).await?;
        Ok(())
    }

    /// Deletes the application with its endpoints. Their pending deliveries end.
    pub async fn delete(self) -> Result<(), Error> {
        let (directory, which) = (self.aldaba.directory(), self.which());
        self.aldaba.run(async move { Ok(directory.delete_application(which).await?) }).await
    }
}

pub(crate) async fn find_endpoint(engine: &Engine, app: AppId, key: String) -> Result<StoredEndpoint, Error> {
    engine.store().endpoint(app, key).await?.ok_or(Error::NotFound("endpoint"))
}

pub(crate) fn sent(accepted: &Accepted) -> Sent {
    match accepted {
        Accepted::New { message, .. } => Sent { id: *message, is_new: true },
        Accepted::Repeated { message } => Sent { id: *message, is_new: false },
    }
}

impl fmt::Debug for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Application")
            .field("id", &self.id())
            .field("uid", &self.uid())
            .finish_non_exhaustive()
    }
}
