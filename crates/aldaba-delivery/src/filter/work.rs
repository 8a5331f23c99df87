//! What filters take, before there is a message: so many looks, each of some ten nanoseconds.

use super::condition::{Source, Wanted};
use super::{About, DEFAULT_MAX_PAYLOAD_BYTES, Filter, MAX_VALUES_PER_PATH, Path};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{Add, Sub};

/// Bytes that are gone through in the time of a look: where values are read, and where parts of texts are searched.
const READ_IN_A_LOOK: u64 = 6;
const SEARCHED_IN_A_LOOK: u64 = 2;
/// Looks for each byte of a text that is looked for: what finds it is built and kept.
const KEPT_BYTE: u64 = 16;
/// The most channels, or tags, of a message.
const MOST_NAMES: u64 = 10;
/// Looks for a part of a name or a header.
const PART_OF_A_NAME: u64 = 100;

/// What filters take, by what it depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchCost {
    /// Looks at every message.
    once: u64,
    /// Looks at every value that `[*]` leads to.
    each: u64,
    /// How often the payload may be read all through, and how often it may be searched.
    reads: u64,
    searches: u64,
    /// Looks that building takes, and no message.
    kept: u64,
}

impl MatchCost {
    /// Looks at a message whose payload has so many bytes, at most.
    pub fn at(&self, payload: usize) -> u64 {
        let bytes = payload as u64;
        let values = u64::from(MAX_VALUES_PER_PATH).min(bytes / 2 + 1);
        self.once
            + self.each * values
            + self.reads * bytes / READ_IN_A_LOOK
            + self.searches * bytes / SEARCHED_IN_A_LOOK
    }

    /// What [`MAX_MATCH_COST`](super::MOST_WORK) is a limit of.
    pub fn total(&self) -> u64 {
        self.at(DEFAULT_MAX_PAYLOAD_BYTES) + self.kept
    }

    /// Reading values at paths of so many steps, at most.
    pub(super) fn reading(steps: usize) -> Self {
        Self { reads: steps as u64, ..Self::default() }
    }

    pub(super) fn searching() -> Self {
        Self { searches: 1, ..Self::default() }
    }
}

impl Add for MatchCost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            once: self.once + other.once,
            each: self.each + other.each,
            reads: self.reads + other.reads,
            searches: self.searches + other.searches,
            kept: self.kept + other.kept,
        }
    }
}

impl Sub for MatchCost {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            once: self.once.saturating_sub(other.once),
            each: self.each.saturating_sub(other.each),
            reads: self.reads.saturating_sub(other.reads),
            searches: self.searches.saturating_sub(other.searches),
            kept: self.kept.saturating_sub(other.kept),
        }
    }
}

impl Source {
    pub(super) fn match_cost(&self, wanted: &Wanted) -> MatchCost {
        let values = match self {
            Self::EventType | Self::Header(_) => 1,
            Self::Channel | Self::Tag => MOST_NAMES,
        };
        let part = wanted.part().map_or(0, |_| PART_OF_A_NAME);
        MatchCost { once: 1 + values * (wanted.looks() + part), ..MatchCost::default() }
    }
}

impl Path {
    /// Of a path that somebody looks at, besides what all paths take together.
    pub(super) fn match_cost(&self) -> MatchCost {
        MatchCost::reading(self.shared_steps())
    }

    /// The same where somebody looks for parts of texts there.
    pub(super) fn search_work(&self) -> MatchCost {
        if self.leads_to_shared() { MatchCost::searching() } else { MatchCost::default() }
    }

    /// Of one condition.
    pub(super) fn condition_work(&self, wanted: &Wanted) -> MatchCost {
        let looks = wanted.looks();
        let (once, each) = if self.leads_to_many() { (0, looks) } else { (looks, 0) };
        let kept = wanted.part().map_or(0, |part| KEPT_BYTE * part.bytes() as u64);
        MatchCost { once, each, kept, ..MatchCost::default() }
    }
}

/// What the filters of an application take together. What takes much, and is asked by several of them in the same words, is
/// counted once, as it is looked at once; what takes little is not remembered, and counted each time.
#[derive(Clone, Debug, Default)]
pub struct CombinedMatchCost {
    /// How many ask for it, by what it is.
    asked: HashMap<u64, u32>,
    work: MatchCost,
}

impl CombinedMatchCost {
    pub fn match_cost(&self) -> MatchCost {
        self.work
    }

    /// How much memory it takes, in different things that are remembered.
    pub fn len(&self) -> usize {
        self.asked.len()
    }

    pub fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    pub fn add(&mut self, filter: &Filter) {
        let Self { asked, work } = self;
        *work = *work + filter.own_work();
        filter.each_asked(|key, takes| {
            let Some(key) = key else {
                *work = *work + takes;
                return;
            };
            let count = asked.entry(key).or_default();
            if *count == 0 {
                *work = *work + takes;
            }
            *count += 1;
        });
    }

    /// Takes away what was added.
    pub fn remove(&mut self, filter: &Filter) {
        let Self { asked, work } = self;
        *work = *work - filter.own_work();
        filter.each_asked(|key, takes| {
            let Some(key) = key else {
                *work = *work - takes;
                return;
            };
            let Entry::Occupied(mut count) = asked.entry(key) else { return };
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
                *work = *work - takes;
            }
        });
    }
}

impl Filter {
    /// What it takes that it shares with no other.
    pub(super) fn own_work(&self) -> MatchCost {
        self.plain + MatchCost { once: self.payload.len() as u64, ..MatchCost::default() }
    }

    /// Tells what it takes besides, with a key where that is worth remembering.
    fn each_asked(&self, mut tell: impl FnMut(Option<u64>, MatchCost)) {
        for About { path, wanted, key } in &self.payload {
            let part = wanted.part().is_some();
            if path.leads_to_shared() {
                tell(Some(self::key(&(path, "read"))), path.match_cost());
                if part {
                    tell(Some(self::key(&(path, "searched"))), path.search_work());
                }
            }
            let key = (part || path.leads_to_many()).then_some(*key);
            tell(key, path.condition_work(wanted));
        }
    }
}

/// A number that almost certainly no other thing has. In a [`CombinedMatchCost`] two with the same would be counted as one, which does
/// no harm.
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
    fn what_is_asked_in_the_same_words_counts_once_as_long_as_somebody_asks_it() {
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
    fn thousands_of_usual_filters_are_little_work() {
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
    fn what_goes_through_many_values_is_soon_too_much() {
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
    fn paths_that_lead_to_the_same_values_in_other_ways_are_work_of_their_own() {
        let steps =
            |n: u32| (0..10).map(|bit| if n >> bit & 1 == 1 { "[0]" } else { "[*]" }).collect::<String>();
        let filters: Vec<_> =
            (1..200).map(|n| filter(&format!(r#"{{"payload":"${}.a","eq":1}}"#, steps(n)))).collect();
        assert!(total(&filters.iter().collect::<Vec<_>>()) > MAX_MATCH_COST);
        let plain = filter(r#"{"payload":"$.orders[0].lines[*].sku","eq":1}"#);
        assert!(total(&[&plain]) < MAX_MATCH_COST / 50, "{}", total(&[&plain]));
    }
}
