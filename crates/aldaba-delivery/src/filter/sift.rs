//! The filters of all endpoints of an application, judged together.

use super::parts::{Found, Parts};
use super::spots::Spots;
use super::value::Value;
use super::work::MatchCost;
use super::{About, Filter, FilterInput, Path, Wanted};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Filters by the place of their endpoint in a list. The payload is read once for all of them, and only if
/// it must be; what several ask for in the same words is looked at once.
#[derive(Clone, Debug)]
pub struct FilterSet {
    /// `None`: the endpoint has no filter.
    pub(super) members: Box<[Option<Member>]>,
    /// All places of the payload that they look at, by their numbers.
    spots: Spots<usize>,
    /// What is asked at each of these places.
    questions: Box<[Questions]>,
    /// Different conditions about the payload.
    conditions: usize,
    work: MatchCost,
}

#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) filter: Arc<Filter>,
    /// Its conditions about the payload, among those of all filters.
    pub(super) conditions: Box<[Asked]>,
}

/// A condition about the payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) condition: u32,
    /// Where it looks.
    pub(super) place: u32,
}

/// The conditions about one place of the payload.
#[derive(Clone, Debug, Default)]
struct Questions {
    all: Vec<Question>,
    /// What they say that a value must contain, where several do.
    parts: Option<Parts>,
}

#[derive(Clone, Debug)]
struct Question {
    condition: usize,
    /// One filter that asks it, and its number there.
    filter: Arc<Filter>,
    number: usize,
    /// The number of the part that it looks for.
    part: Option<usize>,
}

impl FilterSet {
    /// `None`: there is not one filter among them.
    pub fn new(filters: impl IntoIterator<Item = Option<Arc<Filter>>>) -> Option<Self> {
        let all = Self::of(filters.into_iter());
        all.members.iter().any(Option::is_some).then_some(all)
    }

    pub fn of_one(filter: Arc<Filter>) -> Self {
        Self::of([Some(filter)].into_iter())
    }

    fn of(filters: impl Iterator<Item = Option<Arc<Filter>>>) -> Self {
        let filters: Vec<_> = filters.collect();
        let mut making = Making::default();
        let members: Vec<_> =
            filters.iter().map(|filter| filter.as_ref().map(|filter| making.member(filter))).collect();
        let Making { spots, mut questions, places, known, mut work } = making;
        let conditions = known.len();
        let (mut searches, mut depth) = (false, 0);
        for (path, place) in places {
            depth = depth.max(path.steps().len());
            if questions[place].find_parts() {
                searches = true;
                work = work + path.search_work();
            }
        }
        work = work + MatchCost::reading(depth);
        if searches {
            work = work + MatchCost::searching();
        }
        Self { members: members.into(), spots, questions: questions.into(), conditions, work }
    }

    /// What judging a message takes.
    pub fn match_cost(&self) -> MatchCost {
        self.work
    }

    /// Judges one message.
    pub fn run<'a>(&'a self, facts: FilterInput<'a>) -> FilterRun<'a> {
        FilterRun { filters: self, facts, hits: None }
    }

    /// For every condition about the payload whether a value there decides it. `see` hears of every value that is
    /// looked at, and of its place.
    pub(super) fn read<'p>(&self, payload: &'p [u8], mut see: impl FnMut(usize, &'p str)) -> Hits {
        let mut hits = Hits(vec![0; self.conditions.div_ceil(64)]);
        let mut found = Found::default();
        self.spots.walk(payload, |places, text| {
            for place in places {
                see(*place, text);
                if let Some(questions) = self.questions.get(*place) {
                    questions.ask(text, &mut hits, &mut found);
                }
            }
        });
        hits
    }
}

/// Filters on their way to be judged together.
#[derive(Default)]
struct Making<'f> {
    spots: Spots<usize>,
    questions: Vec<Questions>,
    places: HashMap<&'f Path, usize>,
    /// The numbers of conditions.
    known: HashMap<Known<'f>, usize>,
    work: MatchCost,
}

