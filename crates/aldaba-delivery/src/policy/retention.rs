//! How long settled deliveries are kept.

use super::{
    PolicyError,
    validate::{between, ensure},
};
use crate::Timestamp;
use std::time::Duration;

/// The longest retention of a policy or a setting.
pub const MAX_RETENTION: Duration = Duration::from_secs(3650 * 24 * 3600);
/// The highest number of newest deliveries to keep.
pub const MAX_RETAINED_DELIVERIES: u32 = 100_000;

const MIN_RETENTION: Duration = Duration::from_secs(1);

/// The retention of a policy's settled deliveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionRule {
    pub delivered: Keep,
    /// Delivered ones are kept only while they are among this many newest of their application, whatever their
    /// age. All endpoints whose policy has such a number count together.
    pub newest: Option<u32>,
    pub dead: Keep,
}

/// The retention time, counted from the end of the delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// The server's default.
    #[default]
    AsSet,
    For(Duration),
    /// Until they are removed manually.
    UntilRemoved,
}

/// The server's defaults. `None`: until removed manually.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionDefaults {
    pub delivered: Option<Duration>,
    pub dead: Option<Duration>,
}

/// The cutoffs of an endpoint: deliveries that ended before these moments are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cutoffs {
    pub delivered: Option<Timestamp>,
    pub dead: Option<Timestamp>,
    /// Discarded dead ones: at once if dead ones are kept until removed, else with the others.
    pub discarded: Option<Timestamp>,
}

impl RetentionRule {
    /// `deleted`: the endpoint is deleted, and nobody can list, replay or remove its deliveries, so none waits
    /// for manual removal.
    pub fn cutoffs(&self, defaults: &RetentionDefaults, deleted: bool, now: Timestamp) -> Cutoffs {
        let span = |keep, default: Option<Duration>| match keep {
            Keep::AsSet => default,
            Keep::For(span) => Some(span),
            Keep::UntilRemoved => None,
        };
        let delivered = span(self.delivered, defaults.delivered);
        let mut dead = span(self.dead, defaults.dead);
        if deleted {
            dead = dead.into_iter().chain(defaults.delivered).min();
        }
        // A delivery exactly this old is removed too.
        let cutoff = |span: Duration| now.before(span) + Duration::from_millis(1);
        let until_removed = self.dead == Keep::UntilRemoved || dead.is_none();
        let discarded = if until_removed { Some(Duration::ZERO) } else { dead };
        Cutoffs { delivered: delivered.map(cutoff), dead: dead.map(cutoff), discarded: discarded.map(cutoff) }
    }
}

pub(super) fn check(rule: &RetentionRule) -> Result<(), PolicyError> {
    for (field, keep) in [("retention.delivered.for", rule.delivered), ("retention.dead.for", rule.dead)] {
        let Keep::For(span) = keep else { continue };
        ensure((MIN_RETENTION..=MAX_RETENTION).contains(&span), field, || {
            between(MIN_RETENTION, MAX_RETENTION, span)
        })?;
    }
    let Some(newest) = rule.newest else { return Ok(()) };
    ensure((1..=MAX_RETAINED_DELIVERIES).contains(&newest), "retention.delivered.newest", || {
        format!("must be between 1 and {MAX_RETAINED_DELIVERIES}; it is {newest}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);
    const DEFAULTS: RetentionDefaults =
        RetentionDefaults { delivered: Some(Duration::from_secs(90)), dead: None };
    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);

    fn rule(delivered: Keep, dead: Keep) -> RetentionRule {
        RetentionRule { delivered, newest: None, dead }
    }

    #[test]
    fn a_policy_without_retention_uses_the_servers_defaults() {
        let cutoffs = RetentionRule::default().cutoffs(&DEFAULTS, false, NOW);
        assert_eq!(cutoffs.delivered, Some(Timestamp::from_millis(1_000_000_000 - 90_000 + 1)));
        assert_eq!(cutoffs.dead, None);
    }

    #[test]
    fn a_policys_retention_wins_over_the_defaults() {
        let cutoffs = rule(Keep::UntilRemoved, Keep::For(DAY)).cutoffs(&DEFAULTS, false, NOW);
        assert_eq!(cutoffs.delivered, None);
        assert_eq!(cutoffs.dead, Some(Timestamp::from_millis(1_000_000_000 - 86_400_000 + 1)));
    }

    #[test]
    fn nothing_waits_for_manual_removal_once_the_endpoint_is_deleted() {
        let seconds = |span: i64| Some(Timestamp::from_millis(1_000_000_000 - span * 1000 + 1));
        let dead = |keep| rule(Keep::AsSet, keep).cutoffs(&DEFAULTS, true, NOW).dead;
        assert_eq!(dead(Keep::UntilRemoved), seconds(90));
        assert_eq!(dead(Keep::For(DAY)), seconds(90));
        assert_eq!(dead(Keep::For(Duration::from_secs(5))), seconds(5));
    }

    #[test]
    fn discarded_deliveries_are_removed_at_once_only_if_dead_ones_are_kept_until_removed() {
        let at_once = Some(NOW + Duration::from_millis(1));
        for deleted in [false, true] {
            let discarded = |keep, defaults: &RetentionDefaults| {
                rule(Keep::AsSet, keep).cutoffs(defaults, deleted, NOW).discarded
            };
            assert_eq!(discarded(Keep::UntilRemoved, &DEFAULTS), at_once);
            let brief = discarded(Keep::For(Duration::from_secs(5)), &DEFAULTS);
            assert_eq!(brief, Some(Timestamp::from_millis(1_000_000_000 - 5000 + 1)));
        }
        let as_set = |defaults| rule(Keep::AsSet, Keep::AsSet).cutoffs(&defaults, false, NOW).discarded;
        assert_eq!(as_set(DEFAULTS), at_once, "the server keeps them until they are removed");
        let a_year = RetentionDefaults { dead: Some(DAY), ..DEFAULTS };
        assert_eq!(as_set(a_year), Some(Timestamp::from_millis(1_000_000_000 - 86_400_000 + 1)));
    }

    #[test]
    fn an_overlong_retention_keeps_everything() {
        let cutoffs = rule(Keep::For(Duration::MAX), Keep::AsSet).cutoffs(&DEFAULTS, false, NOW);
        assert!(cutoffs.delivered.is_some_and(|cutoff| cutoff.millis() < -1_000_000_000_000));
    }
}
