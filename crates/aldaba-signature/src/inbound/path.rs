use serde_json::Value;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The maximum length of a path, in bytes.
pub const MAX_PATH: usize = 256;
/// The maximum number of steps of a path.
pub const MAX_STEPS: usize = 16;

/// A path to one value in a JSON document: `$.data.id`, `$.entry[0]['a name']`. There are no wildcards, so it never
/// selects two values. Of a duplicate key the last one counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    Key(String),
    Index(usize),
}

/// Why a text is not a path.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathError {
    /// The text does not begin with `$` and a step.
    #[error("a path begins with `$`, and a step must follow: `$.data.id`")]
    Start,
    /// The text has too many bytes or steps.
    #[error("a path has at most {MAX_PATH} bytes and {MAX_STEPS} steps")]
    TooLong,
    /// No step begins at this byte.
    #[error("at byte {0} of the path a step must begin: `.name`, `[0]` or `['a name']`")]
    Step(usize),
    /// A name after `.` has characters that need brackets.
    #[error("a name after `.` may contain letters, digits, `_` and `-`; write others as `['a name']`")]
    Name,
    /// The text between brackets is neither a number nor a quoted name.
    #[error("`[…]` must contain a number or a name in `'`")]
    Bracket,
}

impl JsonPath {
    /// Reads a path such as `$.data.id` or `$.items[0]['an id']`.
    ///
    /// # Errors
    /// Fails if the text is not a path.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.len() > MAX_PATH {
            return Err(PathError::TooLong);
        }
        let mut rest = text.strip_prefix('$').ok_or(PathError::Start)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if steps.len() == MAX_STEPS {
                return Err(PathError::TooLong);
            }
            let (step, after) = if let Some(name) = rest.strip_prefix('.') {
                plain_name(name)?
            } else if let Some(quoted) = rest.strip_prefix("['") {
                quoted_name(quoted)?
            } else if let Some(index) = rest.strip_prefix('[') {
                index_of(index)?
            } else {
                return Err(PathError::Step(text.len() - rest.len()));
            };
            steps.push(step);
            rest = after;
        }
        if steps.is_empty() { Err(PathError::Start) } else { Ok(Self(steps)) }
    }

    /// The value at the end of the path, if present.
    pub fn find<'v>(&self, document: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(document, |value, step| match step {
            Step::Key(name) => value.as_object()?.get(name),
            Step::Index(index) => value.as_array()?.get(*index),
        })
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn plain_name(text: &str) -> Result<(Step, &str), PathError> {
    let end = text.bytes().position(|byte| !is_plain(byte)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    // Only another step may follow; anything else was meant as a part of the name.
    if name.is_empty() || !(rest.is_empty() || rest.starts_with(['.', '['])) {
        return Err(PathError::Name);
    }
    Ok((Step::Key(name.to_owned()), rest))
}

/// Reads up to the next `'` that is not escaped by `\`.
fn quoted_name(text: &str) -> Result<(Step, &str), PathError> {
    let mut name = String::new();
    let mut signs = text.char_indices();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '\\' => match signs.next() {
                Some((_, escaped @ ('\'' | '\\'))) => name.push(escaped),
                _ => return Err(PathError::Bracket),
            },
            '\'' => {
                let rest = text[at + 1..].strip_prefix(']').ok_or(PathError::Bracket)?;
                return Ok((Step::Key(name), rest));
            }
            _ => name.push(sign),
        }
    }
    Err(PathError::Bracket)
}

fn index_of(text: &str) -> Result<(Step, &str), PathError> {
    let (digits, rest) = text.split_once(']').ok_or(PathError::Bracket)?;
    // Digits without leading zeros: each index has one spelling.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || (digits.len() > 1 && digits.starts_with('0')) {
        return Err(PathError::Bracket);
    }
    let index = digits.parse().map_err(|_| PathError::Bracket)?;
    Ok((Step::Index(index), rest))
}

impl FromStr for JsonPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::parse(text)
    }
}

/// The format of [`JsonPath::parse`].
impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        for step in &self.0 {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(name) if !name.is_empty() && name.bytes().all(is_plain) => write!(f, ".{name}")?,
                Step::Key(name) => write!(f, "['{}']", name.replace('\\', r"\\").replace('\'', r"\'"))?,
            }
        }
        Ok(())
    }
}
