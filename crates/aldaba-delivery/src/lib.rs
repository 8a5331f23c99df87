//! The pure core of Aldaba: the state of a delivery, and what happens to it next.
//!
//! Nothing here reads a clock, draws a random number or does IO. `now` and chance are arguments, and every
//! function returns a value that says what to do; the engine carries it out. An attempt passes through it as
//! [`Outcome`] → [`Class`] → [`Transition`] ([`Decision`]). [`Health`] and [`Gate`] consume the same class, so
//! retry, endpoint health and host control never disagree about an attempt.

pub mod alert;
mod chance;
mod class;
mod condition;
mod decision;
mod endpoint_state;
pub mod filter;
mod gate;
mod health;
mod id;
mod language;
mod operator_actions;
mod ordering;
mod outcome;
mod owner_alert;
pub mod policy;
mod profile;
mod retry_after;
mod stop_rule;
mod time;
mod transition;

pub use aldaba_api::{MAX_PAYLOAD_DEPTH, format_duration, is_too_deep, names, nearest, parse_duration};
pub use chance::Chance;
pub use class::{Class, Fault, Verdict};
pub use condition::{Condition, ConditionCause, WhenDisabled};
pub use decision::Decision;
pub use endpoint_state::{Admission, Controls, EndpointState};
pub use filter::{Filter, FilterError};
pub use gate::{Gate, GateAdmission, GateKey, GateScope, Origin};
pub use health::{Availability, Health, HealthStatus};
pub use id::{
    AlertId, ApiKeyId, AppId, AttemptId, AuditId, EndpointId, ErasureId, EventTypeId, Id, IdError, IdKind,
    MessageId, OrgId, RefusalId, ReplayId, SourceId,
};
pub use language::Language;
pub use operator_actions::TurnedOff;
pub use ordering::{OnExhausted, Ordering};
pub use outcome::{AttemptFailure, FailureKind, Outcome, ResponseHead, split_timeout};
pub use owner_alert::OwnerAlert;
pub use policy::{Policy, PolicyError, PolicySpec};
pub use profile::BUILTIN_PROFILES;
pub use retry_after::RetryAfter;
pub use stop_rule::{PendingAttempt, StopRule, first_after_stop_date};
pub use time::Timestamp;
pub use transition::{CLOCK_TOLERANCE, Delivery, Ending, Reason, SkipReason, StoredDue, Transition};
