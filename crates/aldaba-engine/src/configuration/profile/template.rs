//! What a header says: text with placeholders, read once.

use std::borrow::Cow;

/// What stands for something of the message or the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Id,
    /// What the sender calls the event; the id of the message where it gave none.
    EventId,
    Type,
    /// In seconds.
    Timestamp,
    TimestampMs,
    /// 0 for the first.
    Attempt,
    Version,
    Endpoint,
    App,
    Signature,
    /// A field of the payload, by its place among those that the profile names.
    Payload(usize),
}

/// `{name}` of each, but for `{payload.<field>}`.
pub(super) const FIELDS: [(&str, Field); 10] = [
    ("id", Field::Id),
    ("eventId", Field::EventId),
    ("type", Field::Type),
    ("timestamp", Field::Timestamp),
    ("timestampMs", Field::TimestampMs),
    ("attempt", Field::Attempt),
    ("version", Field::Version),
    ("endpoint", Field::Endpoint),
    ("app", Field::App),
    ("signature", Field::Signature),
];

const LONGEST_FIELD: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(Field),
}

impl Template {
    /// Reads `text`. Fields of the payload that it names are added to `fields`. The error says what is
    /// wrong.
    pub(super) fn parse(text: &str, fields: &mut Vec<String>) -> Result<Self, String> {
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let (sign, after) = rest[at..].split_at(1);
            if after.starts_with(sign) {
                plain.push_str(sign);
                rest = &after[1..];
                continue;
            }
            let name = match (sign, after.split_once('}')) {
                ("{", Some((name, after))) => {
                    rest = after;
                    name
                }
                ("{", None) => return Err("a `{` is not closed; for the sign itself write `{{`".into()),
                _ => return Err("a `}` closes nothing; for the sign itself write `}}`".into()),
            };
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Field(field(name, fields)?));
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self(parts))
    }

    pub(super) fn asks_for(&self, field: Field) -> bool {
        self.0.contains(&Part::Field(field))
    }

    /// `None`: a placeholder stands for nothing this time.
    pub(super) fn fill<'a>(&'a self, get: impl Fn(Field) -> Option<Cow<'a, str>>) -> Option<Cow<'a, str>> {
        match &self.0[..] {
            [Part::Field(field)] => get(*field),
            [Part::Text(text)] => Some(text.into()),
            parts => {
                let mut filled = String::new();
                for part in parts {
                    match part {
                        Part::Text(text) => filled.push_str(text),
                        Part::Field(field) => filled.push_str(&get(*field)?),
                    }
                }
                Some(filled.into())
            }
        }
    }
}

fn field(name: &str, fields: &mut Vec<String>) -> Result<Field, String> {
    if let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) {
        return Ok(*field);
    }
    let Some(of_payload) = name.strip_prefix("payload.") else {
        let known: Vec<_> = FIELDS.iter().map(|(known, _)| format!("{{{known}}}")).collect();
        let known = known.join(", ");
        return Err(format!("`{{{name}}}` is no placeholder; there are: {known}, {{payload.<field>}}"));
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !(1..=LONGEST_FIELD).contains(&of_payload.len()) || !of_payload.bytes().all(allowed) {
        return Err(format!(
            "`{{{name}}}`: a field of the payload is 1 to {LONGEST_FIELD} letters, digits, `_` or `-`, and stands \
             at its top"
        ));
    }
    let known = fields.iter().position(|known| known == of_payload);
    Ok(Field::Payload(known.unwrap_or_else(|| {
        fields.push(of_payload.to_owned());
        fields.len() - 1
    })))
}
