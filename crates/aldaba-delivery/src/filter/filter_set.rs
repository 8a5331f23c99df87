//! Matches a message against the filters of all endpoints of an application.

use super::match_cost::MatchCost;
use super::path_tree::PathTree;
use super::substrings::{FoundSubstrings, SubstringSet};
use super::value::PayloadValue;
use super::{Filter, FilterInput, Path, PayloadCondition, Requirement};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Filters by the position of their endpoint. The payload is read at most once for all of them, and equal
/// conditions are evaluated once.
#[derive(Clone, Debug)]
pub struct FilterSet {
    /// `None`: the endpoint has no filter.
    pub(super) members: Box<[Option<SetMember>]>,
    /// All paths of their conditions.
    path_tree: PathTree<usize>,
    /// The conditions of each path.
    path_conditions: Box<[PathConditions]>,
    /// The number of distinct conditions on the payload.
    conditions: usize,
    match_cost: MatchCost,
}

#[derive(Clone, Debug)]
pub(super) struct SetMember {
    pub(super) filter: Arc<Filter>,
    /// Its conditions on the payload, among those of the set.
    pub(super) conditions: Box<[ConditionRef]>,
}

/// Refers to a condition on the payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConditionRef {
    pub(super) condition: u32,
    /// The number of its path.
    pub(super) path_number: u32,
}

/// The conditions on one path.
#[derive(Clone, Debug, Default)]
struct PathConditions {
    all: Vec<PathCondition>,
    /// The operands of `contains`, if several conditions have one.
    substrings: Option<SubstringSet>,
}

#[derive(Clone, Debug)]
struct PathCondition {
    condition: usize,
    /// A filter with this condition, and its number there.
    filter: Arc<Filter>,
    number: usize,
    /// The index of the operand of `contains`.
    substring: Option<usize>,
}

impl FilterSet {
    /// `None`: no endpoint has a filter.
    pub fn new(filters: impl IntoIterator<Item = Option<Arc<Filter>>>) -> Option<Self> {
        let all = Self::of(filters.into_iter());
        all.members.iter().any(Option::is_some).then_some(all)
    }

    pub fn of_one(filter: Arc<Filter>) -> Self {
        Self::of([Some(filter)].into_iter())
    }

    fn of(filters: impl Iterator<Item = Option<Arc<Filter>>>) -> Self {
        let filters: Vec<_> = filters.collect();
        let mut builder = FilterSetBuilder::default();
        let members: Vec<_> =
            filters.iter().map(|filter| filter.as_ref().map(|filter| builder.member(filter))).collect();
        let FilterSetBuilder {
            path_tree,
            mut path_conditions,
            path_numbers,
            condition_numbers,
            mut match_cost,
        } = builder;
        let conditions = condition_numbers.len();
        let (mut searches, mut depth) = (false, 0);
        for (path, path_number) in path_numbers {
            depth = depth.max(path.steps().len());
            if path_conditions[path_number].find_substrings() {
                searches = true;
                match_cost = match_cost + path.search_cost();
            }
        }
        match_cost = match_cost + MatchCost::read_cost(depth);
        if searches {
            match_cost = match_cost + MatchCost::one_search();
        }
        Self {
            members: members.into(),
            path_tree,
            path_conditions: path_conditions.into(),
            conditions,
            match_cost,
        }
    }

    /// The cost of matching one message.
    pub fn match_cost(&self) -> MatchCost {
        self.match_cost
    }

    /// Matches one message.
    pub fn run<'a>(&'a self, input: FilterInput<'a>) -> FilterRun<'a> {
        FilterRun { filters: self, input, hits: None }
    }

    /// Finds out for every condition on the payload whether a value decides it. `see` is called with every
    /// value and its path number.
    pub(super) fn read<'p>(&self, payload: &'p [u8], mut see: impl FnMut(usize, &'p str)) -> HitBits {
        let mut hits = HitBits(vec![0; self.conditions.div_ceil(64)]);
        let mut found = FoundSubstrings::default();
        self.path_tree.walk(payload, |path_numbers, text| {
            for path_number in path_numbers {
                see(*path_number, text);
                if let Some(path_conditions) = self.path_conditions.get(*path_number) {
                    path_conditions.ask(text, &mut hits, &mut found);
                }
            }
        });
        hits
    }
}

/// Builds a set of filters.
#[derive(Default)]
struct FilterSetBuilder<'f> {
    path_tree: PathTree<usize>,
    path_conditions: Vec<PathConditions>,
    path_numbers: HashMap<&'f Path, usize>,
    /// The number of each distinct condition.
    condition_numbers: HashMap<ConditionKey<'f>, usize>,
    match_cost: MatchCost,
}

/// A condition hashed by its stored key: hashing its content would be slow for many conditions.
struct ConditionKey<'f>(&'f PayloadCondition);

