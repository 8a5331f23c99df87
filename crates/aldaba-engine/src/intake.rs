//! Accepting an event: match it to its endpoints, one commit on disk, then the answer.

use crate::aside::Aside;
use crate::content::{Contents, HeldContent};
use crate::directory::{DirectoryAccess, Once};
use crate::dispatcher::{Event, Inbox, Offer};
use crate::matching::{LOOKS_AT_ONCE, looks, wanting};
use crate::patience::within;
use crate::schema::{Allowance, Schemas, Unfit};
use crate::{Clock, Entropy, EventTypes};
use aldaba_delivery::filter::Facts;
use aldaba_delivery::{AppId, EndpointId, MessageId, OrgId, SkipReason, SourceId, Timestamp};
use aldaba_store::{
    Accept, Accepted, Content, Done, Endpoint, Error, IdempotencyKey, NewDelivery, NewMessage, Quota,
    QuotaOf, Seq, Store, Subscription, Tenant, Waiting, WhichApplication,
};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How often matching is repeated when the configuration changes under it.
const MATCHINGS: usize = 16;

/// How often a refusal that no commit confirms is looked at again.
const DOUBTS: usize = 2;

/// How far ahead an event may be handed in.
const FURTHEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Bytes of payloads that are checked against schemas on the thread that has them; more would make others wait.
const CHECKED_AT_ONCE: usize = 16 << 10;

/// Deliveries that several events together may bring into one commit, but for those of the last one: others
/// wait for it.
const DELIVERIES_AT_ONCE: usize = 10_000;

/// An event as its sender hands it in.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub event_type: Arc<str>,
    /// The exact bytes that go out.
    pub payload: Bytes,
    /// Of the payload's form, where the sender says so.
    pub version: Option<Arc<str>>,
    /// Sorted, without repeats.
    pub channels: Vec<String>,
    /// Sorted, without repeats.
    pub tags: Vec<String>,
    /// By name, in lower case. They are for filters; they do not go out.
    pub headers: Vec<(String, String)>,
    pub event_id: Option<String>,
    /// Nothing goes out before this moment; one that is over means at once.
    pub deliver_at: Option<Timestamp>,
    /// The one endpoint that it is for, if that wants it; others do not get it.
    pub only_for: Option<EndpointId>,
    pub once: Once,
    /// It is dispatched to an address, and is for no endpoint.
    pub direct: Option<Direct>,
    /// It came in through a source.
    pub source: Option<FromSource>,
}

/// What an event has that came in through a source.
#[derive(Clone, Debug)]
pub struct FromSource {
    /// Headers that go out as they came.
    pub(crate) sealed_headers: Bytes,
    /// How long its id is remembered at least.
    pub(crate) event_id_kept: Duration,
}

/// Where an event goes that is for no endpoint, and what goes with it.
#[derive(Clone, Debug)]
pub struct Direct {
    pub(crate) address: Box<Endpoint>,
    /// The job whose end it tells of.
    pub(crate) job: Option<String>,
    pub(crate) sealed_headers: Option<Bytes>,
}

impl NewEvent {
    /// One with nothing but a type and a payload.
    pub fn new(event_type: &str, payload: Bytes) -> Self {
        Self {
            event_type: event_type.into(),
            payload,
            version: None,
            channels: Vec::new(),
            tags: Vec::new(),
            headers: Vec::new(),
            event_id: None,
            deliver_at: None,
            only_for: None,
            once: None,
            direct: None,
            source: None,
        }
    }

    fn content(&self) -> Arc<Content> {
        Arc::new(Content {
            event_type: self.event_type.clone(),
            payload: self.payload.clone(),
            version: self.version.clone(),
            sealed_headers: match (&self.direct, &self.source) {
                (Some(direct), _) => direct.sealed_headers.clone(),
                (None, Some(source)) => Some(source.sealed_headers.clone()),
                (None, None) => None,
            },
        })
    }

    /// What filters look at.
    fn facts(&self) -> Facts<'_> {
        Facts {
            event_type: &self.event_type,
            channels: &self.channels,
            tags: &self.tags,
            headers: &self.headers,
            payload: &self.payload,
        }
    }
}

