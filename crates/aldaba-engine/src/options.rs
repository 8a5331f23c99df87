use crate::scheduling::GateLimits;
use std::time::Duration;

/// Of one organization, at once, unless told otherwise. One application has half of them at most: as many as one endpoint
/// may have.
pub const REQUESTS_PER_ORIGIN: usize = 128;

/// Gates that are remembered for one organization.
pub const MAX_GATES_PER_ORGANIZATION: usize = 1_000;

/// Gates that are remembered in all.
pub const MAX_GATES: usize = 10_000;

/// The engine's limits. Everything that can grow has one.
#[derive(Clone, Debug)]
pub struct Options {
    /// Attempts that are on the wire or not yet recorded, in all.
    pub in_flight: usize,
    /// Requests of one organization at once to one origin.
    pub requests_per_origin: usize,
    /// Requests at once to one endpoint: where a lane starts, and how far it grows while answers
    /// come quickly.
    pub lane_start: usize,
    pub lane_most: usize,
    /// Waiting deliveries that one lane keeps in memory; the rest stay in the store.
    pub lane_buffer: usize,
    /// What all lanes together keep of them, in bytes; past it none keeps more than a few.
    pub lane_bytes: usize,
    /// Lanes that keep their endpoint's configuration in memory; past it, those that only wait read
    /// it again at their turn.
    pub lanes_awake: usize,
    /// Payload bytes kept in memory for waiting deliveries, in all. Past it they are read again at
    /// their turn.
    pub content_bytes: usize,
    /// How often the store is searched for due work that memory does not know of.
    pub sweep_interval: Duration,
    /// How long a lane with nothing to do stays in memory.
    pub lane_idle: Duration,
    /// The longest sleep of the dispatcher, so that a clock that was set is noticed.
    pub max_sleep: Duration,
    /// How many applications' configurations are kept in memory.
    pub tenants: usize,
    /// How many endpoints those may have together; past it they are read again.
    pub tenant_endpoints: usize,
    /// The built-in wire profile of endpoints that name none.
    pub profile: String,
    /// What the headers of the profile `branded` begin with.
    pub brand: crate::Brand,
    /// Gates that are remembered for one organization, and in all. Past either the one is forgotten whose hold has
    /// ended longest ago, else the one whose hold ends soonest.
    pub gates_per_organization: usize,
    pub gates: usize,
    /// How long a delivery may be held for an endpoint that is not sent to.
    pub held: Duration,
    /// How long an idempotency key is remembered.
    pub idempotency_kept: Duration,
    pub retention: crate::RetentionOptions,
    /// How long a clock that has leapt must run steadily to be trusted again.
    pub clock_trusted_after: Duration,
    /// How often it is noted what the clock shows.
    pub clock_record_interval: Duration,
    pub quotas: crate::Quotas,
    /// How long whoever hands in an event waits for its commit; `None`: for as long as that takes.
    pub commit_timeout: Option<Duration>,
}

impl Options {
    pub(crate) fn gate_limits(&self) -> GateLimits {
        GateLimits { per_organization: self.gates_per_organization, overall: self.gates }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            in_flight: 4096,
            requests_per_origin: REQUESTS_PER_ORIGIN,
            lane_start: 8,
            lane_most: 64,
            lane_buffer: 256,
            lane_bytes: 16 * 1024 * 1024,
            lanes_awake: 10_000,
            content_bytes: 32 * 1024 * 1024,
            sweep_interval: Duration::from_secs(30),
            lane_idle: Duration::from_secs(60),
            max_sleep: Duration::from_secs(1),
            tenants: 10_000,
            tenant_endpoints: 200_000,
            profile: "standard".into(),
            brand: crate::Brand::default(),
            gates_per_organization: MAX_GATES_PER_ORGANIZATION,
            gates: MAX_GATES,
            held: Duration::from_secs(30 * 24 * 3600),
            idempotency_kept: Duration::from_secs(24 * 3600),
            retention: crate::RetentionOptions::default(),
            clock_trusted_after: Duration::from_secs(24 * 3600),
            clock_record_interval: Duration::from_secs(60),
            quotas: crate::Quotas::default(),
            commit_timeout: None,
        }
    }
}
