//! Host control: what holds back the lanes of an origin that looks down.

use crate::policy::{GateRule, Policy};
use crate::{AppId, Class, Fault, OrgId, Timestamp, Transition, Verdict};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Scheme, host and port, normalised: `https://example.com:443`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(Arc<str>);

impl Origin {
    /// `host` as a parsed URL shows it, brackets around an IPv6 address included.
    pub fn new(scheme: &str, host: &str, port: u16) -> Self {
        Self(format!("{scheme}://{host}:{port}").into())
    }

    /// An origin that was written by [`Origin::as_str`].
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whose lanes a hold binds, within the organization that the gate belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GateScope {
    /// Every lane of the organization at the origin whose policy takes part: the host itself failed.
    Host,
    /// Only this application's lanes: its path answered badly or not at all, which says nothing
    /// about other tenants.
    Application(AppId),
}

/// Names a gate. It belongs to one organization: the failures of one never hold the lanes of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GateKey {
    pub org: OrgId,
    pub origin: Origin,
    pub scope: GateScope,
}

/// The state of one gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// Failures in a row that count here.
    pub failures: u32,
    /// No request before this moment, then one probe.
    pub held_until: Option<Timestamp>,
    /// How long the present hold is.
    pub hold: Duration,
    /// The failure that a lane counts its own policy's longest hold from: the one that set the present hold, or the
    /// newest probe that failed during it.
    pub failed_at: Option<Timestamp>,
    /// When the first of the holds began that have followed each other since.
    pub since: Option<Timestamp>,
    /// A probe is on its way. It is never taken back from disk: with the process that sent the probe
    /// its answer is lost, and a gate that waited for it would never open.
    pub probing: bool,
}

/// What a gate says to a lane whose turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateAdmission {
    Open,
    /// The hold is over and nobody has probed yet.
    Probe,
    Held(Timestamp),
    /// A probe is on its way; its end will open or hold.
    Probing,
}

impl GateAdmission {
    /// Which of several gates binds a lane, and what it says: the latest end of a hold, else a probe that is on its way.
    /// Of equals the last. `None`: the lane may go, as their probe where there is one to send.
    pub fn strictest<T>(all: impl IntoIterator<Item = (T, Self)>) -> Option<(T, Self)> {
        let rank = |passage: &Self| match passage {
            Self::Held(until) => Some(Some(*until)),
            Self::Probing => Some(None),
            Self::Open | Self::Probe => None,
        };
        all.into_iter()
            .filter(|(_, passage)| rank(passage).is_some())
            .max_by_key(|(_, passage)| rank(passage))
    }

    /// Whether a request may start that was let through before. `is_probe`: it is the gate's probe.
    pub fn admits_start(self, is_probe: bool) -> bool {
        match self {
            Self::Open => true,
            Self::Probing => is_probe,
            Self::Held(_) | Self::Probe => false,
        }
    }
}

impl Gate {
    /// The gate without its probe, which ended unsent or with the process that had sent it: the next lane may claim it.
    #[must_use]
    pub fn without_probe(self) -> Self {
        Self { probing: false, ..self }
    }

    /// What of it has to survive a restart: a hold. A count of failures that led to none is not kept.
    #[must_use]
    pub fn persisted(&self) -> Self {
        if self.held_until.is_some() { self.clone() } else { Self::default() }
    }

    /// What the gate says to lanes under a policy. Where another policy has set a longer hold than theirs could
    /// ever be, they go as its probe, one at a time.
    pub fn admission(&self, policy: &Policy, now: Timestamp) -> GateAdmission {
        match (self.held_until, self.hold_for(policy, now)) {
            (None, _) => GateAdmission::Open,
            (_, Some(until)) => GateAdmission::Held(until),
            (Some(_), None) if self.probing => GateAdmission::Probing,
            (Some(_), None) => GateAdmission::Probe,
        }
    }

    /// The end of the hold for lanes under a policy, while it binds them: no longer than the policy's longest one,
    /// counted from the failure.
    fn hold_for(&self, policy: &Policy, now: Timestamp) -> Option<Timestamp> {
        let until = self.hold_at(now)?.min(self.failed_at? + policy.longest_hold());
        (until > now).then_some(until)
    }

    /// The end of the hold, while it lasts. One that ends later than a hold of its length could, or comes from a
    /// failure in the future, is from before the clock was set back, and counts as over.
    fn hold_at(&self, now: Timestamp) -> Option<Timestamp> {
        let failed = self.failed_at.is_some_and(|at| at <= now);
        self.held_until.filter(|until| failed && *until > now && *until <= now + self.hold)
    }

    /// Nothing to remember: the gate can be forgotten.
    pub fn is_clear(&self) -> bool {
        self.held_until.is_none() && self.failures == 0
    }

    /// The scopes that can concern a lane; [`Policy::uses_gate`] says which of them do.
    pub fn scopes(app: AppId) -> [GateScope; 2] {
        [GateScope::Host, GateScope::Application(app)]
    }

