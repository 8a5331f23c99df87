//! States: always a sign and a word, never a colour alone.

use crate::dashboard::texts::StateTexts;
use crate::questions::{Cause, Why};
use aldaba_delivery::Condition;
use aldaba_store::{DeliveryState, DeliveryStatus, Endpoint};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    // The worst first.
    Dead,
    Failed,
    Held,
    Retrying,
    Sending,
    Waiting,
    Off,
    Skipped,
    Delivered,
    Healthy,
}

impl State {
    /// Of a delivery, as far as its row tells.
    pub(crate) fn of(status: &DeliveryStatus) -> Self {
        match status.state {
            DeliveryState::Waiting { .. } if status.attempts == 0 => Self::Waiting,
            DeliveryState::Waiting { .. } => Self::Retrying,
            DeliveryState::Delivered { .. } => Self::Delivered,
            DeliveryState::Dead { .. } => Self::Dead,
            DeliveryState::Skipped { .. } => Self::Skipped,
        }
    }

    /// Of a delivery, with what it waits for.
    pub(crate) fn explained(status: &DeliveryStatus, why: &Why) -> Self {
        match &why.cause {
            Cause::InFlight { .. } => Self::Sending,
            Cause::EndpointDisabled
            | Cause::NeedsResume(_)
            | Cause::ProbeFirst
            | Cause::FailedUntilProbe { .. }
            | Cause::HostHeld { .. } => Self::Held,
            _ => Self::of(status),
        }
    }

    pub(crate) fn of_endpoint(endpoint: &Endpoint) -> Self {
        match endpoint.state().condition() {
            Condition::Active => Self::Healthy,
            Condition::Degraded => Self::Retrying,
            Condition::Failed | Condition::Blocked => Self::Failed,
            Condition::Disabled if endpoint.config.disabled => Self::Off,
            Condition::Disabled => Self::Failed,
        }
    }

    /// Of the parts of the style sheet; it has the colours of each.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Delivered | Self::Healthy => "delivered",
            Self::Retrying | Self::Sending => "retrying",
            Self::Dead | Self::Failed => "failed",
            Self::Held => "held",
            Self::Waiting | Self::Off | Self::Skipped => "waiting",
        }
    }

    pub(crate) fn glyph(self) -> &'static str {
        match self.class() {
            "delivered" => "●",
            "retrying" => "◐",
            "failed" => "✕",
            "held" => "‖",
            _ => "○",
        }
    }

    pub(crate) fn badge(self, t: &dyn StateTexts) -> String {
        self.badge_with(&t.state(self))
    }

    /// With words of its own.
    pub(crate) fn badge_with(self, words: &str) -> String {
        let (class, glyph, words) = (self.class(), self.glyph(), aldaba_engine::escaped(words));
        format!(
            "<span class=\"badge {class}\"><span class=\"glyph\" aria-hidden=\"true\">{glyph}</span> {words}</span>"
        )
    }

    pub(crate) fn banner(self, words: &str) -> String {
        let (class, glyph, words) = (self.class(), self.glyph(), aldaba_engine::escaped(words));
        format!(
            "<p class=\"banner {class}\" role=\"status\"><span class=\"glyph\" aria-hidden=\"true\">{glyph}</span> \
             <span>{words}</span></p>"
        )
    }
}
