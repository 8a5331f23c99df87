//! Who takes part in a run and what goes wrong in it, all from one seed.

mod clocks;
mod departing;
mod dispatching;
mod emphasis;
mod expunging;
mod make;
mod operators;
mod ordering;
mod payloads;
mod sources;

pub use make::EVENT_TYPES;
pub use sources::{Forgery, Naming, SourcePlan, Version, Webhook};

use crate::receiver::{Mood, Spell};
use crate::sabotage::Sabotage;
use crate::store::{CrashPoint, Faults};
use aldaba_delivery::policy::Overrides;
use aldaba_delivery::{Ordering, OrgId, Origin, Timestamp};
use aldaba_engine::{Options, Policies};
use aldaba_signature::SigningKey;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub start: Timestamp,
    /// From here on everything works.
    pub faults_end: Timestamp,
    /// By when everything must have settled.
    pub limit: Timestamp,
    /// Of the sources and of half of the tenants.
    pub org: OrgId,
    pub tenants: usize,
    pub doors: Vec<Door>,
    pub sources: Vec<SourcePlan>,
    /// Moods of whole hosts.
    pub hosts: Vec<Vec<Spell>>,
    pub orders: Vec<Order>,
    /// When the clock of the server's machine is set, in order.
    pub clock_steps: Vec<ClockStep>,
    /// The lives that end before their time; the last one, which ends when all is settled, follows.
    pub lives: Vec<LifePlan>,
    pub options: Options,
    pub overrides: Overrides,
    pub faults: Faults,
    pub sabotage: Option<Sabotage>,
}

/// An endpoint to be, and the receiver behind it. Its number is the path of its URL.
#[derive(Clone, Debug)]
pub struct Door {
    /// Those after the last tenant are sources.
    pub tenant: usize,
    pub host: usize,
    pub policy: &'static str,
    pub profile: Option<&'static str>,
    pub event_types: Vec<String>,
    pub channels: Vec<String>,
    pub filter: Option<&'static str>,
    pub throttle_rate: Option<u16>,
    pub ordering: Ordering,
    pub key: SigningKey,
    pub moods: Vec<Spell>,
    /// Made by an order in the middle of the run, not before it.
    pub late: bool,
    /// Messages wait for it while it is turned off.
    pub holds: bool,
}

/// Something that the client wants.
#[derive(Clone, Debug)]
pub struct Order {
    pub at: Timestamp,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    Send(EventPlan),
    CreateEndpoint {
        door: usize,
    },
    DeleteEndpoint {
        door: usize,
    },
    DeleteApplication {
        tenant: usize,
    },
    ChangeOrdering {
        door: usize,
        ordering: Ordering,
    },
    /// Sends again what was delivered to an endpoint, or has died.
    Replay {
        door: usize,
    },
    /// Ends what waits for the endpoints of a tenant, as far as it is not being sent.
    Cancel {
        tenant: usize,
    },
    /// Deletes the payload of what waits next for the endpoints of a tenant.
    Expunge {
        tenant: usize,
    },
    /// Manual attempts what waits for an endpoint.
    Resend {
        door: usize,
    },
    Resume {
        door: usize,
    },
    Disable {
        door: usize,
    },
    Enable {
        door: usize,
    },
    /// Those of the endpoint's origin.
    OpenGates {
        door: usize,
    },
    /// Somebody sends something to a source.
    SendWebhook(Webhook),
    ChangeSource {
        source: usize,
        version: usize,
    },
    /// Once at most for each.
    RotateToken {
        source: usize,
    },
    DeleteSource {
        source: usize,
    },
}

#[derive(Clone, Debug)]
pub struct EventPlan {
    pub number: usize,
    pub tenant: usize,
    pub event_type: &'static str,
    pub channels: Vec<String>,
    pub has_event_id: bool,
    pub has_key: bool,
    /// Two requests at once, where that is safe.
    pub twice: bool,
    /// The client asks again later although it was answered.
    pub again: bool,
    /// Nothing goes out before this moment.
    pub deliver_at: Option<Timestamp>,
    /// How long its payload is kept, if nothing of it waits.
    pub payload_kept: Option<Duration>,
    /// Bytes that the payload is filled up with.
    pub padding: usize,
    /// It is dispatched to the address of this door, and is for no endpoint.
    pub address: Option<usize>,
}

