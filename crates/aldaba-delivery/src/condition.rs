use crate::{Health, HealthStatus};

/// An endpoint's health as its owner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    Active,
    /// Active, with failures since the last success.
    Degraded,
    /// Given up by its policy.
    Failed,
    /// A delivery has died, and the others may not overtake it.
    Blocked,
    /// Turned off by its operator, or gone (410).
    Disabled,
}

/// Why a condition changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionCause {
    /// The policy gave it up after a failed attempt.
    Failures,
    /// The receiver said that it is gone.
    Gone,
    /// A delivery of an ordered endpoint has died.
    Blocked,
    /// A probe was answered well.
    Recovered,
    /// Someone resumed it.
    Resumed,
    /// Its operator turned it off, or on again.
    TurnedOff,
    TurnedOn,
}

/// What becomes of messages for an endpoint that its operator has turned off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenDisabled {
    /// They are written down as skipped, and not sent.
    #[default]
    Skip,
    /// They wait until it is turned on again.
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

    /// Why an attempt has led to this status.
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
    /// `off`: its operator has turned the endpoint off.
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

    /// The condition in a change that is kept: whether there are failures is no change of it.
    pub fn lasting_condition(&self, off: bool) -> Condition {
        match self.condition(off) {
            Condition::Degraded => Condition::Active,
            other => other,
        }
    }

    /// The condition in words.
    pub fn text(&self, off: bool) -> &'static str {
        match (self.condition(off), self.next_probe_at) {
            (Condition::Active, _) => "Active",
            (Condition::Degraded, _) => "Recent delivery failures (retrying)",
            (Condition::Failed, None) => "Webhook failed (requires manual intervention)",
            (Condition::Failed, Some(_)) => "Webhook failed (waiting for a probe to succeed)",
            (Condition::Blocked, _) => {
                "A message has died, and the others must not overtake it (requires manual intervention)"
            }
            (Condition::Disabled, _) if off => "Turned off",
            (Condition::Disabled, _) => "Gone (the receiver answered 410)",
        }
    }
}
