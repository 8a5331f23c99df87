//! What a header says: text with placeholders, read once.

use std::borrow::Cow;

/// What stands for something of the message or the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placeholder {
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
pub(super) const PLACEHOLDERS: [(&str, Placeholder); 10] = [
    ("id", Placeholder::Id),
    ("eventId", Placeholder::EventId),
    ("type", Placeholder::Type),
    ("timestamp", Placeholder::Timestamp),
    ("timestampMs", Placeholder::TimestampMs),
    ("attempt", Placeholder::Attempt),
    ("version", Placeholder::Version),
    ("endpoint", Placeholder::Endpoint),
    ("app", Placeholder::App),
    ("signature", Placeholder::Signature),
];

const MAX_FIELD_BYTES: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Placeholder(Placeholder),
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
                parts.push(TemplatePart::Text(std::mem::take(&mut plain)));
            }
            parts.push(TemplatePart::Placeholder(field(name, fields)?));
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(TemplatePart::Text(plain));
        }
        Ok(Self(parts))
    }

    pub(super) fn contains(&self, field: Placeholder) -> bool {
        self.0.contains(&TemplatePart::Placeholder(field))
    }

    /// `None`: a placeholder stands for nothing this time.
    pub(super) fn fill<'a>(
        &'a self,
        get: impl Fn(Placeholder) -> Option<Cow<'a, str>>,
    ) -> Option<Cow<'a, str>> {
        match &self.0[..] {
            [TemplatePart::Placeholder(field)] => get(*field),
            [TemplatePart::Text(text)] => Some(text.into()),
            parts => {
                let mut filled = String::new();
                for part in parts {
                    match part {
                        TemplatePart::Text(text) => filled.push_str(text),
                        TemplatePart::Placeholder(field) => filled.push_str(&get(*field)?),
                    }
                }
                Some(filled.into())
            }
        }
    }
}

fn field(name: &str, fields: &mut Vec<String>) -> Result<Placeholder, String> {
    if let Some((_, field)) = PLACEHOLDERS.iter().find(|(known, _)| *known == name) {
        return Ok(*field);
    }
    let Some(of_payload) = name.strip_prefix("payload.") else {
        let known: Vec<_> = PLACEHOLDERS.iter().map(|(known, _)| format!("{{{known}}}")).collect();
        let known = known.join(", ");
        return Err(format!("`{{{name}}}` is no placeholder; there are: {known}, {{payload.<field>}}"));
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !(1..=MAX_FIELD_BYTES).contains(&of_payload.len()) || !of_payload.bytes().all(allowed) {
        return Err(format!(
            "`{{{name}}}`: a field of the payload is 1 to {MAX_FIELD_BYTES} letters, digits, `_` or `-`, and stands \
             at its top"
        ));
    }
    let known = fields.iter().position(|known| known == of_payload);
    Ok(Placeholder::Payload(known.unwrap_or_else(|| {
        fields.push(of_payload.to_owned());
        fields.len() - 1
    })))
}