    /// The gate after an attempt. `probe`: this attempt was its probe. A lane whose policy takes no
    /// part in this scope leaves it as it is.
    #[must_use]
    pub fn after_attempt(
        &self,
        scope: GateScope,
        policy: &Policy,
        class: &Class,
        transition: &Transition,
        probe: bool,
        now: Timestamp,
    ) -> Self {
        let takes_part = policy.uses_gate(scope);
        if takes_part && opens(scope, class) {
            return Self::default();
        }
        let mut next = self.clone();
        next.probing &= !probe;
        // A success that came between has opened the gate; what is left of the probe is an attempt
        // like any other.
        let probe = probe && self.held_until.is_some();
        if !takes_part || !concerns(scope, class, probe) {
            // Nothing was learnt. A probe that learnt nothing leaves the gate to the next one.
            return next;
        }
        next.failures = self.failures.saturating_add(1);
        if let Some(hold) = hold(policy, transition, &next, probe, now) {
            let until = now + hold;
            if self.hold_at(now).is_none_or(|held| until > held) {
                next.hold = hold;
                next.held_until = Some(until);
                next.since = self.since.or(Some(now));
                next.failed_at = Some(now);
            } else if probe {
                // A longer policy's hold goes on; those who need not wait for its end wait for theirs anew.
                next.failed_at = Some(now);
            }
        }
        next
    }
}

fn opens(scope: GateScope, class: &Class) -> bool {
    match scope {
        GateScope::Host => class.answered() || class.fault == Fault::NoResponse,
        GateScope::Application(_) => class.verdict == Verdict::Delivered,
    }
}

fn concerns(scope: GateScope, class: &Class, probe: bool) -> bool {
    match (scope, class.fault) {
        (_, Fault::None | Fault::Forbidden | Fault::Local) => false,
        (GateScope::Host, fault) => fault == Fault::Host,
        // The host's failures have their own gate, but a probe that met one has failed.
        (GateScope::Application(_), Fault::Host) => probe,
        (GateScope::Application(_), Fault::Response | Fault::NoResponse) => true,
    }
}

fn hold(
    policy: &Policy,
    transition: &Transition,
    gate: &Gate,
    probe: bool,
    now: Timestamp,
) -> Option<Duration> {
    match policy.gate {
        GateRule::Apart => None,
        GateRule::HostFailures { in_a_row, first, longest } => {
            match gate.held_until {
                None => (gate.failures >= in_a_row).then_some(first),
                Some(_) if probe => Some(gate.hold.saturating_mul(2).clamp(first, longest)),
                // It was on its way already when the gate closed: that must not lengthen the hold.
                Some(_) => None,
            }
        }
        GateRule::DelayOver { threshold, longest } => {
            let own = match transition {
                Transition::Retry { due_at } => due_at.since(now),
                Transition::Stop { delay, .. } => *delay,
                Transition::Settle(_) => Duration::ZERO,
            };
            // A probe may be a fresh delivery with a short delay of its own; the host is no healthier
            // for that, so the hold grows as if the one before had been repeated.
            let again = if probe { gate.hold.saturating_mul(2).min(longest) } else { Duration::ZERO };
            let hold = own.max(again).min(longest);
            (probe || hold > threshold).then_some(hold)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000_000);

    #[test]
    fn the_longest_hold_binds_before_a_probe_and_what_is_open_binds_nobody() {
        let later = NOW + Duration::from_secs(1);
        let binding =
            |passages: [GateAdmission; 3]| GateAdmission::strictest(passages.into_iter().enumerate());
        let held = [GateAdmission::Probing, GateAdmission::Held(later), GateAdmission::Held(NOW)];
        assert_eq!(binding(held), Some((1, GateAdmission::Held(later))));
        let probed = [GateAdmission::Open, GateAdmission::Probing, GateAdmission::Probe];
        assert_eq!(binding(probed), Some((1, GateAdmission::Probing)));
        assert_eq!(
            binding([GateAdmission::Probing; 3]),
            Some((2, GateAdmission::Probing)),
            "of equals the last"
        );
        assert_eq!(binding([GateAdmission::Open, GateAdmission::Probe, GateAdmission::Open]), None);
    }

    #[test]
    fn after_a_restart_a_hold_is_left_and_neither_its_probe_nor_a_count_of_failures() {
        let failing = Gate { failures: 3, ..Gate::default() };
        assert_eq!(failing.persisted(), Gate::default());
        let held = Gate { held_until: Some(NOW), probing: true, ..failing };
        assert_eq!(held.persisted(), held);
        assert_eq!(held.clone().without_probe(), Gate { probing: false, ..held });
    }

    #[test]
    fn while_a_probe_is_on_its_way_only_the_probe_itself_may_start() {
        assert!(GateAdmission::Open.admits_start(false));
        assert!(GateAdmission::Probing.admits_start(true) && !GateAdmission::Probing.admits_start(false));
        assert!(
            !GateAdmission::Probe.admits_start(true),
            "the hold has ended since: somebody has to probe anew"
        );
        assert!(!GateAdmission::Held(NOW).admits_start(true));
    }
}