/// From this moment on the clock of the server's machine is so far off.
#[derive(Clone, Copy, Debug)]
pub struct ClockStep {
    pub at: Timestamp,
    pub offset_millis: i64,
}

#[derive(Clone, Copy, Debug)]
pub struct LifePlan {
    pub length: Duration,
    pub end: PlannedEnd,
    /// Dies here, if it comes to it before `length` is over.
    pub crash: Option<CrashPoint>,
    pub downtime: Duration,
}

#[derive(Clone, Copy, Debug)]
pub enum PlannedEnd {
    Kill,
    Stop { limit: Duration },
}

impl Scenario {
    /// Requests a second to all endpoints of a tenant together. Without the dice, so that all else is as it was
    /// before there were such rates.
    pub fn rate_of(&self, tenant: usize) -> Option<u16> {
        (tenant == 1 && tenant < self.tenants).then_some(2)
    }

    /// Whose a tenant is: every other one belongs to a second organization, which sends to the same hosts.
    pub fn org_of(&self, tenant: usize) -> OrgId {
        let second = tenant < self.tenants && tenant % 2 == 1;
        if second { OrgId::new(self.start, [8; 15]) } else { self.org }
    }

    /// The number under which a source has its doors.
    pub fn tenant_of(&self, source: usize) -> usize {
        self.tenants + source
    }

    /// The source that has its doors under this number.
    pub fn source_of(&self, tenant: usize) -> Option<usize> {
        tenant.checked_sub(self.tenants)
    }

    pub fn new(seed: u64) -> Self {
        let mut scenario = make::scenario(seed);
        emphasis::add(&mut scenario);
        ordering::add(&mut scenario);
        operators::add(&mut scenario);
        expunging::add(&mut scenario);
        payloads::add(&mut scenario);
        dispatching::add(&mut scenario);
        departing::add(&mut scenario);
        sources::add(&mut scenario);
        scenario
    }

    /// A run in which hardly anything goes wrong but the clock of the server's machine.
    pub fn with_clock_steps(seed: u64) -> Self {
        let mut scenario = Self::new(seed);
        clocks::set(&mut scenario);
        scenario
    }

    /// The same run with a bug in it.
    #[must_use]
    pub fn sabotaged(mut self, sabotage: Sabotage) -> Self {
        self.sabotage = Some(sabotage);
        self.faults.sabotage = Some(sabotage);
        self
    }

    pub fn policies(&self) -> Policies {
        Policies::new(&self.overrides).expect("the built-in policies are valid")
    }

    pub fn mood(&self, door: usize, now: Timestamp) -> Mood {
        let door = &self.doors[door];
        let spells = self.hosts[door.host].iter().chain(&door.moods);
        let mut present = spells.filter(|spell| spell.span.contains(now) && now < self.faults_end);
        present.next().map_or(Mood::Healthy, |spell| spell.mood)
    }

    /// Whether a tenant's application is deleted at some time, or the source that owns it.
    pub fn departs(&self, tenant: usize) -> bool {
        let is_its_end = |order: &Order| match order.what {
            // That of a source goes with the source alone.
            What::DeleteApplication { tenant: gone } => gone == tenant && self.source_of(tenant).is_none(),
            What::DeleteSource { source } => self.tenant_of(source) == tenant,
            _ => false,
        };
        self.orders.iter().any(is_its_end)
    }

    pub fn origin(&self, door: usize) -> Origin {
        Origin::new("https", &host(self.doors[door].host), 443)
    }
}

impl EventPlan {
    /// Whether asking again cannot make a second message.
    pub fn is_safe_to_repeat(&self) -> bool {
        self.has_event_id || self.has_key
    }
}

/// The header by which a request to a source is known again when its event goes out.
pub const LABEL: &str = "x-label";

/// The path of an endpoint's URL is the number of its door.
pub fn url(number: usize, door: &Door) -> String {
    format!("https://{}/{number}", host(door.host))
}

pub fn door_number(path: &str) -> Option<usize> {
    path.rsplit('/').next()?.parse().ok()
}

fn host(number: usize) -> String {
    format!("host-{number}.example")
}
