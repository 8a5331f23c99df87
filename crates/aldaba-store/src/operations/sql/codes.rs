//! The numbers that stand for names in the tables. A number that was released keeps its meaning.

use crate::operations::column::{Column, Parameter, unknown};
use crate::operations::transaction::{Result, Value};
use crate::{ActorKind, DispatchKind, ErasureState, KeyScope, ReplayKind, ReplayState, Trigger};
use aldaba_delivery::{
    Condition, ConditionCause, FailureKind, HealthStatus, OnExhausted, Ordering, Reason, SkipReason,
    WhenDisabled,
};

/// A name that is stored as a number.
pub(crate) trait Code: Sized {
    fn code(self) -> i64;
    fn from_code(code: i64) -> Result<Self>;
}

macro_rules! codes {
    ($($type:ident: $what:literal { $($name:ident = $code:literal),+ $(,)? })+) => {$(
        impl Code for $type {
            fn code(self) -> i64 {
                match self {
                    $(Self::$name => $code,)+
                }
            }

            fn from_code(code: i64) -> Result<Self> {
                match code {
                    $($code => Ok(Self::$name),)+
                    _ => Err(unknown($what, code)),
                }
            }
        }

        code_columns!($type);
    )+};
}

macro_rules! code_columns {
    ($type:ident) => {
        impl Parameter for $type {
            fn value(&self) -> Value<'_> {
                Value::Integer(self.code())
            }
        }

        impl Column for $type {
            fn read(value: Value<'_>) -> Result<Self> {
                Self::from_code(i64::read(value)?)
            }
        }
    };
}

codes! {
    Reason: "reason of a dead delivery" {
        Exhausted = 1, Rejected = 2, StopDate = 3, EndpointGone = 4, TargetForbidden = 5, Cancelled = 6,
        Expired = 7, PayloadDeleted = 8,
    }
    FailureKind: "kind of failure" {
        Dns = 1, Connect = 2, ConnectTimeout = 3, Tls = 4, Timeout = 5, Broken = 6, Malformed = 7,
        TooManyRedirects = 8, TargetForbidden = 9, Internal = 10, Unsent = 11,
    }
    HealthStatus: "health of an endpoint" { Active = 0, Failed = 1, Gone = 2, Blocked = 3 }
    DispatchKind: "kind of a dispatched delivery" { ByAddress = 1, AsJob = 2 }
    ReplayKind: "kind of a replay" { Recover = 0, Missing = 1, Bulk = 2 }
    // An index of the schema names the number of `Running`.
    ReplayState: "state of a replay" { Running = 0, Finished = 1, Cancelled = 2, EndpointGone = 3, TooMany = 4 }
    // So do indexes of this one.
    ErasureState: "state of an erasure" { Running = 0, Finished = 1 }
    Condition: "condition of an endpoint" { Active = 0, Failed = 1, Disabled = 2, Degraded = 3, Blocked = 4 }
    ConditionCause: "cause of a change of health" {
        Failures = 1, Gone = 2, Recovered = 3, Resumed = 4, TurnedOff = 5, TurnedOn = 6, Blocked = 7,
    }
    WhenDisabled: "rule for disabled endpoints" { Skip = 0, Hold = 1 }
    SkipReason: "reason of a skipped delivery" { EndpointDisabled = 1 }
    KeyScope: "scope of a key" { Admin = 0, Send = 1, Read = 2 }
    ActorKind: "kind of an actor" { Key = 0, OrganizationToken = 1, PortalToken = 2, CommandLine = 3, Program = 4 }
    Trigger: "trigger of an attempt" { Scheduled = 0, Manual = 1, Replay = 2 }
    // The partial indexes of the schema name the number of `Waiting`.
    StoredState: "state of a delivery" { Waiting = 0, Delivered = 1, Dead = 2, Skipped = 3 }
}

impl Code for Ordering {
    fn code(self) -> i64 {
        match self {
            Self::None => 0,
            Self::Fifo(OnExhausted::Skip) => 1,
            Self::Fifo(OnExhausted::Block) => 2,
        }
    }

    fn from_code(code: i64) -> Result<Self> {
        match code {
            0 => Ok(Self::None),
            1 => Ok(Self::Fifo(OnExhausted::Skip)),
            2 => Ok(Self::Fifo(OnExhausted::Block)),
            _ => Err(unknown("ordering of an endpoint", code)),
        }
    }
}

code_columns!(Ordering);

/// The states of a delivery, without what belongs to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredState {
    Waiting,
    Delivered,
    Dead,
    Skipped,
}
