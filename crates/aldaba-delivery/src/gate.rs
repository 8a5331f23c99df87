//! Host control: gates hold back the lanes of an origin that looks down.

use crate::policy::{GateRule, Policy};
use crate::{AppId, Class, Fault, OrgId, Timestamp, Transition, Verdict};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Scheme, host and port, normalised: `https://example.com:443`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(Arc<str>);

impl Origin {
    /// `host` as a parsed URL writes it, with brackets around an IPv6 address.
    pub fn new(scheme: &str, host: &str, port: u16) -> Self {
        Self(format!("{scheme}://{host}:{port}").into())
    }

    /// Reads an origin written by [`Origin::as_str`].
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

/// Which lanes a hold binds, within the gate's organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GateScope {
    /// Every lane of the organization at the origin whose policy uses gates: the host failed.
    Host,
    /// Only this application's lanes: its path failed or did not respond, which says nothing about other
    /// tenants.
    Application(AppId),
}

/// Identifies a gate. It belongs to one organization: failures of one organization never hold another's lanes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GateKey {
    pub org: OrgId,
    pub origin: Origin,
    pub scope: GateScope,
}

/// The state of one gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// Consecutive failures that count for this gate.
    pub failures: u32,
    /// No request before this moment; then one probe.
    pub held_until: Option<Timestamp>,
    /// The length of the current hold.
    pub hold: Duration,
    /// The failure that a lane counts its policy's longest hold from: it set the current hold, or is its newest
    /// failed probe.
    pub failed_at: Option<Timestamp>,
    /// When the current series of holds began.
    pub since: Option<Timestamp>,
    /// A probe is in flight. This is never loaded from disk: the probe's result is lost with its process, and a
    /// gate that waited for it would never open.
    pub probing: bool,
}

/// The decision of a gate on a lane that the scheduler selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateAdmission {
    Open,
    /// The hold is over, and no probe is in flight.
    Probe,
    Held(Timestamp),
    /// A probe is in flight; its result opens the gate or holds again.
    Probing,
}

impl GateAdmission {
    /// Finds the gate that binds a lane: the latest end of a hold, else a probe in flight; of equals the last.
    /// `None`: the lane may send, as their probe if one is needed.
    pub fn strictest<T>(all: impl IntoIterator<Item = (T, Self)>) -> Option<(T, Self)> {
        let rank = |admission: &Self| match admission {
            Self::Held(until) => Some(Some(*until)),
            Self::Probing => Some(None),
            Self::Open | Self::Probe => None,
        };
        all.into_iter()
            .filter(|(_, admission)| rank(admission).is_some())
            .max_by_key(|(_, admission)| rank(admission))
    }

    /// Whether an admitted request may still start. `is_probe`: it is the gate's probe.
    pub fn admits_start(self, is_probe: bool) -> bool {
        match self {
            Self::Open => true,
            Self::Probing => is_probe,
            Self::Held(_) | Self::Probe => false,
        }
    }
}

impl Gate {
    /// The gate without its probe, which ended unsent or with its process. The next lane may probe.
    #[must_use]
    pub fn without_probe(self) -> Self {
        Self { probing: false, ..self }
    }

    /// The part that survives a restart: a hold. A failure count without a hold is dropped.
    #[must_use]
    pub fn persisted(&self) -> Self {
        if self.held_until.is_some() { self.clone() } else { Self::default() }
    }

    /// Decides for lanes under a policy. If another policy set a longer hold than theirs allows, they probe,
    /// one at a time.
    pub fn admission(&self, policy: &Policy, now: Timestamp) -> GateAdmission {
        match (self.held_until, self.hold_for(policy, now)) {
            (None, _) => GateAdmission::Open,
            (_, Some(until)) => GateAdmission::Held(until),
            (Some(_), None) if self.probing => GateAdmission::Probing,
            (Some(_), None) => GateAdmission::Probe,
        }
    }

