use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The maximum length of a template, in bytes.
pub const MAX_TEMPLATE: usize = 256;

/// The signed text: `{id}`, `{timestamp}` and `{body}` with text between them, such as `{id}.{timestamp}.{body}` or
/// `v0:{timestamp}:{body}`. `{{` and `}}` are literal braces.
///
/// Parts may follow each other directly, for senders that sign that way. If you can choose, use a separator: otherwise
/// the end of one part could be read as the beginning of the next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    Text(String),
    Id,
    Timestamp,
    Body,
}

/// Why a text is not a template.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateError {
    /// The text is too long.
    #[error("a template has at most {MAX_TEMPLATE} bytes")]
    TooLong,
    /// The text does not have `{body}` exactly once.
    #[error("a template must contain `{{body}}` once")]
    Body,
    /// The text has `{id}` or `{timestamp}` more than once.
    #[error("`{{id}}` and `{{timestamp}}` may each be in a template once")]
    Twice,
    /// The text has an unknown placeholder or a single brace.
    #[error(
        "a template may contain `{{id}}`, `{{timestamp}}` and `{{body}}`; write single braces as `{{{{` and `}}}}`"
    )]
    Placeholder,
}

impl Template {
    /// The body alone.
    pub fn body() -> Self {
        Self(vec![Part::Body])
    }

    /// Reads a template such as `{timestamp}.{body}`.
    ///
    /// # Errors
    /// Fails if the text is not a template.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.len() > MAX_TEMPLATE {
            return Err(TemplateError::TooLong);
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(sign) = rest.chars().next() {
            rest = if let Some(after) = rest.strip_prefix("{{") {
                push_text(&mut parts, '{');
                after
            } else if let Some(after) = rest.strip_prefix("}}") {
                push_text(&mut parts, '}');
                after
            } else if let Some(placeholder) = rest.strip_prefix('{') {
                let (name, after) = placeholder.split_once('}').ok_or(TemplateError::Placeholder)?;
                parts.push(match name {
                    "id" => Part::Id,
                    "timestamp" => Part::Timestamp,
                    "body" => Part::Body,
                    _ => return Err(TemplateError::Placeholder),
                });
                after
            } else if sign == '}' {
                return Err(TemplateError::Placeholder);
            } else {
                push_text(&mut parts, sign);
                &rest[sign.len_utf8()..]
            };
        }
        let template = Self(parts);
        match (template.count(&Part::Body), template.count(&Part::Id), template.count(&Part::Timestamp)) {
            (1, 0..=1, 0..=1) => Ok(template),
            (1, ..) => Err(TemplateError::Twice),
            _ => Err(TemplateError::Body),
        }
    }

    /// Whether the signature covers the event's id.
    pub fn has_id(&self) -> bool {
        self.count(&Part::Id) > 0
    }

    /// Whether the signature covers a timestamp.
    pub fn has_timestamp(&self) -> bool {
        self.count(&Part::Timestamp) > 0
    }

    fn count(&self, part: &Part) -> usize {
        self.0.iter().filter(|one| *one == part).count()
    }

    /// The signed text of a message, in parts.
    pub(crate) fn fill<'a>(&'a self, id: &'a str, timestamp: &'a str, body: &'a [u8]) -> Vec<&'a [u8]> {
        let filled = self.0.iter().map(|part| match part {
            Part::Text(text) => text.as_bytes(),
            Part::Id => id.as_bytes(),
            Part::Timestamp => timestamp.as_bytes(),
            Part::Body => body,
        });
        filled.collect()
    }
}

fn push_text(parts: &mut Vec<Part>, sign: char) {
    if let Some(Part::Text(text)) = parts.last_mut() {
        text.push(sign);
    } else {
        parts.push(Part::Text(sign.into()));
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        Self::parse(text)
    }
}

/// The format of [`Template::parse`].
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.0 {
            match part {
                Part::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}"))?,
                Part::Id => f.write_str("{id}")?,
                Part::Timestamp => f.write_str("{timestamp}")?,
                Part::Body => f.write_str("{body}")?,
            }
        }
        Ok(())
    }
}
