//! From a measured value to the state of an alert.

use super::{AlertLimits, AlertRule};
use crate::Timestamp;
use std::time::Duration;

/// The longest time between two judgements that still counts for a rule's `for`. After a longer one, or after the clock was set
/// back, nobody knows what was between: the time begins anew.
pub const MAX_JUDGING_GAP: Duration = Duration::from_secs(5 * 60);

/// What was measured for a rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measured {
    /// Nobody has looked yet, or the look said nothing: the state stays as it is.
    Unknown,
    /// Nothing happened that could be measured.
    Nothing,
    Value {
        value: f64,
        /// Whether it is of enough events to begin an alert: one failed attempt alone is no rate.
        is_enough: bool,
    },
}

impl Measured {
    pub fn of(value: f64) -> Self {
        Self::Value { value, is_enough: true }
    }

    /// A value that somebody may not know.
    pub fn known(value: Option<f64>) -> Self {
        value.map_or(Self::Unknown, Self::of)
    }

    pub fn value(self) -> Option<f64> {
        match self {
            Self::Unknown | Self::Nothing => None,
            Self::Value { value, .. } => Some(value),
        }
    }
}

/// The state of one rule for one scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlertState {
    #[default]
    Inactive,
    /// The value is beyond the threshold, but not for long enough.
    Pending {
        since: Timestamp,
        judged_at: Timestamp,
    },
    Firing {
        since: Timestamp,
    },
}

/// What a judgement changes for others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AlertTransition {
    /// Nobody has to hear of it.
    None,
    Fires {
        value: f64,
    },
    /// `None`: there is nothing to measure any more.
    Resolves {
        value: Option<f64>,
    },
}

impl AlertState {
    pub fn is_firing(self) -> bool {
        matches!(self, Self::Firing { .. })
    }

    /// The state after a measurement, and what it changes.
    pub fn judge(
        self,
        rule: AlertRule,
        limits: &AlertLimits,
        measured: Measured,
        now: Timestamp,
    ) -> (Self, AlertTransition) {
        let comparison = rule.comparison();
        let is_enough = match measured {
            Measured::Unknown => return (self, AlertTransition::None),
            Measured::Nothing => false,
            Measured::Value { is_enough, .. } => is_enough,
        };
        let is_beyond = |limit: f64| measured.value().filter(|value| comparison.breaches(*value, limit));
        match self {
            Self::Firing { .. } => match is_beyond(limits.resolve_of(rule)) {
                Some(_) => (self, AlertTransition::None),
                None => (Self::Inactive, AlertTransition::Resolves { value: measured.value() }),
            },
            Self::Inactive | Self::Pending { .. } => {
                let Some(value) = is_beyond(limits.threshold).filter(|_| is_enough) else {
                    return (Self::Inactive, AlertTransition::None);
                };
                let since = self.beyond_since(now);
                if now.since(since) >= limits.hold {
                    return (Self::Firing { since: now }, AlertTransition::Fires { value });
                }
                (Self::Pending { since, judged_at: now }, AlertTransition::None)
            }
        }
    }

    /// Since when the value has been beyond the threshold, if it is now.
    fn beyond_since(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Pending { since, judged_at }
                if judged_at <= now && now.since(judged_at) <= MAX_JUDGING_GAP =>
            {
                since
            }
            _ => now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);
    const RULE: AlertRule = AlertRule::QueueLength;

    fn seconds(seconds: u64) -> Timestamp {
        START + Duration::from_secs(seconds)
    }

    fn limits() -> AlertLimits {
        RULE.default_limits()
    }

    /// Judges these values, 15 s apart, and returns when it fires and resolves.
    fn run(values: impl IntoIterator<Item = Option<f64>>) -> Vec<(u64, AlertTransition)> {
        let (mut state, mut seen) = (AlertState::Inactive, Vec::new());
        for (number, value) in (0..).zip(values) {
            let measured = value.map_or(Measured::Nothing, Measured::of);
            let (next, transition) = state.judge(RULE, &limits(), measured, seconds(15 * number));
            state = next;
            if transition != AlertTransition::None {
                seen.push((15 * number, transition));
            }
        }
        seen
    }

    #[test]
    fn it_fires_after_its_time_and_resolves_below_the_other_threshold() {
        let values = [50.0, 101.0, 150.0, 150.0, 150.0, 150.0, 90.0, 81.0, 80.0, 10.0].map(Some);
        let fires = (75, AlertTransition::Fires { value: 150.0 });
        let resolves = (120, AlertTransition::Resolves { value: Some(80.0) });
        assert_eq!(run(values), [fires, resolves]);
    }

