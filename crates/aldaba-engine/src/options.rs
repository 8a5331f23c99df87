use crate::observing::CertificateExpiries;
use crate::scheduling::GateLimits;
use aldaba_delivery::alert::AlertRules;
use std::sync::Arc;
use std::time::Duration;

/// Requests of one organization in flight to one origin, by default. One application may have half of them, as many as one
/// endpoint.
pub const REQUESTS_PER_ORIGIN: usize = 128;

/// Gates that are kept for one organization.
pub const MAX_GATES_PER_ORGANIZATION: usize = 1_000;

/// Gates that are kept overall.
pub const MAX_GATES: usize = 10_000;

/// The limits of the engine. Everything that can grow has one.
#[derive(Clone, Debug)]
pub struct Options {
    /// Attempts in flight, overall.
    pub in_flight: usize,
    /// Requests of one organization in flight to one origin.
    pub requests_per_origin: usize,
    /// Requests in flight to one endpoint: the number that a lane starts with, and the maximum to which it grows while answers
    /// come quickly.
    pub lane_start: usize,
    pub lane_most: usize,
    /// Pending deliveries that one lane keeps in memory. The rest stay in the store.
    pub lane_buffer: usize,
    /// Bytes of all lane buffers together. Beyond it a lane buffers only a few deliveries.
    pub lane_bytes: usize,
    /// Lanes that keep their endpoint in memory. Beyond it, lanes that only wait read it again when they are selected.
    pub lanes_awake: usize,
    /// Payload bytes in memory for pending deliveries. Payloads beyond it are read again when they are sent.
    pub content_bytes: usize,
    /// How often a sweep searches the store for due work that memory does not know of.
    pub sweep_interval: Duration,
    /// How often the statistics look at what nothing counts, such as endpoints that have failed. `None`: never.
    pub store_watch_interval: Option<Duration>,
    /// How long a lane with nothing to do stays in memory.
    pub lane_idle: Duration,
    /// The longest sleep of the dispatcher, so that a changed clock is noticed.
    pub max_sleep: Duration,
    /// Applications whose configuration is cached.
    pub tenants: usize,
    /// Endpoints of those applications. Configurations beyond it are read again.
    pub tenant_endpoints: usize,
    /// The built-in wire profile of endpoints that name none.
    pub profile: String,
    /// The prefix of the headers of the profile `branded`.
    pub brand: crate::Brand,
    /// Gates that are kept for one organization, and overall. Beyond it, the gate is dropped whose hold ended first, or will end
    /// first.
    pub gates_per_organization: usize,
    pub gates: usize,
    /// Send again after a restore ([`PauseRecord`](crate::PauseRecord)).
    pub resume: bool,
    /// How long a delivery may be held for an endpoint that is not sent to.
    pub held: Duration,
    /// How long an idempotency key is remembered.
    pub idempotency_kept: Duration,
    pub retention: crate::RetentionOptions,
    /// How long a clock that was not trusted must run steadily to be trusted again.
    pub clock_trusted_after: Duration,
    /// How often the time of a trusted clock is recorded.
    pub clock_record_interval: Duration,
    pub quotas: crate::Quotas,
    pub alert_rules: Arc<AlertRules>,
    /// When certificates expire. The engine adds those of endpoints.
    pub certificates: CertificateExpiries,
    /// How often the alert rules are judged.
    pub alert_interval: Duration,
    /// How long a sender waits for a commit. `None`: as long as it takes.
    pub commit_timeout: Option<Duration>,
    pub traces: crate::TraceOptions,
    /// How owners of endpoints and the operator are told of trouble. `None`: by no mail.
    pub mail: Option<crate::MailOptions>,
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
            store_watch_interval: Some(Duration::from_secs(15)),
            lane_idle: Duration::from_secs(60),
            max_sleep: Duration::from_secs(1),
            tenants: 10_000,
            tenant_endpoints: 200_000,
            profile: "standard".into(),
            brand: crate::Brand::default(),
            gates_per_organization: MAX_GATES_PER_ORGANIZATION,
            gates: MAX_GATES,
            resume: false,
            held: Duration::from_secs(30 * 24 * 3600),
            idempotency_kept: Duration::from_secs(24 * 3600),
            retention: crate::RetentionOptions::default(),
            clock_trusted_after: Duration::from_secs(24 * 3600),
            clock_record_interval: Duration::from_secs(60),
            quotas: crate::Quotas::default(),
            alert_rules: Arc::default(),
            certificates: CertificateExpiries::default(),
            alert_interval: Duration::from_secs(15),
            commit_timeout: None,
            traces: crate::TraceOptions::default(),
            mail: None,
        }
    }
}
