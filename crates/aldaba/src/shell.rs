//! Text that a reader can paste into a shell.

use std::path::{Path, PathBuf};

/// Quotes a word for a POSIX shell, where it needs quotes.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@+=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The absolute path of a folder, quoted, so that the command works in any working directory.
pub(crate) fn full_path(folder: &Path) -> String {
    let path = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    // `components` drops the `.` that `./aldaba-data` would leave in the middle.
    quoted(&path.components().collect::<PathBuf>().display().to_string())
}