/// An event that is safe on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    New {
        message: MessageId,
        at: Timestamp,
        /// Nothing goes out before this moment.
        deliver_at: Option<Timestamp>,
    },
    /// A former request with the same idempotency key had sent this one.
    Before { message: MessageId },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error("there is no such application")]
    NotFound,
    #[error("the application already has a message with this event id")]
    EventIdTaken(MessageId),
    #[error("the moment of delivery is more than 366 days ahead")]
    TooFarAhead,
    /// It would go to these ordered endpoints, which cannot wait for it.
    #[error("a delayed message would go to ordered endpoints")]
    Ordered(Vec<EndpointId>),
    #[error("the payload does not fit its event type")]
    Unfit(Unfit),
    /// The address names it.
    #[error("there is no policy `{0}`")]
    UnknownPolicy(String),
    #[error("there is no profile `{0}`")]
    UnknownProfile(String),
    #[error("the application's configuration keeps changing")]
    Unsettled,
    /// So many messages were sent today, as many as may be.
    #[error("{most} messages were sent today")]
    OverQuota {
        whose: QuotaOf,
        most: u64,
        at: Timestamp,
        /// When the day is over.
        until: Timestamp,
    },
    /// It takes only what comes in through its source.
    #[error("the application belongs to the source {0}, and takes only what comes in through that")]
    OfSource(SourceId),
    /// It was not refused, and may yet be accepted.
    #[error("the store takes long; what was handed in may be stored yet")]
    Late,
    #[error(transparent)]
    Store(#[from] Error),
}

pub(crate) struct Intake {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) directory: DirectoryAccess,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) inbox: Inbox,
    pub(crate) contents: Contents,
    pub(crate) event_types: EventTypes,
    pub(crate) idempotency_kept: Duration,
    pub(crate) quotas: Quotas,
    pub(crate) matching: Aside,
    pub(crate) checking: Aside,
}

/// How many messages may be sent on a day (UTC); `None`: any number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// By all applications of an organization together.
    pub organization: Option<u64>,
    pub application: Option<u64>,
}

impl Quotas {
    fn of(self, org: OrgId) -> Option<Quota> {
        let Self { organization, application } = self;
        let any = organization.is_some() || application.is_some();
        any.then_some(Quota { org, organization, application })
    }
}

impl Intake {
    /// `patience`: how long a commit is waited for.
    pub(crate) async fn send(
        &self,
        which: &WhichApplication,
        event: NewEvent,
        patience: Option<Duration>,
    ) -> Result<Sent, SendError> {
        let unfit = self.check(which, std::slice::from_ref(&event)).await.pop().flatten();
        self.send_checked(which, &event, unfit, patience).await
    }

    /// Hands in what the server itself has to say, as [`Self::send_many`] does. It counts for nobody, and no schema
    /// is asked about it.
    pub(crate) async fn send_own(
        &self,
        which: &WhichApplication,
        events: &[NewEvent],
    ) -> Result<Vec<Result<Sent, SendError>>, SendError> {
        let mut many = Many::new(events, Quotas::default(), None);
        self.settle(which, events, &mut many).await?;
        many.fill(&SendError::Unsettled);
        Ok(many.results.into_iter().flatten().collect())
    }

    /// Why an event would be refused, whatever its application is. For whoever makes that with the event.
    pub(crate) async fn refusal(&self, which: &WhichApplication, event: &NewEvent) -> Option<SendError> {
        if event.deliver_at.is_some_and(|at| at > self.clock.now() + FURTHEST) {
            return Some(SendError::TooFarAhead);
        }
        let unfit = self.check(which, std::slice::from_ref(event)).await.pop().flatten();
        unfit.map(SendError::Unfit)
    }

    /// Hands in several events of one application, in one commit unless they go to very many endpoints or its
    /// configuration changes meanwhile. What becomes of one is of no concern to the others. An error is about
    /// all: nothing was stored, unless it is [`SendError::Late`]. `patience`: how long a commit is waited for.
    pub(crate) async fn send_many(
        &self,
        which: &WhichApplication,
        events: Vec<NewEvent>,
        patience: Option<Duration>,
    ) -> Result<Vec<Result<Sent, SendError>>, SendError> {
        let mut many = Many::new(&events, self.quotas, patience);
        let unfit = self.check(which, &events).await;
        for (fits, unfit) in many.fits.iter_mut().zip(&unfit) {
            *fits = unfit.is_none();
        }
        self.settle(which, &events, &mut many).await?;
        // What cannot be accepted as it is is refused one by one, with all the care that this takes.
        let mut all = Vec::with_capacity(events.len());
        for ((event, result), unfit) in events.iter().zip(many.results).zip(unfit) {
            all.push(match result {
                Some(result) => result,
                None => self.send_checked(which, event, unfit, patience).await,
            });
        }
        Ok(all)
    }