    #[test]
    fn a_value_at_the_threshold_is_not_beyond_it() {
        assert_eq!(run([Some(100.0); 20]), []);
    }

    #[test]
    fn a_dip_begins_the_time_anew() {
        let values = [150.0, 150.0, 150.0, 150.0, 100.0, 150.0, 150.0, 150.0, 150.0].map(Some);
        assert_eq!(run(values), []);
    }

    #[test]
    fn values_that_flap_between_both_thresholds_do_not_end_an_alert() {
        let flapping = (0..100).map(|number| Some(if number % 2 == 0 { 85.0 } else { 150.0 }));
        let seen = run([Some(150.0); 5].into_iter().chain(flapping));
        assert_eq!(seen.len(), 1, "{seen:?}");
    }

    #[test]
    fn nothing_measured_ends_an_alert_and_begins_none() {
        assert_eq!(run([None; 20]), []);
        let seen = run([Some(150.0); 6].into_iter().chain([None]));
        assert_eq!(seen.last(), Some(&(90, AlertTransition::Resolves { value: None })));
    }

    #[test]
    fn what_is_no_number_is_like_nothing() {
        assert_eq!(run([Some(f64::NAN); 20]), []);
    }

    #[test]
    fn too_few_events_begin_no_alert_but_keep_one() {
        let few = Measured::Value { value: 150.0, is_enough: false };
        assert_eq!(AlertState::Inactive.judge(RULE, &limits(), few, START).0, AlertState::Inactive);
        let firing = AlertState::Firing { since: START };
        assert_eq!(firing.judge(RULE, &limits(), few, START), (firing, AlertTransition::None));
    }

    #[test]
    fn what_nobody_knows_yet_neither_begins_nor_ends_an_alert() {
        let pending = AlertState::Pending { since: START, judged_at: START };
        for state in [AlertState::Inactive, pending, AlertState::Firing { since: START }] {
            let judged = state.judge(RULE, &limits(), Measured::Unknown, seconds(90));
            assert_eq!(judged, (state, AlertTransition::None));
        }
    }

    #[test]
    fn a_clock_that_jumps_makes_the_time_begin_anew() {
        let (pending, _) = AlertState::Inactive.judge(RULE, &limits(), Measured::of(150.0), START);
        for now in [START.before(Duration::from_secs(1)), START + MAX_JUDGING_GAP + Duration::from_secs(1)] {
            let (state, transition) = pending.judge(RULE, &limits(), Measured::of(150.0), now);
            assert_eq!(state, AlertState::Pending { since: now, judged_at: now });
            assert_eq!(transition, AlertTransition::None);
        }
    }

    #[test]
    fn a_rule_without_a_time_fires_at_once() {
        let (rule, measured) = (AlertRule::ClockNotTrusted, Measured::of(0.0));
        let (state, transition) = AlertState::Inactive.judge(rule, &rule.default_limits(), measured, START);
        assert_eq!(transition, AlertTransition::Fires { value: 0.0 });
        let (_, transition) = state.judge(rule, &rule.default_limits(), Measured::of(1.0), START);
        assert_eq!(transition, AlertTransition::Resolves { value: Some(1.0) });
    }

    proptest! {
        /// Whatever is measured, and whatever the clock does: an alert begins and ends by turns, it begins beyond the threshold only,
        /// and it does not end while the value is beyond it.
        #[test]
        fn alerts_begin_and_end_by_turns(
            steps in prop::collection::vec((prop::option::of(0.0..300.0_f64), any::<bool>(), -400_000..400_000_i64), 1..200),
            rule in prop::sample::select(AlertRule::ALL.to_vec()),
        ) {
            let limits = rule.default_limits();
            let (mut state, mut now) = (AlertState::Inactive, START);
            for (value, is_enough, step) in steps {
                now = Timestamp::from_millis(now.millis() + step);
                let was_firing = state.is_firing();
                let measured = value.map_or(Measured::Nothing, |value| Measured::Value { value, is_enough });
                let (next, transition) = state.judge(rule, &limits, measured, now);
                let is_bad = value.is_some_and(|value| rule.comparison().breaches(value, limits.threshold));
                match transition {
                    AlertTransition::None => prop_assert_eq!(was_firing, next.is_firing()),
                    AlertTransition::Fires { .. } => {
                        prop_assert!(!was_firing && next.is_firing() && is_bad && is_enough);
                        if let AlertState::Pending { since, .. } = state {
                            prop_assert!(now.since(since) >= limits.hold);
                        } else {
                            prop_assert!(limits.hold.is_zero());
                        }
                    }
                    AlertTransition::Resolves { .. } => prop_assert!(was_firing && !next.is_firing() && !is_bad),
                }
                state = next;
            }
        }
    }
}
