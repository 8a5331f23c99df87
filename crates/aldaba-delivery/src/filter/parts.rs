//! What all conditions with `contains` at one place ask for, found in one go: reading a long text once for each of a
//! thousand conditions would take seconds.

use super::value::{Scalar, Value, each_item, holds_part};

/// As many texts as are looked for one by one, which is quicker as long as there are so few.
const FEW_TEXTS: usize = 2;

/// Different scalars, by [`Scalar::rank`]. Each has the number of its place.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    all: Box<[Scalar]>,
    /// Where the texts begin.
    texts: usize,
    search: Option<Search>,
}

/// Which parts a value has.
#[derive(Debug, Default)]
pub(super) struct Found {
    bits: Vec<u64>,
    numbers: Vec<usize>,
}

impl Found {
    pub(super) fn has(&self, number: usize) -> bool {
        self.bits.get(number / 64).is_some_and(|bits| bits >> (number % 64) & 1 == 1)
    }

    fn add(&mut self, number: usize) {
        if self.has(number) {
            return;
        }
        if self.bits.len() <= number / 64 {
            self.bits.resize(number / 64 + 1, 0);
        }
        self.bits[number / 64] |= 1 << (number % 64);
        self.numbers.push(number);
    }

    fn clear(&mut self) {
        for number in self.numbers.drain(..) {
            self.bits[number / 64] = 0;
        }
    }
}

impl Parts {
    pub(super) fn new(mut all: Vec<Scalar>) -> Self {
        all.sort_unstable_by(|one, two| one.rank(&two.value()));
        all.dedup_by(|one, two| one.is(&two.value()));
        let texts = all.partition_point(|scalar| !matches!(scalar, Scalar::Text(_)));
        let search = (all.len() - texts > FEW_TEXTS).then(|| {
            let text = |scalar: &Scalar| match scalar {
                Scalar::Text(text) => text.clone(),
                _ => Box::default(),
            };
            Search::new(&all.iter().skip(texts).map(text).collect::<Vec<_>>())
        });
        Self { all: all.into(), texts, search }
    }

    pub(super) fn number(&self, of: &Value<'_>) -> Option<usize> {
        self.all.binary_search_by(|scalar| scalar.rank(of)).ok()
    }

    /// Which of the parts a value contains.
    pub(super) fn find(&self, value: &Value<'_>, found: &mut Found) {
        found.clear();
        match (value, &self.search) {
            (Value::Text(text), Some(search)) => {
                search.run(text, |number| {
                    let new = !found.has(self.texts + number);
                    found.add(self.texts + number);
                    new
                });
            }
            (Value::Text(text), None) => {
                for (number, scalar) in self.all.iter().enumerate().skip(self.texts) {
                    if matches!(scalar, Scalar::Text(part) if holds_part(text, part)) {
                        found.add(number);
                    }
                }
            }
            (Value::List(list), _) => each_item(list, |item| {
                if let Some(number) = self.number(&item) {
                    found.add(number);
                }
                found.numbers.len() < self.all.len()
            }),
            _ => {}
        }
    }
}

/// Looks for many texts at once, byte by byte (Aho and Corasick). Texts are whole characters, so what is found begins
/// and ends with one.
#[derive(Clone, Debug)]
struct Search {
    states: Box<[State]>,
    /// The bytes that lead to the states, by their numbers.
    bytes: Box<[u8]>,
    /// Where each byte leads from the first state.
    start: Box<[u32; 256]>,
}

/// A beginning of one of the texts.
#[derive(Clone, Copy, Debug)]
struct State {
    /// Those that are longer by one byte stand together, in the order of these bytes.
    first: u32,
    after: u32,
    /// Its longest end that is the beginning of a text too.
    shorter: u32,
    /// The first of this and its ever shorter ends that is a whole text.
    whole: Option<u32>,
    /// Which text it is.
    text: Option<u32>,
}

impl Search {
    /// Of different texts in the order of their bytes. It takes time and memory by the bytes that they have together,
    /// however they overlap.
    fn new(texts: &[Box<str>]) -> Self {
        let none = State { first: 0, after: 0, shorter: 0, whole: None, text: None };
        let (mut states, mut bytes) = (vec![none], vec![0]);
        // For each state the texts that begin with it, and its length.
        let mut begins = vec![(0, texts.len(), 0)];
        let mut start = Box::new([0; 256]);
        let mut number = 0;
        while let Some(&(mut from, to, length)) = begins.get(number) {
            let byte = |text: usize| texts.get(text).and_then(|text| text.as_bytes().get(length)).copied();
            if from < to && byte(from).is_none() {
                states[number].text = u32::try_from(from).ok();
                from += 1;
            }
            let shorter = states[number].shorter;
            let ends_here = states[number].text.and(u32::try_from(number).ok());
            let whole = ends_here.or_else(|| states[shorter as usize].whole);
            (states[number].whole, states[number].first) = (whole, count(states.len()));
            while from < to
                && let Some(next) = byte(from)
            {
                let alike = (from..to).find(|text| byte(*text) != Some(next)).unwrap_or(to);
                let new = count(states.len());
                let shorter = if number == 0 { 0 } else { step(&states, &bytes, &start, shorter, next) };
                if number == 0 {
                    start[usize::from(next)] = new;
                }
                states.push(State { shorter, ..none });
                bytes.push(next);
                begins.push((from, alike, length + 1));
                from = alike;
            }
            states[number].after = count(states.len());
            number += 1;
        }
        Self { states: states.into(), bytes: bytes.into(), start }
    }

