//! The cost of filters, known before any message, in units of some ten nanoseconds.

use super::condition::{ConditionSource, Requirement};
use super::{DEFAULT_MAX_PAYLOAD_BYTES, Filter, MAX_VALUES_PER_PATH, Path, PayloadCondition};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{Add, Sub};

/// Bytes processed per unit of cost: reading values, and searching texts.
const BYTES_READ_PER_COST_UNIT: u64 = 6;
const BYTES_SEARCHED_PER_COST_UNIT: u64 = 2;
/// Cost per byte of a searched text: its automaton is built and kept.
const AUTOMATON_COST_PER_BYTE: u64 = 16;
/// The most channels or tags of a message.
const MAX_NAMES: u64 = 10;
/// Cost of searching a name or a header.
const NAME_SUBSTRING_COST: u64 = 100;

/// The cost of filters, split by what it depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchCost {
    /// Cost per message.
    per_message: u64,
    /// Cost per value that `[*]` yields.
    per_value: u64,
    /// Full passes over the payload for reading, and for searching.
    payload_reads: u64,
    payload_searches: u64,
    /// Cost of building, independent of messages.
    memory: u64,
}

impl MatchCost {
    /// The highest cost of a message with a payload of this many bytes.
    pub fn at(&self, payload: usize) -> u64 {
        let bytes = payload as u64;
        let values = u64::from(MAX_VALUES_PER_PATH).min(bytes / 2 + 1);
        self.per_message
            + self.per_value * values
            + self.payload_reads * bytes / BYTES_READ_PER_COST_UNIT
            + self.payload_searches * bytes / BYTES_SEARCHED_PER_COST_UNIT
    }

    /// The cost that [`MAX_MATCH_COST`](super::MAX_MATCH_COST) limits.
    pub fn total(&self) -> u64 {
        self.at(DEFAULT_MAX_PAYLOAD_BYTES) + self.memory
    }

    /// The cost of reading paths of at most this many steps.
    pub(super) fn read_cost(steps: usize) -> Self {
        Self { payload_reads: steps as u64, ..Self::default() }
    }

    pub(super) fn one_search() -> Self {
        Self { payload_searches: 1, ..Self::default() }
    }
}

impl Add for MatchCost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            per_message: self.per_message + other.per_message,
            per_value: self.per_value + other.per_value,
            payload_reads: self.payload_reads + other.payload_reads,
            payload_searches: self.payload_searches + other.payload_searches,
            memory: self.memory + other.memory,
        }
    }
}

impl Sub for MatchCost {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            per_message: self.per_message.saturating_sub(other.per_message),
            per_value: self.per_value.saturating_sub(other.per_value),
            payload_reads: self.payload_reads.saturating_sub(other.payload_reads),
            payload_searches: self.payload_searches.saturating_sub(other.payload_searches),
            memory: self.memory.saturating_sub(other.memory),
        }
    }
}

impl ConditionSource {
    pub(super) fn match_cost(&self, requirement: &Requirement) -> MatchCost {
        let values = match self {
            Self::EventType | Self::Header(_) => 1,
            Self::Channel | Self::Tag => MAX_NAMES,
        };
        let substring = requirement.substring().map_or(0, |_| NAME_SUBSTRING_COST);
        MatchCost { per_message: 1 + values * (requirement.cost() + substring), ..MatchCost::default() }
    }
}

impl Path {
    /// The cost of one more path, beyond what all paths share.
    pub(super) fn match_cost(&self) -> MatchCost {
        MatchCost::read_cost(self.shared_steps())
    }

    /// The cost of searching texts at this path.
    pub(super) fn search_cost(&self) -> MatchCost {
        if self.leads_to_shared() { MatchCost::one_search() } else { MatchCost::default() }
    }

    /// The cost of one condition.
    pub(super) fn condition_cost(&self, requirement: &Requirement) -> MatchCost {
        let cost = requirement.cost();
        let (per_message, per_value) = if self.leads_to_many() { (0, cost) } else { (cost, 0) };
        let memory =
            requirement.substring().map_or(0, |substring| AUTOMATON_COST_PER_BYTE * substring.bytes() as u64);
        MatchCost { per_message, per_value, memory, ..MatchCost::default() }
    }
}

/// The combined cost of an application's filters. Expensive conditions shared by several filters count once,
/// because they are evaluated once; cheap ones are not tracked and count each time.
#[derive(Clone, Debug, Default)]
pub struct CombinedMatchCost {
    /// The number of filters per expensive condition.
    counts: HashMap<u64, u32>,
    match_cost: MatchCost,
}

impl CombinedMatchCost {
    pub fn match_cost(&self) -> MatchCost {
        self.match_cost
    }

