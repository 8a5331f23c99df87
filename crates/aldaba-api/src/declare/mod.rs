//! The macros that declare bodies.

mod resource;
mod response;
mod variants;

/// The name of a field in JSON: its own in camel case, unless another one is given.
#[doc(hidden)]
#[macro_export]
macro_rules! json_name {
    ($field:ident $name:literal) => {
        $name
    };
    ($field:ident) => {{
        const FIELD: &str = stringify!($field);
        const LENGTH: usize = $crate::declare::camel_length(FIELD);
        const BYTES: [u8; LENGTH] = $crate::declare::camel(FIELD);
        const NAME: &str = match ::core::str::from_utf8(&BYTES) {
            Ok(name) => name,
            Err(_) => panic!("a field's name is ASCII"),
        };
        NAME
    }};
}

const fn is_raw(field: &[u8]) -> bool {
    field.len() > 2 && field[0] == b'r' && field[1] == b'#'
}

/// How long the name of a field is in JSON.
#[doc(hidden)]
#[must_use]
pub const fn camel_length(field: &str) -> usize {
    let bytes = field.as_bytes();
    let (mut at, mut length) = (if is_raw(bytes) { 2 } else { 0 }, 0);
    while at < bytes.len() {
        if bytes[at] != b'_' {
            length += 1;
        }
        at += 1;
    }
    length
}

/// The name of a field in JSON: `event_types` is `eventTypes`.
#[doc(hidden)]
#[must_use]
pub const fn camel<const LENGTH: usize>(field: &str) -> [u8; LENGTH] {
    let bytes = field.as_bytes();
    let mut name = [0; LENGTH];
    let (mut at, mut length) = (if is_raw(bytes) { 2 } else { 0 }, 0);
    let mut is_start = false;
    while at < bytes.len() {
        if bytes[at] == b'_' {
            is_start = true;
        } else {
            name[length] = if is_start { bytes[at].to_ascii_uppercase() } else { bytes[at] };
            is_start = false;
            length += 1;
        }
        at += 1;
    }
    name
}

/// The type of a field in a new object.
#[doc(hidden)]
#[macro_export]
macro_rules! whole_type {
    (required $type:ty) => { $type };
    (map $type:ty) => { $type };
    (cleared $type:ty) => { $crate::Set<$type> };
    (or_none $type:ty) => { $crate::Set<$type> };
    ($mode:ident $type:ty) => { Option<$type> };
}

/// The type of a field in a change.
#[doc(hidden)]
#[macro_export]
macro_rules! patch_type {
    (nullable $type:ty) => { $crate::Set<$type> };
    (omitted $type:ty) => { $crate::Set<$type> };
    (reset $type:ty) => { $crate::Set<$type> };
    ($mode:ident $type:ty) => { Option<$type> };
}

/// The type of a field in an answer.
#[doc(hidden)]
#[macro_export]
macro_rules! shown_type {
    (nullable $type:ty) => { Option<$type> };
    (or_none $type:ty) => { Option<$type> };
    (omitted $type:ty) => { Option<$type> };
    ($mode:ident $type:ty) => { $type };
}

/// What the document says of the fields of a request.
#[doc(hidden)]
#[macro_export]
macro_rules! request_fields {
    ($(
        $(#[doc = $doc:literal])* $mode:ident $field:ident $([$json:literal])? $(/ $older_mode:ident $older:ident)? : $type:ty = $kind:expr;
    )*) => {
        vec![$($crate::read::DeclaredField {
            name: $crate::json_name!($field $($json)?),
            mode: stringify!($mode),
            older: ($crate::older_name!($($older)?), concat!($(stringify!($older_mode))?)),
            about: $crate::read::schema::about(&[$($doc),*]),
            kind: Box::new($crate::read::kind_for::<$type, _>($kind)),
        }),*]
    };
}

/// What the document says of the fields of an answer.
#[doc(hidden)]
#[macro_export]
macro_rules! response_fields {
    ($($(#[doc = $doc:literal])* $mode:ident $field:ident $([$json:literal])? : $type:ty $(= $kind:expr)?;)*) => {
        vec![$($crate::read::DeclaredField {
            name: $crate::json_name!($field $($json)?),
            mode: stringify!($mode),
            older: (None, ""),
            about: $crate::read::schema::about(&[$($doc),*]),
            kind: $crate::shown_kind!($type $(, $kind)?),
        }),*]
    };
}

/// An older name of a field.
#[doc(hidden)]
#[macro_export]
macro_rules! older_name {
    () => {
        None
    };
    ($older:ident) => {
        Some($crate::json_name!($older))
    };
}

/// The kind of a field of an answer: that of its type, unless another one is given.
#[doc(hidden)]
#[macro_export]
macro_rules! shown_kind {
    ($type:ty) => {
        Box::new($crate::read::TypeField::<$type>::new())
    };
    ($type:ty, $kind:expr) => {
        Box::new($kind)
    };
}
