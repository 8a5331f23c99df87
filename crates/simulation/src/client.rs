//! The client of the server: it carries out the orders of the scenario, asks again where that is
//! safe, and remembers what it was promised.

mod knocks;
mod sources;

use crate::entropy::Dice;
use crate::log::{Opening, Resend};
use crate::process::Process;
use crate::scenario::{Door, Event, Order, Scenario, What, url};
use crate::world::World;
use aldaba_delivery::{AppId, EndpointId, Filter, MessageId, Ordering, Timestamp, WhenDisabled};
use aldaba_engine::{
    ByHand, Cancel, Cancelled, ChangeError, Directory, DispatchError, EndpointHeaders, Engine, Made,
    NewApplication, NewDispatch, NewEndpoint, NewEvent, NewReplay, NewResend, Once, ResendError, SendError,
    Sent,
};
use aldaba_store::{
    Actor, AuditEntry, Deed, DeliveriesQuery, DeliveryFilter, DeliveryList, DeliveryState, DeliveryStatus,
    DeliveryView, EndpointConfig, Error, Phase, ReplayFilter, ReplayKind, Seq, Waiting, WhichApplication,
};
use sources::KnownSource;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What the client knows. It outlives the server.
#[derive(Debug)]
pub struct Notes {
    progress: Vec<Progress>,
    endpoints: BTreeMap<usize, (AppId, EndpointId)>,
    sources: BTreeMap<usize, KnownSource>,
    /// How often each webhook was sent, and how often its key was not known.
    tries: BTreeMap<usize, (usize, usize)>,
    /// The messages that each event was accepted as.
    pub accepted: BTreeMap<usize, Vec<MessageId>>,
    /// Deliveries that the client wanted to cancel, and those of them that it was told are.
    pub to_cancel: BTreeSet<Seq>,
    pub cancelled: BTreeSet<Seq>,
    /// Messages whose payloads the client wanted to be deleted.
    pub to_expunge: BTreeSet<MessageId>,
    /// Answers that no fault explains.
    pub surprises: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Due(Timestamp),
    /// Asked, and not answered yet.
    Asked,
    /// Answered; will ask once more all the same.
    Again(Timestamp),
    Over,
}

/// What an order came to.
enum Answer {
    Done,
    /// Refused for now; nothing was kept.
    Refused,
    /// Nobody can say; only a repeatable order may be repeated.
    Unknown,
}

impl Notes {
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            progress: scenario.orders.iter().map(|order| Progress::Due(order.at)).collect(),
            endpoints: BTreeMap::new(),
            sources: BTreeMap::new(),
            tries: BTreeMap::new(),
            accepted: BTreeMap::new(),
            to_cancel: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            to_expunge: BTreeSet::new(),
            surprises: Vec::new(),
        }
    }

    pub fn all_over(&self) -> bool {
        self.progress.iter().all(|progress| *progress == Progress::Over)
    }
}

/// The client's side of one life of the server.
#[derive(Clone, Debug)]
pub struct Client {
    pub world: Arc<World>,
    pub engine: Engine,
    pub process: Arc<Process>,
}

impl Client {
    fn actor(&self) -> Arc<Actor> {
        Arc::new(Actor::command_line(self.world.scenario.org))
    }

    fn directory(&self) -> Directory {
        self.engine.directory().by(&self.actor())
    }

    fn entry(&self, action: &'static str) -> Arc<AuditEntry> {
        self.engine.entry(&self.actor(), Deed::new(action, ""))
    }

    /// Makes the tenants, the sources, and the endpoints that are there from the beginning.
    pub async fn set_up(&self) -> Result<(), ChangeError> {
        let scenario = &self.world.scenario;
        for tenant in 0..scenario.tenants {
            let application = NewApplication {
                org: scenario.org,
                uid: Some(uid(tenant)),
                name: uid(tenant),
                throttle_rate: scenario.rate_of(tenant),
                metadata: "{}".into(),
            };
            self.directory().create_application(application, None).await?;
        }
        for source in 0..scenario.sources.len() {
            self.create_source(source).await?;
        }
        for (number, door) in scenario.doors.iter().enumerate().filter(|(_, door)| !door.late) {
            self.create_endpoint(number, door).await?;
        }
        Ok(())
    }

