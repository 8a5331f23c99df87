//! Background tasks: the list of all, and those that belong to no stage.

pub(crate) mod background;
mod clock_trust;
mod due_times;
mod erasures;
mod expunge;
mod operational;
mod orphans;
mod retention;
pub(crate) mod sequencing;

pub use background::Background;
pub use clock_trust::{CLOCK_SETTING, ClockRecord, ClockState, ClockTrust};
pub(crate) use clock_trust::{ClockWatch, TrustedClock};
pub(crate) use due_times::DueTimes;
pub use erasures::ErasureCount;
pub(crate) use erasures::Erasures;
pub(crate) use operational::{
    ALERT_FIRING, ALERT_RESOLVED, OperationalListeners, OperationalSender, extend, rfc3339,
};
pub use operational::{OPERATIONAL_EVENTS, management};
pub(crate) use orphans::Orphans;
pub(crate) use retention::Retention;
pub use retention::RetentionOptions;