/// A condition that is found by its key: working that out of all that is in it would take long where there are many.
struct Known<'f>(&'f About);

impl Hash for Known<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

impl PartialEq for Known<'_> {
    fn eq(&self, other: &Self) -> bool {
        let (one, two) = (self.0, other.0);
        std::ptr::eq(one, two) || (one.path == two.path && one.wanted == two.wanted)
    }
}

impl Eq for Known<'_> {}

impl<'f> Making<'f> {
    fn member(&mut self, filter: &'f Arc<Filter>) -> Member {
        self.work = self.work + filter.own_work();
        let asked = filter.payload.iter().enumerate();
        let conditions = asked.map(|(number, about)| self.asked(filter, number, about));
        Member { filter: filter.clone(), conditions: conditions.collect() }
    }

    fn asked(&mut self, filter: &Arc<Filter>, number: usize, about: &'f About) -> Asked {
        let Self { spots, questions, places, known, work } = self;
        let About { path, wanted, .. } = about;
        let place = *places.entry(path).or_insert_with(|| {
            spots.add(path, questions.len());
            questions.push(Questions::default());
            *work = *work + path.match_cost();
            questions.len() - 1
        });
        let next = known.len();
        let condition = *known.entry(Known(about)).or_insert_with(|| {
            let filter = filter.clone();
            questions[place].all.push(Question { condition: next, filter, number, part: None });
            *work = *work + path.condition_work(wanted);
            next
        });
        Asked { condition: small(condition), place: small(place) }
    }
}

impl Questions {
    /// Whether any of them asks for parts.
    fn find_parts(&mut self) -> bool {
        let parts = self.all.iter().filter_map(|question| question.wanted()?.part());
        let parts: Vec<_> = parts.cloned().collect();
        let any = !parts.is_empty();
        if parts.len() > 1 {
            let parts = Parts::new(parts);
            for question in &mut self.all {
                let part = question.wanted().and_then(|wanted| wanted.part());
                question.part = part.and_then(|part| parts.number(&part.value()));
            }
            self.parts = Some(parts);
        }
        any
    }

    fn ask(&self, text: &str, hits: &mut Hits, found: &mut Found) {
        if self.all.iter().all(|question| hits.has(question.condition)) {
            return;
        }
        let value = Value::of(text);
        if let Some(parts) = &self.parts {
            parts.find(&value, found);
        }
        for question in &self.all {
            if hits.has(question.condition) {
                continue;
            }
            let contains = question.part.map(|part| found.has(part));
            if question.wanted().is_some_and(|wanted| wanted.is_hit(&value, contains)) {
                hits.set(question.condition);
            }
        }
    }
}

impl Question {
    fn wanted(&self) -> Option<&Wanted> {
        self.filter.payload.get(self.number).map(|about| &about.wanted)
    }
}

/// The filters of an application have fewer conditions than this by far.
fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
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

impl Member {
    /// Whether one of its conditions about the payload holds.
    pub(super) fn is_met(&self, condition: usize, hits: &Hits) -> bool {
        let asked = self.conditions.get(condition);
        asked.is_some_and(|asked| self.filter.is_met(condition, hits.has(asked.condition as usize)))
    }
}

/// One message on its way through the filters.
#[derive(Debug)]
pub struct FilterRun<'a> {
    filters: &'a FilterSet,
    facts: FilterInput<'a>,
    /// Once the payload has been read.
    hits: Option<Hits>,
}

impl FilterRun<'_> {
    /// Whether the filter of an endpoint, by its place, lets the message through. One without a filter does.
    pub fn passes(&mut self, member: usize) -> bool {
        let Some(Some(member)) = self.filters.members.get(member) else { return true };
        if member.conditions.is_empty() {
            return member.filter.root.holds(&self.facts, &|_| false);
        }
        let hits = self.hits.get_or_insert_with(|| self.filters.read(self.facts.payload, |_, _| ()));
        member.filter.root.holds(&self.facts, &|condition| member.is_met(condition, hits))
    }
}
