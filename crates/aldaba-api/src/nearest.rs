//! Finds the known name that a misspelt one probably means.

/// Longer names are not compared: it would be slow, and no field has such a name.
const MAX_COMPARED_BYTES: usize = 64;

/// The known name that differs from `name` in case and separators only, or in few letters.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let letters = letters(name);
    let compared = known.iter().map(|known| (distance(&letters, &self::letters(known)), *known));
    let (distance, nearest) = compared.min_by_key(|(distance, _)| *distance)?;
    (distance <= letters.len() / 3).then_some(nearest)
}

/// The error text for an unknown field: the likely one, or all fields.
pub fn unknown_field(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(meant) => format!("unknown field; did you mean \"{meant}\"?"),
        None if known.is_empty() => "unknown field; this request takes none".to_owned(),
        None => format!("unknown field; there are: {}", known.join(", ")),
    }
}

/// The same for a field that belongs into one of the objects of its own.
pub fn misplaced_field(name: &str, known: &[&str], inner: &[(&str, &[&str])]) -> Option<String> {
    if nearest(name, known).is_some() {
        return None;
    }
    let meant = inner.iter().find_map(|(object, known)| Some((object, nearest(name, known)?)));
    meant.map(|(object, field)| format!("unknown field; did you mean \"{object}.{field}\"?"))
}

/// The letters of a name, without case and separators: the same for `dry_run`, `dry-run` and `dryRun`.
pub fn letters(name: &str) -> Vec<char> {
    name.chars().filter(|sign| sign.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The edit distance: letters added, removed, replaced or swapped with their neighbour.
pub fn distance(one: &[char], other: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, other_letter) in other.iter().enumerate() {
            let replaced = last[j] + usize::from(letter != other_letter);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == other[j - 1] && one[i - 1] == *other_letter {
                least = least.min(before_last[j - 1] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 5] = ["since", "until", "dryRun", "eventTypes", "channel"];

    #[test]
    fn other_spellings_and_typos_are_recognised() {
        for (given, meant) in [
            ("dry_run", "dryRun"),
            ("DRY-RUN", "dryRun"),
            ("event_types", "eventTypes"),
            ("eventType", "eventTypes"),
            ("evnetTypes", "eventTypes"),
            ("chanel", "channel"),
            ("sinse", "since"),
        ] {
            assert_eq!(nearest(given, &KNOWN), Some(meant), "{given}");
        }
    }

    #[test]
    fn distant_names_match_nothing() {
        for given in ["", "_", "x", "limit", "ñandú", &"since".repeat(20)] {
            assert_eq!(nearest(given, &KNOWN), None, "{given}");
        }
        assert_eq!(nearest("since", &[]), None);
    }
}