    /// Starts a task for every order that is not over.
    pub fn start(&self) {
        let now = self.process.now();
        let mut notes = self.world.notes.lock();
        for (number, order) in self.world.scenario.orders.iter().enumerate() {
            let before = notes.progress[number];
            let next = match before {
                // The answer was lost in a crash.
                Progress::Asked if order.is_safe_to_repeat() => Progress::Due(now + Duration::from_secs(2)),
                Progress::Asked => Progress::Over,
                other => other,
            };
            notes.progress[number] = next;
            if next != Progress::Over {
                let client = self.clone();
                tokio::spawn(async move { client.carry_out(number).await });
            }
        }
    }

    async fn carry_out(&self, number: usize) {
        let order = &self.world.scenario.orders[number];
        let mut dice = Dice::of(self.world.scenario.seed ^ (number as u64) << 20, "client");
        loop {
            let progress = self.world.notes.lock().progress[number];
            let (Progress::Due(at) | Progress::Again(at)) = progress else {
                return;
            };
            self.process.sleep_until(at).await;
            if self.process.is_dead() {
                return;
            }
            self.world.notes.lock().progress[number] = Progress::Asked;
            let answer = self.ask(number, order).await;
            if self.process.is_dead() {
                return;
            }
            let now = self.process.now();
            let first = matches!(progress, Progress::Due(_));
            self.world.notes.lock().progress[number] = match answer {
                Answer::Done if first && order.asks_again() => {
                    Progress::Again(now + dice.millis(1, 2 * 3_600_000))
                }
                Answer::Done => Progress::Over,
                Answer::Refused => Progress::Due(now + dice.millis(500, 60_000)),
                Answer::Unknown if order.is_safe_to_repeat() => Progress::Due(now + dice.millis(500, 60_000)),
                Answer::Unknown => Progress::Over,
            };
        }
    }

    async fn ask(&self, number: usize, order: &Order) -> Answer {
        match &order.what {
            What::Send(event) if event.twice && event.is_safe_to_repeat() => {
                let (first, second) = tokio::join!(self.send(event), self.send(event));
                if matches!(first, Answer::Done) { second } else { first }
            }
            What::Send(event) => self.send(event).await,
            What::CreateEndpoint { door } => {
                let scenario = &self.world.scenario;
                match self.create_endpoint(*door, &scenario.doors[*door]).await {
                    Err(ChangeError::NotFound) if scenario.departs(scenario.doors[*door].tenant) => {
                        Answer::Done
                    }
                    made => self.changed(made),
                }
            }
            What::DeleteApplication { tenant } => {
                let which = self.which(*tenant);
                match self.directory().delete_application(which).await {
                    // An earlier request had done it, and its answer was lost.
                    Err(ChangeError::NotFound) => Answer::Done,
                    Err(ChangeError::OfSource(_)) if self.world.scenario.source_of(*tenant).is_some() => {
                        Answer::Done
                    }
                    // The source was deleted meanwhile.
                    Err(ChangeError::Unsettled) if self.world.scenario.departs(*tenant) => Answer::Refused,
                    deleted => self.changed(deleted),
                }
            }
            What::DeleteEndpoint { door } => self.delete_endpoint(*door).await,
            What::ChangeOrdering { door, ordering } => self.change_ordering(*door, *ordering).await,
            What::Replay { door } => self.replay(*door).await,
            What::Cancel { tenant } => match self.cancel(*tenant).await {
                Ok(()) => Answer::Done,
                Err(Error::Closed) => Answer::Unknown,
                Err(_) => Answer::Refused,
            },
            What::Expunge { tenant } => self.expunge(*tenant).await,
            What::Resend { door } => self.resend(*door).await,
            What::Resume { door } => self.resume(*door).await,
            What::Disable { door } => self.set_disabled(*door, true).await,
            What::Enable { door } => self.set_disabled(*door, false).await,
            What::OpenGates { door } => self.open_gates(*door).await,
            What::Knock(webhook) => self.knock(number, webhook).await,
            What::ChangeSource { source, version } => self.change_source(*source, *version).await,
            What::RotateToken { source } => self.rotate_token(*source).await,
            What::DeleteSource { source } => self.delete_source(*source).await,
        }
    }

