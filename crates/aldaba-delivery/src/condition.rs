use crate::{Health, HealthStatus};

/// An endpoint's health as its owner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    Active,
    /// Active, with failures since the last success.
    Degraded,
    /// Failed according to its policy.
    Failed,
    /// A delivery ended without success, and later ones may not overtake it.
    Blocked,
    /// Turned off by an operator, or gone (410).
    Disabled,
}

/// Why a condition changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionCause {
    /// The policy declared it failed after an attempt.
    Failures,
    /// The receiver responded with 410.
    Gone,
    /// A delivery of an ordered endpoint ended without success.
    Blocked,
    /// A probe succeeded.
    Recovered,
    /// An operator resumed it.
    Resumed,
    /// An operator turned it off, or on again.
    TurnedOff,
    TurnedOn,
}

/// What happens to messages for an endpoint that is turned off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenDisabled {
    /// They are recorded as skipped and never sent.
    #[default]
    Skip,
    /// They wait until the endpoint is turned on again.
    Hold,
}

impl Condition {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Degraded => "degraded",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::Disabled => "disabled",
        }
    }
}

impl ConditionCause {
    pub const ALL: [Self; 7] = [
        Self::Failures,
        Self::Gone,
        Self::Blocked,
        Self::Recovered,
        Self::Resumed,
        Self::TurnedOff,
        Self::TurnedOn,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Failures => "failures",
            Self::Gone => "gone",
            Self::Blocked => "blocked",
            Self::Recovered => "recovered",
            Self::Resumed => "resumed",
            Self::TurnedOff => "turned_off",
            Self::TurnedOn => "turned_on",
        }
    }

    /// The cause of a status that follows from an attempt.
    pub const fn of_attempt(status: HealthStatus) -> Self {
        match status {
            HealthStatus::Active => Self::Recovered,
            HealthStatus::Failed => Self::Failures,
            HealthStatus::Gone => Self::Gone,
            HealthStatus::Blocked => Self::Blocked,
        }
    }
}

impl WhenDisabled {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Hold => "hold",
        }
    }
}

impl Health {
    /// `off`: the endpoint is turned off.
    pub fn condition(&self, off: bool) -> Condition {
        match self.status {
            _ if off => Condition::Disabled,
            HealthStatus::Gone => Condition::Disabled,
            HealthStatus::Failed => Condition::Failed,
            HealthStatus::Blocked => Condition::Blocked,
            HealthStatus::Active if self.degraded() => Condition::Degraded,
            HealthStatus::Active => Condition::Active,
        }
    }

    /// The condition that the change history stores. It does not distinguish degraded from active.
    pub fn lasting_condition(&self, off: bool) -> Condition {
        match self.condition(off) {
            Condition::Degraded => Condition::Active,
            other => other,
        }
    }

    /// The condition as text.
    pub fn text(&self, off: bool) -> &'static str {
        match (self.condition(off), self.next_probe_at) {
            (Condition::Active, _) => "Active",
            (Condition::Degraded, _) => "Recent delivery failures (retrying)",
            (Condition::Failed, None) => "Webhook failed (requires manual intervention)",
            (Condition::Failed, Some(_)) => "Webhook failed (waiting for a probe to succeed)",
            (Condition::Blocked, _) => {
                "A delivery has failed for good, and later ones wait behind it (requires manual intervention)"
            }
            (Condition::Disabled, _) if off => "Turned off",
            (Condition::Disabled, _) => "Gone (the receiver answered 410)",
        }
    }
}
