//! Lists of names in one column, as netstrings: `4:paid,6:refund,`. Any text can be a name.

use crate::operations::column::unknown;
use crate::operations::transaction::Result;
use std::fmt::Write as _;

pub(crate) fn write(names: &[String]) -> String {
    names.iter().fold(String::new(), |mut text, name| {
        let _ = write!(text, "{}:{name},", name.len());
        text
    })
}

/// Names and values by turns.
pub(crate) fn write_pairs(pairs: &[(String, String)]) -> String {
    let parts = pairs.iter().flat_map(|(name, value)| [name, value]);
    parts.fold(String::new(), |mut text, part| {
        let _ = write!(text, "{}:{part},", part.len());
        text
    })
}

pub(crate) fn read(text: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, after) = first(rest).ok_or_else(|| unknown("list of names", text))?;
        names.push(name.to_owned());
        rest = after;
    }
    Ok(names)
}

fn first(text: &str) -> Option<(&str, &str)> {
    let (length, rest) = text.split_once(':')?;
    let (name, rest) = rest.split_at_checked(length.parse().ok()?)?;
    Some((name, rest.strip_prefix(',')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_names_come_back_as_they_were() {
        for names in [vec![], vec!["a"], vec!["", ",", "3:x,", "ñandú\n"]] {
            let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            assert_eq!(read(&write(&names)).unwrap(), names);
        }
    }

    #[test]
    fn what_is_no_list_is_an_error() {
        for text in ["x", "1:", "1:a", "9:a,", "-1:a,", "1:ñ,"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
