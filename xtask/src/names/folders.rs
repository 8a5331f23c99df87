//! Limits how many files a folder has at its top, so that a reader can take in a listing.

use super::entries;
use std::path::{Path, PathBuf};

/// Files at the top of one folder; folders inside it do not count, and migrations are one list.
const MAX_FILES: usize = 25;

/// Every folder in and below `folders` that has too many files.
pub(super) fn problems(folders: &[PathBuf]) -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    for folder in folders {
        check(folder, &mut problems)?;
    }
    Ok(problems)
}

fn check(folder: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let (inside, mut files): (Vec<_>, Vec<_>) = entries(folder)?.into_iter().partition(|path| path.is_dir());
    files.retain(|path| !is_migration(path));
    if files.len() > MAX_FILES {
        let count = files.len();
        problems.push(format!(
            "{}: {count} files; at most {MAX_FILES} are allowed: move some into folders",
            folder.display()
        ));
    }
    inside.iter().try_for_each(|folder| check(folder, problems))
}

/// A numbered step of a schema, such as `0012_history.sql`: only the newest one is ever looked for.
fn is_migration(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = name.strip_suffix(".sql").and_then(|name| name.split('_').next());
    number.is_some_and(|number| number.len() == 4 && number.bytes().all(|sign| sign.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::background::Folder;
    use std::fs;

    #[test]
    fn a_folder_with_too_many_files_is_named_and_its_folders_do_not_count() {
        let folder = Folder::new().unwrap();
        let inner = folder.0.join("inner");
        fs::create_dir(&inner).unwrap();
        for number in 0..MAX_FILES {
            fs::write(inner.join(format!("{number}.rs")), "").unwrap();
        }
        let found = || problems(std::slice::from_ref(&folder.0)).unwrap();
        assert_eq!(found(), Vec::<String>::new());
        fs::create_dir(inner.join("deeper")).unwrap();
        assert_eq!(found(), Vec::<String>::new());
        fs::write(inner.join("one_more.rs"), "").unwrap();
        let found = found();
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("inner: 26 files; at most 25"), "{found:?}");
    }

    #[test]
    fn numbered_migrations_do_not_count() {
        let folder = Folder::new().unwrap();
        for number in 0..=MAX_FILES {
            fs::write(folder.0.join(format!("{number:04}_step.sql")), "").unwrap();
        }
        assert_eq!(problems(std::slice::from_ref(&folder.0)).unwrap(), Vec::<String>::new());
        for name in ["1_step.sql", "0001_step.rs", "schema.sql"] {
            assert!(!is_migration(Path::new(name)), "{name}");
        }
    }
}