    /// Commits what fits, until all of it has a result or the application has changed too often. An error is about
    /// all: nothing was stored, unless it is [`SendError::Late`].
    async fn settle(
        &self,
        which: &WhichApplication,
        events: &[NewEvent],
        many: &mut Many,
    ) -> Result<(), SendError> {
        // What is old is kept until the next is read: that has the most of it in common.
        let mut old = None;
        for _ in 0..MATCHINGS {
            let tenant = self.directory.tenant(which).await?.ok_or(SendError::NotFound)?;
            events.iter().try_for_each(|event| takes(&tenant, event))?;
            drop(old.take());
            match self.commit_many(&tenant, events, many).await {
                Ok(Settled::Yes) => break,
                Ok(Settled::NotYet) => {
                    self.directory.forget(which, &tenant);
                    old = Some(tenant);
                }
                Err(error) if many.results.iter().all(Option::is_none) => return Err(error),
                Err(error) => {
                    many.fill(&error);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Those that have no result yet, by one version of the application.
    async fn commit_many(
        &self,
        tenant: &Arc<Tenant>,
        events: &[NewEvent],
        many: &mut Many,
    ) -> Result<Settled, SendError> {
        let now = self.clock.now();
        let mut looked = 0;
        let mut left = (0..events.len()).filter(|place| many.is_open(*place)).collect::<Vec<_>>().into_iter();
        loop {
            let (mut places, mut batch, mut deliveries) = (Vec::new(), Vec::new(), 0);
            for place in left.by_ref() {
                let (event, content) = (&events[place], &many.contents[place]);
                let message = MessageId::new(now, self.entropy.bytes());
                let deliver_at = event.deliver_at.filter(|at| *at > now);
                let deliveries_of_it = self.match_one(tenant, event, deliver_at.unwrap_or(now)).await;
                looked += looks(tenant, event.payload.len());
                if looked > LOOKS_AT_ONCE {
                    looked = 0;
                    tokio::task::yield_now().await;
                }
                let mut accept =
                    self.accept(tenant, message, event, content, (now, deliver_at), deliveries_of_it);
                accept.quota = many.quotas.of(tenant.application.org);
                if can_wait(&accept).is_err() {
                    many.fits[place] = false;
                    continue;
                }
                deliveries += accept.deliveries.len();
                places.push((place, Sent::New { message, at: now, deliver_at }));
                batch.push((accept, content.clone()));
                if deliveries >= DELIVERIES_AT_ONCE {
                    break;
                }
            }
            if batch.is_empty() {
                return Ok(Settled::Yes);
            }
            for ((place, new), accepted) in
                places.into_iter().zip(self.commit_all(batch, many.patience).await?)
            {
                many.results[place] = Some(match accepted {
                    Accepted::New { .. } => Ok(new),
                    Accepted::Repeated { message } => Ok(Sent::Before { message }),
                    Accepted::EventIdTaken { message } => Err(SendError::EventIdTaken(message)),
                    Accepted::OverQuota(whose) => Err(self.over_quota(whose, now)),
                    Accepted::NoSuchPolicy => Err(unknown_policy(&events[place])),
                    Accepted::NoSuchProfile => Err(unknown_profile(&events[place])),
                    Accepted::Stale => return Ok(Settled::NotYet),
                });
            }
        }
    }

    async fn send_checked(
        &self,
        which: &WhichApplication,
        event: &NewEvent,
        unfit: Option<Unfit>,
        patience: Option<Duration>,
    ) -> Result<Sent, SendError> {
        let content = event.content();
        let mut doubts = DOUBTS;
        // What is old is kept until the next is read: that has the most of it in common.
        let mut old = None;
        for _ in 0..MATCHINGS {
            let tenant = self.directory.tenant(which).await?.ok_or(SendError::NotFound)?;
            takes(&tenant, event)?;
            drop(old.take());
            let now = self.clock.now();
            let message = MessageId::new(now, self.entropy.bytes());
            let deliver_at = event.deliver_at.filter(|at| *at > now);
            let times = (now, deliver_at);
            if let Some(unfit) = unfit {
                let accept = self.accept(&tenant, message, event, &content, times, Vec::new());
                return self.refuse(accept, &content, SendError::Unfit(unfit), patience).await;
            }
            let deliveries = self.match_one(&tenant, event, deliver_at.unwrap_or(now)).await;
            let mut accept = self.accept(&tenant, message, event, &content, times, deliveries);
            accept.quota = self.quotas.of(tenant.application.org);
            if let Err(refusal) = can_wait(&accept) {
                if doubts > 0 && matches!(refusal, SendError::Ordered(_)) {
                    // What is kept may be old, and no commit will say so.
                    doubts -= 1;
                    self.directory.forget(which, &tenant);
                    old = Some(tenant);
                    continue;
                }
                return self.refuse(accept, &content, refusal, patience).await;
            }
            match self.commit(accept, &content, patience).await? {
                Accepted::New { .. } => return Ok(Sent::New { message, at: now, deliver_at }),
                Accepted::Repeated { message } => return Ok(Sent::Before { message }),
                Accepted::EventIdTaken { message } => return Err(SendError::EventIdTaken(message)),
                Accepted::Stale => {
                    self.directory.forget(which, &tenant);
                    old = Some(tenant);
                }
                Accepted::OverQuota(whose) => return Err(self.over_quota(whose, now)),
                Accepted::NoSuchPolicy => return Err(unknown_policy(event)),
                Accepted::NoSuchProfile => return Err(unknown_profile(event)),
            }
        }
        Err(SendError::Unsettled)
    }

    /// What is wrong with the payloads of events, by their types. A type that nobody has described takes everything.
    /// What is quickly found out is found out at once, the rest aside, and all of it within one allowance.
    async fn check(&self, which: &WhichApplication, events: &[NewEvent]) -> Vec<Option<Unfit>> {
        let mut unfit = vec![None; events.len()];
        let checks = events.iter().enumerate().filter_map(|(place, event)| {
            let schemas = self.event_types.checked(which.org, &event.event_type)?;
            Some(Check { place, schemas, version: event.version.clone(), payload: event.payload.clone() })
        });
        let mut checks: Vec<_> = checks.collect();
        let bytes: usize = checks.iter().map(|check| check.payload.len()).sum();
        if bytes <= CHECKED_AT_ONCE {
            let (mut allowance, mut done) = (Allowance::at_once(), 0);
            for check in checks.iter().take_while(|check| check.schemas.are_ready(check.version.as_deref())) {
                let found = check.run(&mut allowance);
                if found == Some(Unfit::Unchecked) {
                    break;
                }
                unfit[check.place] = found;
                done += 1;
            }
            checks.drain(..done);
        }
        if checks.is_empty() {
            return unfit;
        }
        let aside = move || {
            let mut allowance = Allowance::of_a_request(bytes);
            let check = |check: Check| (check.place, check.run(&mut allowance));
            checks.into_iter().map(check).collect::<Vec<_>>()
        };
        for (place, found) in self.checking.run(aside).await {
            unfit[place] = found;
        }
        unfit
    }

    /// The deliveries of an event, by one version of its application; aside where that may take long.
    async fn match_one(&self, tenant: &Arc<Tenant>, event: &NewEvent, due_at: Timestamp) -> Vec<NewDelivery> {
        if looks(tenant, event.payload.len()) <= LOOKS_AT_ONCE || event.direct.is_some() {
            return deliveries(tenant, event, due_at);
        }
        let (tenant, event) = (tenant.clone(), event.clone());
        self.matching.run(move || deliveries(&tenant, &event, due_at)).await
    }

    fn accept(
        &self,
        tenant: &Tenant,
        message: MessageId,
        event: &NewEvent,
        content: &Arc<Content>,
        (now, deliver_at): (Timestamp, Option<Timestamp>),
        deliveries: Vec<NewDelivery>,
    ) -> Accept {
        Accept {
            app: tenant.application.id,
            version: tenant.version,
            message: NewMessage {
                id: message,
                content: content.clone(),
                channels: event.channels.clone(),
                tags: event.tags.clone(),
                headers: event.headers.clone(),
                event_id: event.event_id.clone(),
                event_id_until: event.source.as_ref().map(|source| now + source.event_id_kept),
                created_at: now,
                deliver_at,
                only_for: event.direct.as_ref().map(|direct| direct.address.id).or(event.only_for),
                job: event.direct.as_ref().and_then(|direct| direct.job.clone()),
            },
            deliveries,
            idempotency: event
                .once
                .map(|digest| IdempotencyKey { digest, expires_at: now + self.idempotency_kept }),
            quota: None,
            direct: event.direct.as_ref().map(|direct| direct.address.clone()),
        }
    }

    fn over_quota(&self, whose: QuotaOf, now: Timestamp) -> SendError {
        let most = match whose {
            QuotaOf::Organization => self.quotas.organization,
            QuotaOf::Application => self.quotas.application,
        };
        let (at, until) = (now, Quota::next_day(now));
        SendError::OverQuota { whose, most: most.unwrap_or_default(), at, until }
    }

    /// Whoever asks again under a key that was accepted hears of that, whatever has changed since. The store
    /// looks at the key first, and then finds that no application has this version.
    async fn refuse(
        &self,
        accept: Accept,
        content: &Arc<Content>,
        refusal: SendError,
        patience: Option<Duration>,
    ) -> Result<Sent, SendError> {
        if accept.idempotency.is_none() {
            return Err(refusal);
        }
        match self.commit(Accept { version: u64::MAX, ..accept }, content, patience).await? {
            Accepted::Repeated { message } => Ok(Sent::Before { message }),
            _ => Err(refusal),
        }
    }

    async fn commit(
        &self,
        accept: Accept,
        content: &Arc<Content>,
        patience: Option<Duration>,
    ) -> Result<Accepted, SendError> {
        let mut accepted = self.commit_all(vec![(accept, content.clone())], patience).await?;
        Ok(accepted.pop().unwrap_or(Accepted::Stale))
    }

    /// Once the commit is on disk its deliveries go straight into their lanes, then the sender hears, if that still waits.
    async fn commit_all(
        &self,
        batch: Vec<(Accept, Arc<Content>)>,
        patience: Option<Duration>,
    ) -> Result<Vec<Accepted>, SendError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let (answer, answered) = oneshot::channel();
        let inbox = self.inbox.clone();
        let news: Vec<_> = batch.iter().map(|(accept, content)| self.news(accept, content)).collect();
        let done = Done::new(move |result: Result<Vec<Accepted>, Error>| {
            if let Ok(accepted) = &result {
                for (news, accepted) in news.into_iter().zip(accepted) {
                    if let Accepted::New { first } = accepted
                        && !news.deliveries.is_empty()
                    {
                        inbox.send(news.event(*first));
                    }
                }
            }
            let _ = answer.send(result);
        });
        self.store.accept(batch.into_iter().map(|(accept, _)| accept).collect(), done);
        Ok(within(patience, answered).await?.map_err(|_| Error::Closed)??)
    }

    fn news(&self, accept: &Accept, content: &Arc<Content>) -> News {
        let now = accept.message.created_at;
        let due_at = accept.message.deliver_at.unwrap_or(now);
        News {
            app: accept.app,
            message: accept.message.id,
            due_at,
            // What waits for long is read again at its turn: the memory is for what goes out now.
            held: if due_at > now { None } else { self.contents.hold(content) },
            deliveries: accept.deliveries.iter().map(|new| (new.endpoint, new.skipped)).collect(),
        }
    }
}

/// What the address names was there a moment ago; the store does not say its name again.
fn unknown_policy(event: &NewEvent) -> SendError {
    let named = event.direct.as_ref().map(|direct| direct.address.config.policy.clone());
    SendError::UnknownPolicy(named.unwrap_or_default())
}

fn unknown_profile(event: &NewEvent) -> SendError {
    let named = event.direct.as_ref().and_then(|direct| direct.address.config.profile.clone());
    SendError::UnknownProfile(named.unwrap_or_default())
}

/// The payload of an event, and what it is to fit.
struct Check {
    /// The place of the event among others.
    place: usize,
    schemas: Arc<Schemas>,
    version: Option<Arc<str>>,
    payload: Bytes,
}

impl Check {
    fn run(&self, allowance: &mut Allowance) -> Option<Unfit> {
        self.schemas.check_within(self.version.as_deref(), &self.payload, allowance).err()
    }
}

/// What a source has taken in is told apart by its sender's ids, so that nobody else may give any there. What is for one
/// endpoint alone is an example, and has none.
fn takes(tenant: &Tenant, event: &NewEvent) -> Result<(), SendError> {
    match tenant.source {
        Some(source) if event.source.is_none() && event.only_for.is_none() => {
            Err(SendError::OfSource(source))
        }
        _ => Ok(()),
    }
}

fn deliveries(tenant: &Tenant, event: &NewEvent, due_at: Timestamp) -> Vec<NewDelivery> {
    if let Some(Direct { address, .. }) = &event.direct {
        return vec![NewDelivery { endpoint: address.id, due_at, ordered: false, skipped: None }];
    }
    let facts = event.facts();
    let is_for = |endpoint: &&Subscription| event.only_for.is_none_or(|only| only == endpoint.id);
    let delivery = |endpoint: &Subscription| NewDelivery {
        endpoint: endpoint.id,
        due_at,
        ordered: endpoint.ordered,
        skipped: (endpoint.disabled && !endpoint.holds).then_some(SkipReason::EndpointDisabled),
    };
    wanting(tenant, &facts).filter(is_for).map(delivery).collect()
}

/// How far several events have come.
struct Many {
    contents: Vec<Arc<Content>>,
    /// Whether it can be accepted, as far as that is known before.
    fits: Vec<bool>,
    results: Vec<Option<Result<Sent, SendError>>>,
    quotas: Quotas,
    /// How long a commit is waited for.
    patience: Option<Duration>,
}

impl Many {
    fn new(events: &[NewEvent], quotas: Quotas, patience: Option<Duration>) -> Self {
        Self {
            contents: events.iter().map(NewEvent::content).collect(),
            fits: vec![true; events.len()],
            results: vec![None; events.len()],
            quotas,
            patience,
        }
    }

    fn is_open(&self, place: usize) -> bool {
        self.fits[place] && self.results[place].is_none()
    }

    /// This for all whose result is not known.
    fn fill(&mut self, error: &SendError) {
        for result in &mut self.results {
            result.get_or_insert_with(|| Err(error.clone()));
        }
    }
}

/// Whether all that can be accepted is.
enum Settled {
    Yes,
    /// The application has changed.
    NotYet,
}

/// What the lanes hear of a message that is on disk.
struct News {
    app: AppId,
    message: MessageId,
    due_at: Timestamp,
    held: Option<Arc<HeldContent>>,
    deliveries: Vec<(EndpointId, Option<SkipReason>)>,
}

impl News {
    fn event(self, first: Seq) -> Event {
        let Self { app, message, due_at, held, deliveries } = self;
        let to_send = deliveries.into_iter().zip(first.0..).filter(|((_, skipped), _)| skipped.is_none());
        let offer = |((endpoint, _), seq)| Offer {
            endpoint,
            waiting: Waiting { seq: Seq(seq), message, due_at, attempts: 0, clock_start: due_at },
            content: held.clone(),
        };
        Event::Accepted(app, to_send.map(offer).collect())
    }
}

/// Whether what is to be delivered later can be. All or nothing: a message is never kept for only a part of
/// the endpoints that want it.
fn can_wait(accept: &Accept) -> Result<(), SendError> {
    let Some(deliver_at) = accept.message.deliver_at else {
        return Ok(());
    };
    if deliver_at > accept.message.created_at + FURTHEST {
        return Err(SendError::TooFarAhead);
    }
    let ordered = accept.deliveries.iter().filter(|new| new.ordered && new.skipped.is_none());
    let ordered: Vec<_> = ordered.map(|delivery| delivery.endpoint).collect();
    if ordered.is_empty() { Ok(()) } else { Err(SendError::Ordered(ordered)) }
}
