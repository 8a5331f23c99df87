//! Searches the operands of all `contains` conditions on a path at once: reading a long text once for each of a
//! thousand conditions would take seconds.

use super::value::{PayloadValue, Scalar, contains_substring, each_item};

/// Up to this number texts are searched one by one, which is faster.
const MAX_LINEAR_SEARCHES: usize = 2;

/// Distinct scalars, by [`Scalar::rank`], each with its index.
#[derive(Clone, Debug)]
pub(super) struct SubstringSet {
    all: Box<[Scalar]>,
    /// The index of the first text.
    texts: usize,
    search: Option<Automaton>,
}

/// The operands found in a value.
#[derive(Debug, Default)]
pub(super) struct FoundSubstrings {
    bits: Vec<u64>,
    numbers: Vec<usize>,
}

impl FoundSubstrings {
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

impl SubstringSet {
    pub(super) fn new(mut all: Vec<Scalar>) -> Self {
        all.sort_unstable_by(|one, two| one.rank(&two.value()));
        all.dedup_by(|one, two| one.is(&two.value()));
        let texts = all.partition_point(|scalar| !matches!(scalar, Scalar::Text(_)));
        let search = (all.len() - texts > MAX_LINEAR_SEARCHES).then(|| {
            let text = |scalar: &Scalar| match scalar {
                Scalar::Text(text) => text.clone(),
                _ => Box::default(),
            };
            Automaton::new(&all.iter().skip(texts).map(text).collect::<Vec<_>>())
        });
        Self { all: all.into(), texts, search }
    }

    pub(super) fn number(&self, of: &PayloadValue<'_>) -> Option<usize> {
        self.all.binary_search_by(|scalar| scalar.rank(of)).ok()
    }

    /// Finds the operands that a value contains.
    pub(super) fn find(&self, value: &PayloadValue<'_>, found: &mut FoundSubstrings) {
        found.clear();
        match (value, &self.search) {
            (PayloadValue::Text(text), Some(search)) => {
                search.run(text, |number| {
                    let new = !found.has(self.texts + number);
                    found.add(self.texts + number);
                    new
                });
            }
            (PayloadValue::Text(text), None) => {
                for (number, scalar) in self.all.iter().enumerate().skip(self.texts) {
                    if matches!(scalar, Scalar::Text(substring) if contains_substring(text, substring)) {
                        found.add(number);
                    }
                }
            }
            (PayloadValue::List(list), _) => each_item(list, |item| {
                if let Some(number) = self.number(&item) {
                    found.add(number);
                }
                found.numbers.len() < self.all.len()
            }),
            _ => {}
        }
    }
}

/// Searches for many texts at once, byte by byte (Aho–Corasick). Texts are whole characters, so that matches
/// begin and end at character boundaries.
#[derive(Clone, Debug)]
struct Automaton {
    states: Box<[AutomatonState]>,
    /// The byte that leads to each state.
    bytes: Box<[u8]>,
    /// The transitions from the first state.
    start: Box<[u32; 256]>,
}

/// A prefix of one of the texts.
#[derive(Clone, Copy, Debug)]
struct AutomatonState {
    /// The states that are one byte longer are adjacent, ordered by that byte.
    first: u32,
    after: u32,
    /// The longest proper suffix that is also a prefix of a text.
    shorter: u32,
    /// The longest suffix, this state included, that is a whole text.
    whole: Option<u32>,
    /// The index of the text.
    text: Option<u32>,
}

impl Automaton {
    /// Builds the automaton of distinct texts in byte order. Time and memory grow with their total length,
    /// however they overlap.
    fn new(texts: &[Box<str>]) -> Self {
        let none = AutomatonState { first: 0, after: 0, shorter: 0, whole: None, text: None };
        let (mut states, mut bytes) = (vec![none], vec![0]);
        // For each state: the range of texts with this prefix, and its length.
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
                states.push(AutomatonState { shorter, ..none });
                bytes.push(next);
                begins.push((from, alike, length + 1));
                from = alike;
            }
            states[number].after = count(states.len());
            number += 1;
        }
        Self { states: states.into(), bytes: bytes.into(), start }
    }

    /// Calls `report` with the index of each text found, until it returns `false` for a known one: then all
    /// shorter ones that end there are known too.
    fn run(&self, text: &[u8], mut report: impl FnMut(usize) -> bool) {
        let mut at = 0;
        let mut report_at = |at: u32| {
            let mut whole = self.states[at as usize].whole;
            while let Some(state) = whole.map(|whole| self.states[whole as usize]) {
                if state.text.is_some_and(|text| !report(text as usize)) {
                    break;
                }
                whole = self.states[state.shorter as usize].whole;
            }
        };
        // Every text contains the empty text.
        report_at(at);
        for byte in text {
            at = step(&self.states, &self.bytes, &self.start, at, *byte);
            if at != 0 {
                report_at(at);
            }
        }
    }
}