    /// Calls `tell` with the number of each text that is found, until it says of one that it knows it: then it knows
    /// all the shorter ones that end there, too.
    fn run(&self, text: &[u8], mut tell: impl FnMut(usize) -> bool) {
        let mut at = 0;
        let mut told = |at: u32| {
            let mut whole = self.states[at as usize].whole;
            while let Some(state) = whole.map(|whole| self.states[whole as usize]) {
                if state.text.is_some_and(|text| !tell(text as usize)) {
                    break;
                }
                whole = self.states[state.shorter as usize].whole;
            }
        };
        // The empty text is in every one.
        told(at);
        for byte in text {
            at = step(&self.states, &self.bytes, &self.start, at, *byte);
            if at != 0 {
                told(at);
            }
        }
    }
}

/// From a state on by one byte.
fn step(states: &[State], bytes: &[u8], start: &[u32; 256], mut at: u32, byte: u8) -> u32 {
    while at != 0 {
        let State { first, after, shorter, .. } = states[at as usize];
        let next = bytes.get(first as usize..after as usize).unwrap_or_default();
        if let Ok(place) = next.binary_search(&byte) {
            return first + count(place);
        }
        at = shorter;
    }
    start[usize::from(byte)]
}

/// Filters of an application are smaller than this by far.
fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::number::Written;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn text(text: &str) -> Scalar {
        Scalar::Text(text.into())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn what_is_found_together_is_what_is_found_one_by_one(
            parts in vec("[abé]{0,5}", 1..12), json in "[abé\\\\\"]{0,30}", list: bool,
        ) {
            let items: Vec<_> = json.split('a').map(|item| serde_json::json!(item)).collect();
            let json = if list { serde_json::Value::Array(items) } else { json.into() }.to_string();
            let (value, all) = (Value::of(&json), Parts::new(parts.iter().map(|part| text(part)).collect()));
            let mut found = Found::default();
            for _ in 0..2 {
                all.find(&value, &mut found);
                for part in &parts {
                    let part = text(part);
                    let number = all.number(&part.value()).unwrap();
                    prop_assert_eq!(found.has(number), part.is_in(&value), "{:?} in {}", part, json);
                }
            }
        }
    }

    #[test]
    fn items_of_every_kind_are_found() {
        let number = |text: &str| Scalar::Number(Written::new(text));
        let asked =
            [Scalar::Null, Scalar::Boolean(true), number("1"), number("1e20"), text("x"), number("7")];
        let parts = Parts::new(asked.iter().cloned().chain([number("1.0")]).collect());
        assert_eq!(parts.all.len(), asked.len(), "equal numbers are one");
        let list = Value::of(r#"[true, 100000000000000000000, [null], "\u0078", {"a": 1}, 1.00]"#);
        let mut found = Found::default();
        parts.find(&list, &mut found);
        let has: Vec<_> =
            asked.iter().map(|scalar| found.has(parts.number(&scalar.value()).unwrap())).collect();
        assert_eq!(has, [false, true, true, true, true, false]);
    }

    #[test]
    fn texts_that_end_in_each_other_take_no_more_than_their_bytes() {
        let long = "a".repeat(1000);
        let nested = (1..=300).map(|length| text(&long[..length]));
        let others = (0..100).map(|number| text(&format!("{number}{long}")));
        let parts = Parts::new(nested.chain(others).collect());
        let search = parts.search.as_ref().unwrap();
        assert!(search.states.len() < 103_000, "{}", search.states.len());
        let json = format!("\"{}\"", "a".repeat(1 << 20));
        let (mut found, mut told) = (Found::default(), 0);
        parts.find(&Value::of(&json), &mut found);
        assert_eq!(found.numbers.len(), 300);
        search.run(&json.as_bytes()[1..1001], |number| {
            told += 1;
            let new = !found.has(parts.texts + number);
            found.add(parts.texts + number);
            new
        });
        assert_eq!(told, 1000, "what is known is not told again");
    }
}
