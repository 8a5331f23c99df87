//! What the modes of a field mean in each form of its body. A function is named after the mode:
//!
//! | mode | left out | null | in answers |
//! | --- | --- | --- | --- |
//! | `required` | refused, but in a patch | refused | always there |
//! | `needed` | refused; an `Option` for clients all the same | refused | – |
//! | `nullable` | null | clears it | null if there is none |
//! | `omitted` | null | clears it | left out if there is none |
//! | `given` | the default | refused | always there |
//! | `or_default` | the default | the default | always there |
//! | `or_kept` | the default | the default, refused in a patch | always there |
//! | `reset` | the default | the default, and clears it in a patch | always there |
//! | `cleared` | null | null | – |
//! | `stated` | null | null | null if there is none, in requests of clients too |
//! | `or_none` | the default | none | null if there is none |
//! | `map` | empty | empty | always there |

/// The fields of a new object, or of a whole one.
pub mod whole {
    use super::{either, is_given};
    use crate::Set;
    use crate::read::{FieldKind, Fields};

    /// One name, and perhaps an older one for the same.
    #[derive(Clone, Copy, Debug)]
    pub struct Names {
        /// The name.
        pub name: &'static str,
        /// The older one.
        pub older: Option<&'static str>,
        /// What the body is about may be there already.
        pub is_change: bool,
    }

    /// Must be there.
    pub fn required<K: FieldKind>(fields: &mut Fields, kind: &K, at: Names) -> K::Value {
        needed(fields, kind, at).unwrap_or_else(|| kind.default())
    }

    /// Must be there.
    pub fn needed<K: FieldKind>(fields: &mut Fields, kind: &K, at: Names) -> Option<K::Value> {
        let older = at.older.filter(|older| fields.has(older) && !fields.has(at.name));
        let name = older.unwrap_or(at.name);
        if !fields.has(name) {
            match kind.hint() {
                "" => fields.require(name),
                hint => fields.problem(name, format!("this field is required: {hint}")),
            }
        } else if fields.is_null(name) && !K::TAKES_NULL {
            fields.refuse_null(name, kind.expected());
        }
        either(fields, kind, at)
    }

    /// May be left out or null.
    pub fn nullable<K: FieldKind>(fields: &mut Fields, kind: &K, at: Names) -> Option<K::Value> {
        either(fields, kind, at)
    }

    pub use self::nullable as omitted;
    pub use self::nullable as or_default;
    pub use self::nullable as or_kept;
    pub use self::nullable as reset;
    pub use self::nullable as stated;

    /// May be left out, but not be null.
    pub fn given<K: FieldKind>(fields: &mut Fields, kind: &K, at: Names) -> Option<K::Value> {
        if fields.is_null(at.name) {
            fields.refuse_null(at.name, kind.expected());
            return None;
        }
        either(fields, kind, at)
    }

    /// May be left out or null.
    pub fn cleared<K: FieldKind>(fields: &mut Fields, kind: &K, at: Names) -> Set<K::Value> {
        either(fields, kind, at).map_or(Set::Clear, Set::To)
    }

    /// Keeps, clears or sets the value.
    pub fn or_none<K: FieldKind>(fields: &mut Fields, kind: &K, at: Names) -> Set<K::Value> {
        match is_given(fields, at) {
            true => either(fields, kind, at).map_or(Set::Clear, Set::To),
            false => Set::Keep,
        }
    }

    /// May be left out or null.
    pub fn map<K: FieldKind>(fields: &mut Fields, kind: &K, at: Names) -> K::Value {
        either(fields, kind, at).unwrap_or_else(|| kind.default())
    }
}

/// The fields of a change.
pub mod patch {
    use super::whole::{self, Names};
    use super::{either, is_given};
    use crate::read::{FieldKind, Fields};

    /// Keeps the value, or sets it.
    pub fn given<K: FieldKind>(fields: &mut Fields, kind: &K, at: Names) -> Option<K::Value> {
        whole::given(fields, kind, at)
    }

    pub use self::given as required;

