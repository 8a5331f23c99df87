//! What is wrong with a request.

use serde::Serialize;

/// Bytes of a part of a place, and of a message: both may repeat what the caller has written.
const MAX_PART_BYTES: usize = 256;
const MAX_MESSAGE_BYTES: usize = 2048;

/// One thing that is wrong with a request, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where: `body`, then the field. SDKs read strings: an item of a list is `[0]`.
    pub loc: Vec<String>,
    /// What is wrong.
    pub msg: String,
    /// The kind of problem, for programs.
    #[serde(rename = "type")]
    pub kind: &'static str,
}

/// All that is wrong with a request, as far as it is listed.
#[derive(Clone, Debug)]
pub struct Problems {
    listed: Vec<Problem>,
    more: usize,
    max: usize,
}

impl Default for Problems {
    fn default() -> Self {
        Self::up_to(Self::MAX_LISTED)
    }
}

impl Problems {
    /// How many are listed if there are more than one more. Then that one says how many are not.
    pub const MAX_LISTED: usize = 20;

    /// None yet. No more than so many are listed.
    #[must_use]
    pub fn up_to(max: usize) -> Self {
        Self { listed: Vec::new(), more: 0, max }
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// Whether further problems are counted only.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.listed.len() > self.max
    }

    /// Notes one more.
    pub fn push(&mut self, problem: Problem) {
        if !self.is_full() {
            self.listed.push(problem);
        } else {
            self.more += 1;
        }
    }

    /// Whether anything is wrong with a field of the body.
    #[must_use]
    pub fn has_field(&self, name: &str) -> bool {
        self.listed.iter().any(|problem| problem.loc.get(1).is_some_and(|field| field == name))
    }

    /// Puts what is listed into the order of the body's fields. Other fields come first.
    pub fn sort_by_field(&mut self, order: &[&str]) {
        let place = |problem: &Problem| {
            problem.loc.get(1).and_then(|field| order.iter().position(|known| known == field))
        };
        self.listed.sort_by_key(place);
    }

    /// As they are shown: the last says how many are not listed.
    #[must_use]
    pub fn into_list(self) -> Vec<Problem> {
        let Self { mut listed, more, max } = self;
        if more > 0 {
            listed.truncate(max);
            let place = listed.first().and_then(|problem| problem.loc.first()).map_or("body", String::as_str);
            let message = format!("and {} more problems that are not listed", more + 1);
            let last = Problem::value(&[place], message);
            listed.push(last);
        }
        listed
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self { listed: vec![problem], ..Self::default() }
    }
}

impl Problem {
    /// A value that is not acceptable.
    #[must_use]
    pub fn value(loc: &[&str], msg: impl Into<String>) -> Self {
        Self::new(loc, msg, "value_error")
    }

    /// A value of another form.
    #[must_use]
    pub fn decode(loc: &[&str], msg: impl Into<String>) -> Self {
        Self::new(loc, msg, "value_error.jsondecode")
    }

    /// The same, of a body at a place of another one.
    #[must_use]
    pub fn within(mut self, place: &[&str]) -> Self {
        let at = self.loc.len().min(1);
        self.loc.splice(at..at, place.iter().map(|part| (*part).to_owned()));
        self
    }

    /// What is long is shortened.
    #[must_use]
    pub fn new(loc: &[&str], msg: impl Into<String>, kind: &'static str) -> Self {
        let part = |part: &&str| match part.len() {
            ..=MAX_PART_BYTES => (*part).to_owned(),
            _ => format!("{}…", &part[..part.floor_char_boundary(MAX_PART_BYTES)]),
        };
        Self { loc: loc.iter().map(part).collect(), msg: shortened(msg.into(), MAX_MESSAGE_BYTES), kind }
    }
}

/// The beginning of a text that is too long.
fn shortened(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
        text.shrink_to_fit();
    }
    text
}