    async fn send(&self, event: &Event) -> Answer {
        let name = event.number;
        let padding = ".".repeat(event.padding);
        let new = NewEvent {
            event_type: event.event_type.into(),
            payload: format!(r#"{{"event":{name},"padding":"{padding}"}}"#).into(),
            version: None,
            channels: event.channels.clone(),
            tags: Vec::new(),
            headers: Vec::new(),
            event_id: event.has_event_id.then(|| format!("event-{name}")),
            deliver_at: event.deliver_at,
            direct: None,
            source: None,
            only_for: None,
            once: if event.has_key { once("send", name) } else { None },
        };
        let which = self.which(event.tenant);
        let sent = match event.address {
            None => self.engine.send(&which, new).await,
            Some(door) => match self.engine.dispatch(&which, self.dispatch(door, new)).await {
                Ok((sent, _)) => Ok(sent),
                Err(DispatchError::Send(error)) => Err(error),
                Err(error) => {
                    self.world
                        .notes
                        .lock()
                        .surprises
                        .push(format!("event {name} was answered with `{error}`"));
                    return Answer::Done;
                }
            },
        };
        if self.process.is_dead() {
            return Answer::Unknown;
        }
        let now = self.process.now();
        self.world.log.lock().note(now, || format!("event {name}: {sent:?}"));
        let mut notes = self.world.notes.lock();
        match sent {
            Ok(Sent::New { message, .. } | Sent::Before { message }) => {
                notes.accepted.entry(name).or_default().push(message);
                Answer::Done
            }
            Err(SendError::EventIdTaken(message)) if event.has_event_id => {
                notes.accepted.entry(name).or_default().push(message);
                Answer::Done
            }
            Err(SendError::Store(Error::Busy | Error::Full | Error::Timeout) | SendError::Unsettled) => {
                Answer::Refused
            }
            Err(SendError::Store(Error::Closed)) => Answer::Unknown,
            Err(SendError::NotFound) if self.world.scenario.departs(event.tenant) => Answer::Done,
            Err(SendError::Ordered(_)) if self.world.scenario.may_refuse(event) => Answer::Done,
            Err(error) => {
                notes.surprises.push(format!("event {name} was answered with `{error}`"));
                Answer::Done
            }
        }
    }

    fn dispatch(&self, number: usize, event: NewEvent) -> NewDispatch {
        let door = &self.world.scenario.doors[number];
        NewDispatch {
            url: url(number, door),
            credentials: None,
            policy: door.policy.into(),
            profile: None,
            key: Some(door.key.clone()),
            headers: EndpointHeaders::default(),
            job: (number.is_multiple_of(2)).then(|| format!("job-{number}")),
            event,
        }
    }

    async fn create_endpoint(&self, number: usize, door: &Door) -> Result<(), ChangeError> {
        let new = self.new_endpoint(number, door, false, door.ordering);
        let which = self.which(door.tenant);
        let made = self.directory().create_endpoint(which, new, once("door", number)).await?;
        let (Made::New(endpoint) | Made::Before(endpoint)) = made;
        if !self.process.is_dead() {
            self.world.notes.lock().endpoints.insert(number, (endpoint.app, endpoint.id));
        }
        Ok(())
    }

    async fn change_ordering(&self, door: usize, ordering: Ordering) -> Answer {
        let Some((app, id)) = self.known(door) else {
            return self.not_known(door);
        };
        let current = match self.engine.store().endpoint(app, id.to_string()).await {
            Ok(Some(current)) => current,
            Ok(None) => return Answer::Done,
            Err(error) => return self.changed(Err(error.into())),
        };
        let new =
            self.new_endpoint(door, &self.world.scenario.doors[door], current.config.disabled, ordering);
        match self.directory().update_endpoint(&current, new, None, false).await {
            Err(ChangeError::NotFound | ChangeError::NotOrderable(_)) => Answer::Done,
            Err(ChangeError::Unsettled) => Answer::Refused,
            other => self.changed(other.map(drop)),
        }
    }

    fn new_endpoint(&self, number: usize, door: &Door, disabled: bool, ordering: Ordering) -> NewEndpoint {
        let config = EndpointConfig {
            disabled,
            when_disabled: if door.holds { WhenDisabled::Hold } else { WhenDisabled::Skip },
            event_types: door.event_types.clone(),
            channels: door.channels.clone(),
            filter: door
                .filter
                .map(|text| Arc::new(Filter::parse(text).expect("a scenario's filter is good"))),
            throttle_rate: door.throttle_rate,
            profile: door.profile.map(Into::into),
            ordering,
            ..EndpointConfig::new(url(number, door), door.policy)
        };
        NewEndpoint { key: Some(door.key.clone()), ..config.into() }
    }

    async fn resume(&self, door: usize) -> Answer {
        let Some((app, endpoint)) = self.known(door) else {
            return self.not_known(door);
        };
        let endpoint = match self.engine.store().endpoint(app, endpoint.to_string()).await {
            Ok(Some(endpoint)) => endpoint,
            // It was deleted meanwhile.
            Ok(None) => return Answer::Done,
            Err(error) => return self.changed(Err(error.into())),
        };
        match self.directory().resume_and_recover(&endpoint, 50, once("resume", door)).await {
            Err(ChangeError::NotFound) => Answer::Done,
            other => self.changed(other.map(drop)),
        }
    }

    async fn set_disabled(&self, number: usize, disabled: bool) -> Answer {
        let Some((app, endpoint)) = self.known(number) else {
            return self.not_known(number);
        };
        let current = match self.engine.store().endpoint(app, endpoint.to_string()).await {
            Ok(Some(current)) => current,
            // It was deleted meanwhile.
            Ok(None) => return Answer::Done,
            Err(error) => return self.changed(Err(error.into())),
        };
        let door = &self.world.scenario.doors[number];
        let new = self.new_endpoint(number, door, disabled, current.config.ordering);
        match self.directory().update_endpoint(&current, new, None, !disabled).await {
            Err(ChangeError::NotFound) => Answer::Done,
            Err(ChangeError::Unsettled) => Answer::Refused,
            other => self.changed(other.map(drop)),
        }
    }

    async fn open_gates(&self, door: usize) -> Answer {
        let origin = self.world.scenario.origin(door);
        let held = self.engine.held_hosts().await;
        let gates: Vec<_> = held
            .into_iter()
            .filter(|host| host.origin == origin)
            .map(|host| (host.origin, host.scope))
            .collect();
        let answer = self.changed(self.directory().release_gates(gates.clone()).await);
        if !self.process.is_dead() {
            // By now the lanes have heard of it.
            let at = self.process.now();
            let mut log = self.world.log.lock();
            let step = log.step();
            log.openings.push(Opening { step, at, gates });
        }
        answer
    }

    /// The application of a tenant, or of a source.
    fn which(&self, tenant: usize) -> WhichApplication {
        let scenario = &self.world.scenario;
        let key = match scenario.source_of(tenant) {
            Some(source) => self.world.notes.lock().sources[&source].app.to_string(),
            None => uid(tenant),
        };
        WhichApplication { org: scenario.org, key }
    }

    fn known(&self, door: usize) -> Option<(AppId, EndpointId)> {
        self.world.notes.lock().endpoints.get(&door).copied()
    }

    /// It is still to be made, or its tenant has left before it could be.
    fn not_known(&self, door: usize) -> Answer {
        let scenario = &self.world.scenario;
        if scenario.departs(scenario.doors[door].tenant) { Answer::Done } else { Answer::Refused }
    }

    async fn delete_endpoint(&self, door: usize) -> Answer {
        let Some((app, endpoint)) = self.known(door) else {
            return self.not_known(door);
        };
        let endpoint = match self.engine.store().endpoint(app, endpoint.to_string()).await {
            Ok(Some(endpoint)) => endpoint,
            // An earlier request had done it, and its answer was lost.
            Ok(None) => return Answer::Done,
            Err(error) => return self.changed(Err(error.into())),
        };
        match self.directory().delete_endpoint(&endpoint).await {
            // An earlier request had done it, and its answer was lost.
            Err(ChangeError::NotFound) => Answer::Done,
            other => self.changed(other),
        }
    }

    async fn replay(&self, door: usize) -> Answer {
        let Some((app, endpoint)) = self.known(door) else {
            return self.not_known(door);
        };
        let scenario = &self.world.scenario;
        let now = self.process.now();
        let filter =
            ReplayFilter { since: scenario.start, dead: true, delivered: true, ..ReplayFilter::nothing(now) };
        let kind = ReplayKind::Bulk;
        let new = NewReplay { org: scenario.org, app, endpoint, kind, filter, rate: 50 };
        let started = self.engine.replays().start(&self.actor(), new, once("replay", door)).await;
        self.changed(started.map(drop))
    }

    async fn cancel(&self, tenant: usize) -> Result<(), Error> {
        let store = self.engine.store();
        let Some(application) = store.application(self.which(tenant)).await? else {
            return Ok(());
        };
        let query = pending(application.id);
        let found = store.delivery_list(query).await?.found;
        let wanted: Vec<_> = found.iter().filter_map(|(_, view)| cancel(view)).collect();
        let seqs: Vec<_> = wanted.iter().map(|cancel| cancel.waiting.seq).collect();
        if self.process.is_dead() {
            return Err(Error::Closed);
        }
        self.world.notes.lock().to_cancel.extend(&seqs);
        let fates = self.engine.cancel(self.entry("delivery.cancel"), wanted).await?;
        if !self.process.is_dead() {
            let now = self.process.now();
            self.world.log.lock().note(now, || format!("cancel {seqs:?}: {fates:?}"));
            let done = seqs.iter().zip(fates).filter(|(_, fate)| *fate == Cancelled::Done);
            self.world.notes.lock().cancelled.extend(done.map(|(seq, _)| *seq));
        }
        Ok(())
    }

    /// The payload of what waits next, if anything does.
    async fn expunge(&self, tenant: usize) -> Answer {
        let store = self.engine.store();
        let found = async {
            let Some(application) = store.application(self.which(tenant)).await? else {
                return Ok(None);
            };
            let found = store.delivery_list(pending(application.id)).await?.found;
            Ok(found.first().map(|(_, view)| (application.id, view.status.message)))
        };
        let (app, message) = match found.await {
            Ok(Some(found)) => found,
            Ok(None) => return Answer::Done,
            Err(error) => return self.changed(Err(ChangeError::Store(error))),
        };
        if self.process.is_dead() {
            return Answer::Unknown;
        }
        self.world.notes.lock().to_expunge.insert(message);
        let expunged = self.engine.expunge_message(&self.actor(), app, message).await;
        if self.process.is_dead() {
            return Answer::Unknown;
        }
        let mut log = self.world.log.lock();
        log.note(self.process.now(), || format!("expunge {message}: {expunged:?}"));
        if expunged.is_ok() {
            let step = log.step();
            log.expunged.push((message, step));
        }
        drop(log);
        match expunged {
            // It has ended and is not kept any more.
            Err(ChangeError::NotFound) => Answer::Done,
            other => self.changed(other),
        }
    }

    /// One of those that wait for an endpoint, if there is one.
    async fn resend(&self, door: usize) -> Answer {
        let Some((app, id)) = self.known(door) else {
            return self.not_known(door);
        };
        let store = self.engine.store();
        let filter = DeliveryFilter { endpoint: Some(id), ..DeliveryFilter::default() };
        let query = DeliveriesQuery { filter, ..pending(app) };
        let (found, endpoint) = match (store.delivery_list(query).await, store.lane_endpoints(vec![id]).await)
        {
            (Ok(page), Ok(mut endpoints)) => (page.found, endpoints.pop()),
            (Err(Error::Closed), _) | (_, Err(Error::Closed)) => return Answer::Unknown,
            _ => return Answer::Refused,
        };
        let (Some((_, view)), Some(endpoint)) = (found.first(), endpoint) else {
            return Answer::Done;
        };
        let Ok(Some(message)) = store.message(app, view.status.message.to_string()).await else {
            return Answer::Refused;
        };
        if self.process.is_dead() {
            return Answer::Unknown;
        }
        let index = self.note_resend(door, id, message.id);
        let once = once("resend", index);
        let asked = NewResend { endpoint, message, audit: self.entry("message.resend"), once };
        let made = self.engine.resend(asked.clone()).await;
        if self.process.is_dead() {
            return Answer::Unknown;
        }
        {
            let mut log = self.world.log.lock();
            log.note(self.process.now(), || format!("resend: {made:?}"));
            log.resends[index].answered = Some((log.step(), made.is_ok()));
        }
        if made.is_ok() {
            self.resend_again(asked).await;
        }
        match made {
            Err(ResendError::Store(Error::Closed)) => Answer::Unknown,
            Err(ResendError::Store(_)) => Answer::Refused,
            _ => Answer::Done,
        }
    }

    /// What was answered is on disk with its key: nothing is sent for the same key again.
    async fn resend_again(&self, asked: NewResend) {
        let again = self.engine.resend(asked).await;
        if !self.process.is_dead() && !matches!(again, Ok(ByHand::Before) | Err(ResendError::Store(_))) {
            let surprise = format!("a resend that was made before was answered with {again:?}");
            self.world.notes.lock().surprises.push(surprise);
        }
    }

    fn note_resend(&self, door: usize, endpoint: EndpointId, message: MessageId) -> usize {
        let mut log = self.world.log.lock();
        let (life, asked) = (self.process.number, log.step());
        log.note(self.process.now(), || format!("resend {message} to door {door}"));
        log.resends.push(Resend { life, door, endpoint, message, asked, answered: None });
        log.resends.len() - 1
    }

    fn changed(&self, result: Result<(), ChangeError>) -> Answer {
        match result {
            Ok(()) => Answer::Done,
            Err(ChangeError::Store(Error::Closed)) => Answer::Unknown,
            Err(ChangeError::Store(_)) => Answer::Refused,
            Err(error) => {
                self.world.notes.lock().surprises.push(format!("a change was answered with `{error}`"));
                Answer::Done
            }
        }
    }
}

impl Order {
    fn is_safe_to_repeat(&self) -> bool {
        match &self.what {
            What::Send(event) => event.is_safe_to_repeat(),
            _ => true,
        }
    }