impl Hash for ConditionKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

impl PartialEq for ConditionKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        let (one, two) = (self.0, other.0);
        std::ptr::eq(one, two) || (one.path == two.path && one.requirement == two.requirement)
    }
}

impl Eq for ConditionKey<'_> {}

impl<'f> FilterSetBuilder<'f> {
    fn member(&mut self, filter: &'f Arc<Filter>) -> SetMember {
        self.match_cost = self.match_cost + filter.own_cost();
        let all = filter.payload.iter().enumerate();
        let conditions = all.map(|(number, condition)| self.condition_ref(filter, number, condition));
        SetMember { filter: filter.clone(), conditions: conditions.collect() }
    }

    fn condition_ref(
        &mut self,
        filter: &Arc<Filter>,
        number: usize,
        condition: &'f PayloadCondition,
    ) -> ConditionRef {
        let Self { path_tree, path_conditions, path_numbers, condition_numbers, match_cost } = self;
        let PayloadCondition { path, requirement, .. } = condition;
        let path_number = *path_numbers.entry(path).or_insert_with(|| {
            path_tree.add(path, path_conditions.len());
            path_conditions.push(PathConditions::default());
            *match_cost = *match_cost + path.match_cost();
            path_conditions.len() - 1
        });
        let next = condition_numbers.len();
        let condition = *condition_numbers.entry(ConditionKey(condition)).or_insert_with(|| {
            let filter = filter.clone();
            path_conditions[path_number].all.push(PathCondition {
                condition: next,
                filter,
                number,
                substring: None,
            });
            *match_cost = *match_cost + path.condition_cost(requirement);
            next
        });
        ConditionRef { condition: small(condition), path_number: small(path_number) }
    }
}

impl PathConditions {
    /// Whether any of them has `contains`.
    fn find_substrings(&mut self) -> bool {
        let substrings = self.all.iter().filter_map(|condition| condition.requirement()?.substring());
        let substrings: Vec<_> = substrings.cloned().collect();
        let any = !substrings.is_empty();
        if substrings.len() > 1 {
            let substrings = SubstringSet::new(substrings);
            for condition in &mut self.all {
                let substring = condition.requirement().and_then(|requirement| requirement.substring());
                condition.substring = substring.and_then(|substring| substrings.number(&substring.value()));
            }
            self.substrings = Some(substrings);
        }
        any
    }

    fn ask(&self, text: &str, hits: &mut HitBits, found: &mut FoundSubstrings) {
        if self.all.iter().all(|condition| hits.has(condition.condition)) {
            return;
        }
        let value = PayloadValue::of(text);
        if let Some(substrings) = &self.substrings {
            substrings.find(&value, found);
        }
        for condition in &self.all {
            if hits.has(condition.condition) {
                continue;
            }
            let contains = condition.substring.map(|substring| found.has(substring));
            if condition.requirement().is_some_and(|requirement| requirement.is_hit(&value, contains)) {
                hits.set(condition.condition);
            }
        }
    }
}

impl PathCondition {
    fn requirement(&self) -> Option<&Requirement> {
        self.filter.payload.get(self.number).map(|condition| &condition.requirement)
    }
}

/// An application's filters have far fewer conditions than this.
fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A bit for each condition that is decided.
#[derive(Debug)]
pub(super) struct HitBits(Vec<u64>);

impl HitBits {
    pub(super) fn has(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|bits| bits >> (number % 64) & 1 == 1)
    }

    fn set(&mut self, number: usize) {
        if let Some(bits) = self.0.get_mut(number / 64) {
            *bits |= 1 << (number % 64);
        }
    }
}

impl SetMember {
    /// Whether one of its conditions on the payload holds.
    pub(super) fn is_met(&self, condition: usize, hits: &HitBits) -> bool {
        let reference = self.conditions.get(condition);
        reference
            .is_some_and(|reference| self.filter.is_met(condition, hits.has(reference.condition as usize)))
    }
}

/// Matches one message against the set.
#[derive(Debug)]
pub struct FilterRun<'a> {
    filters: &'a FilterSet,
    input: FilterInput<'a>,
    /// Set once the payload was read.
    hits: Option<HitBits>,
}

impl FilterRun<'_> {
    /// Whether the message passes the filter of the endpoint at this position. An endpoint without a filter
    /// accepts all.
    pub fn passes(&mut self, member: usize) -> bool {
        let Some(Some(member)) = self.filters.members.get(member) else { return true };
        if member.conditions.is_empty() {
            return member.filter.root.holds(&self.input, &|_| false);
        }
        let hits = self.hits.get_or_insert_with(|| self.filters.read(self.input.payload, |_, _| ()));
        member.filter.root.holds(&self.input, &|condition| member.is_met(condition, hits))
    }
}