/// The next state after one byte.
fn step(states: &[AutomatonState], bytes: &[u8], start: &[u32; 256], mut at: u32, byte: u8) -> u32 {
    while at != 0 {
        let AutomatonState { first, after, shorter, .. } = states[at as usize];
        let next = bytes.get(first as usize..after as usize).unwrap_or_default();
        if let Ok(place) = next.binary_search(&byte) {
            return first + count(place);
        }
        at = shorter;
    }
    start[usize::from(byte)]
}

/// An application's filters are far smaller than this.
fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::number::NumberLiteral;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn text(text: &str) -> Scalar {
        Scalar::Text(text.into())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn a_combined_search_finds_what_single_searches_find(
            substrings in vec("[abé]{0,5}", 1..12), json in "[abé\\\\\"]{0,30}", list: bool,
        ) {
            let items: Vec<_> = json.split('a').map(|item| serde_json::json!(item)).collect();
            let json = if list { serde_json::Value::Array(items) } else { json.into() }.to_string();
            let (value, all) = (PayloadValue::of(&json), SubstringSet::new(substrings.iter().map(|substring| text(substring)).collect()));
            let mut found = FoundSubstrings::default();
            for _ in 0..2 {
                all.find(&value, &mut found);
                for substring in &substrings {
                    let substring = text(substring);
                    let number = all.number(&substring.value()).unwrap();
                    prop_assert_eq!(found.has(number), substring.is_in(&value), "{:?} in {}", substring, json);
                }
            }
        }
    }

    #[test]
    fn list_items_of_every_type_are_found() {
        let number = |text: &str| Scalar::JsonNumber(NumberLiteral::new(text));
        let asked =
            [Scalar::Null, Scalar::Boolean(true), number("1"), number("1e20"), text("x"), number("7")];
        let substrings = SubstringSet::new(asked.iter().cloned().chain([number("1.0")]).collect());
        assert_eq!(substrings.all.len(), asked.len(), "equal numbers are one");
        let list = PayloadValue::of(r#"[true, 100000000000000000000, [null], "\u0078", {"a": 1}, 1.00]"#);
        let mut found = FoundSubstrings::default();
        substrings.find(&list, &mut found);
        let has: Vec<_> =
            asked.iter().map(|scalar| found.has(substrings.number(&scalar.value()).unwrap())).collect();
        assert_eq!(has, [false, true, true, true, true, false]);
    }

    #[test]
    fn overlapping_texts_need_no_more_states_than_bytes() {
        let long = "a".repeat(1000);
        let nested = (1..=300).map(|length| text(&long[..length]));
        let others = (0..100).map(|number| text(&format!("{number}{long}")));
        let substrings = SubstringSet::new(nested.chain(others).collect());
        let search = substrings.search.as_ref().unwrap();
        assert!(search.states.len() < 103_000, "{}", search.states.len());
        let json = format!("\"{}\"", "a".repeat(1 << 20));
        let (mut found, mut told) = (FoundSubstrings::default(), 0);
        substrings.find(&PayloadValue::of(&json), &mut found);
        assert_eq!(found.numbers.len(), 300);
        search.run(&json.as_bytes()[1..1001], |number| {
            told += 1;
            let new = !found.has(substrings.texts + number);
            found.add(substrings.texts + number);
            new
        });
        assert_eq!(told, 1000, "known matches are not reported again");
    }
}