    fn asks_again(&self) -> bool {
        match &self.what {
            What::Send(event) => event.again && event.is_safe_to_repeat(),
            What::Knock(webhook) => webhook.again,
            _ => false,
        }
    }
}

fn pending(app: AppId) -> DeliveriesQuery {
    let (filter, order) = (DeliveryFilter::default(), aldaba_store::Order::Ascending);
    DeliveriesQuery {
        list: DeliveryList::Of(app, Phase::Pending),
        filter,
        from: None,
        order,
        limit: 10,
        walk: 1000,
    }
}

fn cancel(view: &DeliveryView) -> Option<Cancel> {
    let DeliveryState::Waiting { due_at } = view.status.state else { return None };
    let DeliveryStatus { seq, message, attempts, clock_start, endpoint, .. } = view.status;
    let waiting = Waiting { seq, message, due_at, attempts, clock_start };
    Some(Cancel { app: view.app, endpoint, waiting })
}

fn uid(tenant: usize) -> String {
    format!("tenant-{tenant}")
}

/// A key of its own for every event and endpoint.
fn once(kind: &str, number: usize) -> Once {
    let mut dice = Dice::of(number as u64, kind);
    let mut digest = [0; 16];
    digest.fill_with(|| dice.throw().to_le_bytes()[0]);
    Some(digest)
}
