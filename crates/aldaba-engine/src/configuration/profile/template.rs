//! Header templates: text with placeholders, parsed once.

use std::borrow::Cow;

/// A placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placeholder {
    Id,
    /// The sender's event id, or else the message id.
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
    /// The W3C trace context of the attempt.
    Traceparent,
    /// A payload field, by its index among the profile's fields.
    Payload(usize),
}

/// The name of each, except `{payload.<field>}`.
pub(super) const PLACEHOLDERS: [(&str, Placeholder); 11] = [
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
    ("traceparent", Placeholder::Traceparent),
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
    /// Parses `text` and adds its payload fields to `fields`. The error describes the problem.
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
                ("{", None) => return Err("a `{` is not closed; write `{{` for a literal one".into()),
                _ => return Err("a `}` has no opening `{`; write `}}` for a literal one".into()),
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

    /// Fills the placeholders. `None`: one has no value.
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
        return Err(format!("`{{{name}}}` is not a placeholder; known ones: {known}, {{payload.<field>}}"));
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
