//! Paths into a payload: `$.order.lines[*].sku`, `$["a key.with dots"][0]`.

use super::{MAX_PATH_BYTES, MAX_PATH_STEPS};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path(Box<[PathStep]>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum PathStep {
    /// The member of an object.
    Key(Box<str>),
    /// The item of a list, from 0.
    Index(u32),
    /// Every item of a list.
    Every,
}

const FORM: &str = "a path begins with `$`; then come steps: `.name`, `[\"any name\"]`, `[0]` or `[*]`";

impl Path {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_PATH_BYTES {
            return Err(format!("may be {MAX_PATH_BYTES} bytes long at most; it is {}", text.len()));
        }
        let Some(mut rest) = text.strip_prefix('$') else {
            return Err(format!("`{text}` is not a path: {FORM}"));
        };
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = step(rest).ok_or_else(|| format!("`{rest}` is not a step: {FORM}"))?;
            steps.push(step);
            rest = after;
        }
        match steps.len() {
            0 => Err("is the whole payload; name a field, such as `$.amount`".to_owned()),
            1..=MAX_PATH_STEPS => Ok(Self(steps.into())),
            many => Err(format!("may have {MAX_PATH_STEPS} steps at most; it has {many}")),
        }
    }

    pub(super) fn steps(&self) -> &[PathStep] {
        &self.0
    }

    /// Whether it may yield more than one value.
    pub(super) fn leads_to_many(&self) -> bool {
        self.0.contains(&PathStep::Every)
    }

    /// The number of steps from values that other paths may share. A path with both `[0]` and `[*]` shares
    /// values with paths that have them in another order, and each reads them again.
    pub(super) fn shared_steps(&self) -> usize {
        let (mut indexed, mut every) = (false, false);
        let from_shared = self.0.iter().filter(|step| {
            let shared = indexed && every;
            indexed |= matches!(step, PathStep::Index(_));
            every |= matches!(step, PathStep::Every);
            shared
        });
        from_shared.count()
    }

    pub(super) fn leads_to_shared(&self) -> bool {
        self.leads_to_many() && self.0.iter().any(|step| matches!(step, PathStep::Index(_)))
    }
}

fn step(text: &str) -> Option<(PathStep, &str)> {
    if let Some(rest) = text.strip_prefix('.') {
        let end = rest.find(|c| !in_plain_name(c)).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        return (!name.is_empty()).then(|| (PathStep::Key(name.into()), rest));
    }
    let inside = text.strip_prefix('[')?;
    if let Some(rest) = inside.strip_prefix("*]") {
        return Some((PathStep::Every, rest));
    }
    if inside.starts_with('"') {
        let mut strings = serde_json::Deserializer::from_str(inside).into_iter::<String>();
        let name = strings.next()?.ok()?;
        let rest = inside.get(strings.byte_offset()..)?.strip_prefix(']')?;
        return Some((PathStep::Key(name.into()), rest));
    }
    let (number, rest) = inside.split_once(']')?;
    let plain =
        number.bytes().all(|byte| byte.is_ascii_digit()) && (number == "0" || !number.starts_with('0'));
    let index = number.parse().ok().filter(|_| plain)?;
    Some((PathStep::Index(index), rest))
}

/// The characters of a name after a dot; other names need brackets.
fn in_plain_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '@')
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        for step in &self.0 {
            match step {
                PathStep::Key(name) if !name.is_empty() && name.chars().all(in_plain_name) => {
                    write!(f, ".{name}")?;
                }
                PathStep::Key(name) => write!(f, "[{}]", serde_json::Value::from(&**name))?,
                PathStep::Index(index) => write!(f, "[{index}]")?,
                PathStep::Every => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> PathStep {
        PathStep::Key(name.into())
    }

    #[test]
    fn a_path_is_a_dollar_and_steps() {
        for (text, steps) in [
            ("$.amount", vec![key("amount")]),
            ("$.a.b[0].c", vec![key("a"), key("b"), PathStep::Index(0), key("c")]),
            ("$[\"key with.dot\"]", vec![key("key with.dot")]),
            ("$[\"a\\\"]\\u00f1\"].b", vec![key("a\"]ñ"), key("b")]),
            ("$[\"\"]", vec![key("")]),
            ("$.lines[*].sku", vec![key("lines"), PathStep::Every, key("sku")]),
            ("$.año.$ref.@id.a-b_c", vec![key("año"), key("$ref"), key("@id"), key("a-b_c")]),
            ("$[4294967295]", vec![PathStep::Index(u32::MAX)]),
        ] {
            assert_eq!(Path::parse(text).map(|path| path.0.into_vec()), Ok(steps), "{text}");
        }
    }

    #[test]
    fn invalid_paths_are_rejected() {
        let deep = format!("${}", ".a".repeat(MAX_PATH_STEPS + 1));
        let long = format!("$.{}", "a".repeat(MAX_PATH_BYTES));
        for text in [
            "",
            "$",
            "amount",
            ".amount",
            "$amount",
            "$.",
            "$..a",
            "$.a.",
            "$.a b",
            "$[",
            "$[]",
            "$[a]",
            "$[01]",
            "$[-1]",
            "$[+1]",
            "$[1.0]",
            "$[4294967296]",
            "$[*",
            "$[**]",
            "$[?(@.a)]",
            "$['a']",
            "$[\"a]",
            "$[\"a\"",
            "$[\"a\" ]",
            "$[ \"a\"]",
            "$[\"a\"b\"]",
            "$.a[0:2]",
            "$ .a",
            "$.a\n",
            &deep,
            &long,
        ] {
            assert!(Path::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_formatted_path_parses_back() {
        for text in ["$.a.b[0].c", "$[\"key with.dot\"][*]", "$[\"\"].ñ", "$[\"a\\\"b\\\\\"]"] {
            assert_eq!(Path::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Path::parse("$[\"plain\"]").unwrap().to_string(), "$.plain");
    }
}
