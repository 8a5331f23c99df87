//! The client of the server: it carries out the orders of the scenario, asks again where that is
//! safe, and remembers what it was promised.

mod endpoints;
mod events;
mod inbound;
mod notes;
mod operators;
mod resends;
mod sources;
mod tokens;
mod waits;

pub use notes::Notes;

use crate::entropy::Dice;
use crate::process::Process;
use crate::scenario::{Order, What};
use crate::world::World;
use aldaba_engine::{ChangeError, Directory, Engine, IdempotencyDigest, NewApplication};
use aldaba_store::{Actor, ApplicationRef, AuditAction, AuditEntry, Error};
use notes::Progress;
use std::sync::Arc;
use std::time::Duration;

/// What an order came to.
enum OrderOutcome {
    Done,
    /// Refused for now; nothing was kept.
    Refused,
    /// Nobody can say; only a repeatable order may be repeated.
    Unknown,
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
        self.engine.entry(&self.actor(), AuditAction::new(action, ""))
    }

    /// Makes the tenants, the sources, and the endpoints that are there from the beginning.
    pub async fn set_up(&self) -> Result<(), ChangeError> {
        let scenario = &self.world.scenario;
        for tenant in 0..scenario.tenants {
            let application = NewApplication {
                org: scenario.org_of(tenant),
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
                OrderOutcome::Done if first && order.asks_again() => {
                    Progress::Again(now + dice.millis(1, 2 * 3_600_000))
                }
                OrderOutcome::Done => Progress::Over,
                OrderOutcome::Refused => Progress::Due(now + dice.millis(500, 60_000)),
                OrderOutcome::Unknown if order.is_safe_to_repeat() => {
                    Progress::Due(now + dice.millis(500, 60_000))
                }
                OrderOutcome::Unknown => Progress::Over,
            };
        }
    }

    async fn ask(&self, number: usize, order: &Order) -> OrderOutcome {
        match &order.what {
            What::Send(event) if event.twice && event.is_safe_to_repeat() => {
                let (first, second) = tokio::join!(self.send(event), self.send(event));
                if matches!(first, OrderOutcome::Done) { second } else { first }
            }
            What::Send(event) => self.send(event).await,
            What::CreateEndpoint { door } => {
                let scenario = &self.world.scenario;
                match self.create_endpoint(*door, &scenario.doors[*door]).await {
                    Err(ChangeError::NotFound) if scenario.departs(scenario.doors[*door].tenant) => {
                        OrderOutcome::Done
                    }
                    made => self.changed(made),
                }
            }
            What::DeleteApplication { tenant } => {
                let which = self.which(*tenant);
                match self.directory().delete_application(which).await {
                    // An earlier request had done it, and its answer was lost.
                    Err(ChangeError::NotFound) => OrderOutcome::Done,
                    Err(ChangeError::OfSource(_)) if self.world.scenario.source_of(*tenant).is_some() => {
                        OrderOutcome::Done
                    }
                    // The source was deleted meanwhile.
                    Err(ChangeError::Unsettled) if self.world.scenario.departs(*tenant) => {
                        OrderOutcome::Refused
                    }
                    deleted => self.changed(deleted),
                }
            }
            What::DeleteEndpoint { door } => either(self.delete_endpoint(*door).await),
            What::ChangeOrdering { door, ordering } => either(self.change_ordering(*door, *ordering).await),
            What::Replay { door } => self.replay(*door).await,
            What::Cancel { tenant } => match self.cancel(*tenant).await {
                Ok(()) => OrderOutcome::Done,
                Err(Error::Closed) => OrderOutcome::Unknown,
                Err(_) => OrderOutcome::Refused,
            },
            What::Expunge { tenant } => self.expunge(*tenant).await,
            What::Resend { door } => self.resend(*door).await,
            What::Resume { door } => either(self.resume(*door).await),
            What::Disable { door } => either(self.set_disabled(*door, true).await),
            What::Enable { door } => either(self.set_disabled(*door, false).await),
            What::OpenGates { door } => self.open_gates(*door).await,
            What::SendWebhook(webhook) => self.send_webhook(number, webhook).await,
            What::ChangeSource { source, version } => either(self.change_source(*source, *version).await),
            What::RotateToken { source } => either(self.rotate_token(*source).await),
            What::DeleteSource { source } => either(self.delete_source(*source).await),
        }
    }

    /// The application of a tenant, or of a source.
    fn which(&self, tenant: usize) -> ApplicationRef {
        let scenario = &self.world.scenario;
        let key = match scenario.source_of(tenant) {
            Some(source) => self.world.notes.lock().sources[&source].app.to_string(),
            None => uid(tenant),
        };
        ApplicationRef { org: scenario.org_of(tenant), key }
    }

    fn changed(&self, result: Result<(), ChangeError>) -> OrderOutcome {
        match result {
            Ok(()) => OrderOutcome::Done,
            Err(ChangeError::Store(Error::Closed)) => OrderOutcome::Unknown,
            Err(ChangeError::Store(_)) => OrderOutcome::Refused,
            Err(error) => {
                self.world.notes.lock().surprises.push(format!("a change was answered with `{error}`"));
                OrderOutcome::Done
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
            What::SendWebhook(webhook) => webhook.again,
            _ => false,
        }
    }
}

/// An answer, whether it came early or at the end.
fn either(answer: Result<OrderOutcome, OrderOutcome>) -> OrderOutcome {
    answer.unwrap_or_else(|answer| answer)
}

fn uid(tenant: usize) -> String {
    format!("tenant-{tenant}")
}

/// A key of its own for every event and endpoint.
fn once(kind: &str, number: usize) -> IdempotencyDigest {
    let mut dice = Dice::of(number as u64, kind);
    let mut digest = [0; 16];
    digest.fill_with(|| dice.throw().to_le_bytes()[0]);
    Some(digest.into())
}