    /// The number of tracked conditions: its memory use.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    pub fn add(&mut self, filter: &Filter) {
        let Self { counts, match_cost } = self;
        *match_cost = *match_cost + filter.own_cost();
        filter.each_shared_cost(|key, cost| {
            let Some(key) = key else {
                *match_cost = *match_cost + cost;
                return;
            };
            let count = counts.entry(key).or_default();
            if *count == 0 {
                *match_cost = *match_cost + cost;
            }
            *count += 1;
        });
    }

    /// Removes a filter that was added.
    pub fn remove(&mut self, filter: &Filter) {
        let Self { counts, match_cost } = self;
        *match_cost = *match_cost - filter.own_cost();
        filter.each_shared_cost(|key, cost| {
            let Some(key) = key else {
                *match_cost = *match_cost - cost;
                return;
            };
            let Entry::Occupied(mut count) = counts.entry(key) else { return };
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
                *match_cost = *match_cost - cost;
            }
        });
    }
}

impl Filter {
    /// The cost that it shares with no other filter.
    pub(super) fn own_cost(&self) -> MatchCost {
        self.plain + MatchCost { per_message: self.payload.len() as u64, ..MatchCost::default() }
    }

    /// Reports its other costs, with a key if they are worth tracking.
    fn each_shared_cost(&self, mut visit: impl FnMut(Option<u64>, MatchCost)) {
        for PayloadCondition { path, requirement, key } in &self.payload {
            let substring = requirement.substring().is_some();
            if path.leads_to_shared() {
                visit(Some(self::key(&(path, "read"))), path.match_cost());
                if substring {
                    visit(Some(self::key(&(path, "searched"))), path.search_cost());
                }
            }
            let key = (substring || path.leads_to_many()).then_some(*key);
            visit(key, path.condition_cost(requirement));
        }
    }
}

/// A hash that is almost certainly unique. In a [`CombinedMatchCost`] two equal ones would count as one, which
/// does no harm.
pub(super) fn key(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::super::MAX_MATCH_COST;
    use super::*;

    fn filter(text: &str) -> Filter {
        Filter::parse(text).unwrap()
    }

    fn total(filters: &[&Filter]) -> u64 {
        let mut load = CombinedMatchCost::default();
        filters.iter().for_each(|filter| load.add(filter));
        load.match_cost().total()
    }

    #[test]
    fn a_shared_condition_counts_once_while_a_filter_has_it() {
        let one = filter(r#"{"any":[{"payload":"$.l[*]","contains":"a"},{"payload":"$.a","in":[1,2]}]}"#);
        let other = filter(r#"{"payload":"$.l[*]","contains":"a"}"#);
        let mut load = CombinedMatchCost::default();
        load.add(&one);
        let alone = load.match_cost();
        load.add(&other);
        assert_eq!(load.match_cost().total(), alone.total() + 1, "it has one condition, which is known");
        assert_eq!(load.len(), 1, "one takes much");
        load.add(&one);
        load.remove(&one);
        load.remove(&other);
        assert_eq!(load.match_cost(), alone);
        load.remove(&one);
        assert_eq!((load.match_cost(), load.len()), (MatchCost::default(), 0));
    }

    #[test]
    fn thousands_of_ordinary_filters_cost_little() {
        let filters: Vec<_> = (0..10_000)
            .map(|n| {
                let filter_of = format!(
                    r#"{{"all":[{{"payload":"$.customer","eq":"cus_{n}"}},{{"tag":"eu"}},{{"payload":"$.text","contains":"word{n}"}}]}}"#
                );
                filter(&filter_of)
            })
            .collect();
        let total = total(&filters.iter().collect::<Vec<_>>());
        assert!(total < MAX_MATCH_COST / 2, "{total}");
    }

    #[test]
    fn conditions_over_many_values_soon_exceed_the_limit() {
        let filters: Vec<_> = (0..200)
            .map(|n| {
                let all: Vec<_> =
                    (0..64).map(|m| format!(r#"{{"payload":"$.l[*]","gt":"{n}.{m}"}}"#)).collect();
                filter(&format!(r#"{{"any":[{}]}}"#, all.join(",")))
            })
            .collect();
        assert!(total(&filters.iter().take(100).collect::<Vec<_>>()) < MAX_MATCH_COST);
        assert!(total(&filters.iter().collect::<Vec<_>>()) > MAX_MATCH_COST);
    }

    #[test]
    fn different_paths_to_the_same_values_cost_extra() {
        let steps =
            |n: u32| (0..10).map(|bit| if n >> bit & 1 == 1 { "[0]" } else { "[*]" }).collect::<String>();
        let filters: Vec<_> =
            (1..200).map(|n| filter(&format!(r#"{{"payload":"${}.a","eq":1}}"#, steps(n)))).collect();
        assert!(total(&filters.iter().collect::<Vec<_>>()) > MAX_MATCH_COST);
        let plain = filter(r#"{"payload":"$.orders[0].lines[*].sku","eq":1}"#);
        assert!(total(&[&plain]) < MAX_MATCH_COST / 50, "{}", total(&[&plain]));
    }
}