    /// The end of the hold for lanes under a policy, while it binds them: at most the policy's longest hold
    /// after the failure.
    fn hold_for(&self, policy: &Policy, now: Timestamp) -> Option<Timestamp> {
        let until = self.hold_at(now)?.min(self.failed_at? + policy.longest_hold());
        (until > now).then_some(until)
    }

    /// The end of the hold, while it lasts. A hold that ends later than its length allows, or began in the
    /// future, predates a clock change and counts as over.
    fn hold_at(&self, now: Timestamp) -> Option<Timestamp> {
        let failed = self.failed_at.is_some_and(|at| at <= now);
        self.held_until.filter(|until| failed && *until > now && *until <= now + self.hold)
    }

    /// Whether the gate holds no state and can be dropped.
    pub fn is_clear(&self) -> bool {
        self.held_until.is_none() && self.failures == 0
    }

    /// The scopes that may apply to a lane; [`Policy::uses_gate`] says which do.
    pub fn scopes(app: AppId) -> [GateScope; 2] {
        [GateScope::Host, GateScope::Application(app)]
    }

    /// The gate after an attempt. `probe`: the attempt was its probe. A policy that does not use this scope
    /// changes nothing.
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
        let applies = policy.uses_gate(scope);
        if applies && opens(scope, class) {
            return Self::default();
        }
        let mut next = self.clone();
        next.probing &= !probe;
        // A success in between has opened the gate, so this probe counts as an ordinary attempt.
        let probe = probe && self.held_until.is_some();
        if !applies || !concerns(scope, class, probe) {
            // The attempt says nothing about the host. Such a probe leaves the gate to the next one.
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
                // Another policy's longer hold continues; lanes with shorter holds count theirs from this
                // failure.
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
        // Host failures have a gate of their own, but a probe that met one has failed.
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
                // It was in flight when the gate closed, so it must not lengthen the hold.
                Some(_) => None,
            }
        }
        GateRule::DelayOver { threshold, longest } => {
            let own = match transition {
                Transition::Retry { due_at } => due_at.since(now),
                Transition::Stop { delay, .. } => *delay,
                Transition::Settle(_) => Duration::ZERO,
            };
            // A probe may be a new delivery with a short delay. The host is no healthier for that, so the hold
            // grows as if the last one were repeated.
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
    fn the_longest_hold_binds_before_a_probe_and_an_open_gate_binds_nothing() {
        let later = NOW + Duration::from_secs(1);
        let strictest =
            |passages: [GateAdmission; 3]| GateAdmission::strictest(passages.into_iter().enumerate());
        let held = [GateAdmission::Probing, GateAdmission::Held(later), GateAdmission::Held(NOW)];
        assert_eq!(strictest(held), Some((1, GateAdmission::Held(later))));
        let probed = [GateAdmission::Open, GateAdmission::Probing, GateAdmission::Probe];
        assert_eq!(strictest(probed), Some((1, GateAdmission::Probing)));
        assert_eq!(
            strictest([GateAdmission::Probing; 3]),
            Some((2, GateAdmission::Probing)),
            "of equals the last"
        );
        assert_eq!(strictest([GateAdmission::Open, GateAdmission::Probe, GateAdmission::Open]), None);
    }

    #[test]
    fn a_restart_keeps_a_hold_and_drops_its_probe_and_failure_counts() {
        let failing = Gate { failures: 3, ..Gate::default() };
        assert_eq!(failing.persisted(), Gate::default());
        let held = Gate { held_until: Some(NOW), probing: true, ..failing };
        assert_eq!(held.persisted(), held);
        assert_eq!(held.clone().without_probe(), Gate { probing: false, ..held });
    }

    #[test]
    fn while_a_probe_is_in_flight_only_the_probe_may_start() {
        assert!(GateAdmission::Open.admits_start(false));
        assert!(GateAdmission::Probing.admits_start(true) && !GateAdmission::Probing.admits_start(false));
        assert!(!GateAdmission::Probe.admits_start(true), "the hold has ended since: a new probe is needed");
        assert!(!GateAdmission::Held(NOW).admits_start(true));
    }
}
