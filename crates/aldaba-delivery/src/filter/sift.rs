//! The filters of all endpoints of an application, judged together.

use super::spots::Spots;
use super::value::Value;
use super::{Facts, Filter};
use std::sync::Arc;

/// Filters by the place of their endpoint in a list. The payload is read once for all of them, and only if
/// it must be.
#[derive(Clone, Debug)]
pub struct Filters {
    /// `None`: the endpoint has no filter.
    members: Box<[Option<Member>]>,
    /// All places of the payload that they look at.
    spots: Spots<Looker>,
    /// Conditions about the payload, of all filters together.
    conditions: usize,
}

#[derive(Clone, Debug)]
struct Member {
    filter: Arc<Filter>,
    /// The number of its first condition about the payload, among those of all filters.
    first: usize,
}

/// A condition about the payload.
#[derive(Clone, Copy, Debug)]
struct Looker {
    member: u32,
    /// Among those of its filter.
    condition: u16,
}

impl Filters {
    /// `None`: there is not one filter among them.
    pub fn new(filters: impl IntoIterator<Item = Option<Arc<Filter>>>) -> Option<Self> {
        let all = Self::of(filters.into_iter());
        all.members.iter().any(Option::is_some).then_some(all)
    }

    pub fn of_one(filter: Arc<Filter>) -> Self {
        Self::of([Some(filter)].into_iter())
    }

    fn of(filters: impl Iterator<Item = Option<Arc<Filter>>>) -> Self {
        let (mut spots, mut conditions) = (Spots::new(), 0);
        let member = |(filter, member): (Option<Arc<Filter>>, u32)| {
            let filter = filter?;
            for ((path, _), condition) in filter.payload.iter().zip(0..) {
                spots.add(path, Looker { member, condition });
            }
            let first = conditions;
            conditions += filter.payload.len();
            Some(Member { filter, first })
        };
        let members = filters.zip(0..).map(member).collect();
        Self { members, spots, conditions }
    }

    /// Judges one message.
    pub fn over<'a>(&'a self, facts: Facts<'a>) -> Sifting<'a> {
        Sifting { filters: self, facts, hits: None }
    }

    /// For every condition about the payload whether a value there decides it.
    pub(super) fn read(&self, payload: &[u8]) -> Hits {
        let mut hits = Hits(vec![0; self.conditions.div_ceil(64)]);
        self.spots.walk(payload, |lookers, text| {
            let value = Value::of(text);
            for looker in lookers {
                self.look(looker, &value, &mut hits);
            }
        });
        hits
    }

    fn look(&self, looker: &Looker, value: &Value<'_>, hits: &mut Hits) {
        let member = self.members.get(looker.member as usize).and_then(Option::as_ref);
        let Some(Member { filter, first }) = member else { return };
        let condition = usize::from(looker.condition);
        let Some((_, wanted)) = filter.payload.get(condition) else { return };
        let number = first + condition;
        if !hits.has(number) && wanted.is_hit(value) {
            hits.set(number);
        }
    }
}

/// Conditions about the payload that are decided: a bit for each.
#[derive(Debug)]
pub(super) struct Hits(Vec<u64>);

impl Hits {
    pub(super) fn has(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|bits| bits >> (number % 64) & 1 == 1)
    }

    fn set(&mut self, number: usize) {
        if let Some(bits) = self.0.get_mut(number / 64) {
            *bits |= 1 << (number % 64);
        }
    }
}

/// One message on its way through the filters.
#[derive(Debug)]
pub struct Sifting<'a> {
    filters: &'a Filters,
    facts: Facts<'a>,
    /// Once the payload has been read.
    hits: Option<Hits>,
}

impl Sifting<'_> {
    /// Whether the filter of an endpoint, by its place, lets the message through. One without a filter does.
    pub fn passes(&mut self, member: usize) -> bool {
        let Some(Some(Member { filter, first })) = self.filters.members.get(member) else { return true };
        if filter.payload.is_empty() {
            return filter.root.holds(&self.facts, &|_| false);
        }
        let hits = self.hits.get_or_insert_with(|| self.filters.read(self.facts.payload));
        filter.root.holds(&self.facts, &|condition| filter.is_met(condition, hits.has(first + condition)))
    }
}