    pub use super::whole::or_none as nullable;
    pub use super::whole::or_none as omitted;
    pub use super::whole::or_none as reset;

    /// Keeps the value, or sets it; null sets the default.
    pub fn or_default<K: FieldKind>(fields: &mut Fields, kind: &K, at: Names) -> Option<K::Value> {
        is_given(fields, at).then(|| either(fields, kind, at).unwrap_or_else(|| kind.default()))
    }

    pub use self::or_default as map;

    /// Keeps the value, or sets it.
    pub fn or_kept<K: FieldKind>(fields: &mut Fields, kind: &K, at: Names) -> Option<K::Value> {
        if fields.is_null(at.name) {
            fields.problem(at.name, "cannot be null; leave it out");
        }
        either(fields, kind, at)
    }
}

/// A change laid over what there is.
pub mod over {
    use crate::Set;

    /// Keeps what is not given.
    pub fn required<T>(patch: Option<T>, current: T) -> T {
        patch.unwrap_or(current)
    }

    pub use self::required as map;

    /// Keeps, clears or sets.
    pub fn nullable<T>(patch: Set<T>, current: Option<T>) -> Option<T> {
        match patch {
            Set::Keep => current,
            Set::Clear => None,
            Set::To(value) => Some(value),
        }
    }

    pub use self::nullable as omitted;
    pub use self::nullable as reset;

    /// Keeps what is not given.
    pub fn given<T>(patch: Option<T>, current: Option<T>) -> Option<T> {
        patch.or(current)
    }

    pub use self::given as or_default;
    pub use self::given as or_kept;
}

/// A whole object with all its defaults.
pub mod full {
    use crate::Set;
    use crate::read::FieldKind;

    /// As it is.
    pub fn required<K: FieldKind>(_kind: &K, value: K::Value) -> K::Value {
        value
    }

    pub use self::required as map;

    /// As it is.
    pub fn cleared<K: FieldKind>(_kind: &K, value: Set<K::Value>) -> Set<K::Value> {
        value
    }

    pub use self::cleared as or_none;

    /// As it is.
    pub fn nullable<K: FieldKind>(_kind: &K, value: Option<K::Value>) -> Option<K::Value> {
        value
    }

    pub use self::nullable as needed;
    pub use self::nullable as omitted;
    pub use self::nullable as stated;

    /// With its default.
    pub fn given<K: FieldKind>(kind: &K, value: Option<K::Value>) -> Option<K::Value> {
        value.or_else(|| Some(kind.default()))
    }

    pub use self::given as or_default;
    pub use self::given as or_kept;
    pub use self::given as reset;
}

/// The fields of an answer, from those of a whole object.
pub mod shown {
    use crate::Set;
    use crate::read::FieldKind;

    pub use super::full::{map, nullable, omitted, required};

    /// What is set, if anything is.
    pub fn or_none<K: FieldKind>(_kind: &K, value: Set<K::Value>) -> Option<K::Value> {
        value.into_option()
    }

    /// With its default.
    pub fn given<K: FieldKind>(kind: &K, value: Option<K::Value>) -> K::Value {
        value.unwrap_or_else(|| kind.default())
    }

    pub use self::given as or_default;
    pub use self::given as or_kept;
    pub use self::given as reset;
}

use super::{FieldKind, Fields};

fn is_given(fields: &Fields, at: whole::Names) -> bool {
    fields.has(at.name) || at.older.is_some_and(|older| fields.has(older))
}

/// Reads a field by one of its names. A list cannot be given by both, but in a change that sends back what it has read.
fn either<K: FieldKind>(fields: &mut Fields, kind: &K, at: whole::Names) -> Option<K::Value> {
    let whole::Names { name, older, is_change } = at;
    let Some(older) = older.filter(|older| fields.has(older)) else { return kind.read(fields, name) };
    let are_both_given = fields.has(name);
    let (value, old_value) = (kind.read(fields, name), kind.read(fields, older));
    if are_both_given && K::IS_EXCLUSIVE && !(is_change && value == old_value) {
        fields.problem(name, format!("is given twice: `{older}` is another name for it"));
    }
    value.or(old_value)
}
