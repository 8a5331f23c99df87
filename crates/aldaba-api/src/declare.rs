//! The macros that declare bodies.

/// The name of a field in JSON.
#[doc(hidden)]
#[macro_export]
macro_rules! json_name {
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
    (omitted $type:ty) => { Option<$type> };
    ($mode:ident $type:ty) => { $type };
}

/// Declares the bodies of a resource, each field once:
///
/// ```text
/// resource! {
///     ($)
///     new { /// A new thing.
///         NewThing "ThingIn" = {"name": "An example"} }
///     update { /// A whole thing.
///         ThingUpdate "ThingUpdate" = {"name": "An example"} }
///     patch { /// Fields of a thing that change.
///         ThingPatch "ThingPatch" = {"name": "Another"} }
///     shown { /// A thing.
///         Thing "ThingOut" of ThingState }
///     each thing_fields;
///     first { /// Its id.
///         required id: String = text(); }
///     fields { /// For people.
///         stored nullable name / omitted title: String = text().chars(256); }
///     once { /// Set when it is made.
///         nullable secret: Secret = secret(), "is not changed here; rotate it"; }
///     last { /// When it was made.
///         required created_at: Timestamp = moment(); }
/// }
/// ```
///
/// `nullable` and the like are modes ([`read::form`](crate::read::form)); `/ omitted title` is an older name for the same field. The word
/// before the mode says how a server keeps the field, to `thing_fields!`: `own` fields are converted by hand, `stored` ones are kept
/// as they are, and `plain` ones are also set as they are where there is no JSON.
#[doc(hidden)]
#[macro_export]
macro_rules! resource {
    (
        ($d:tt)
        new { $(#[doc = $new_doc:literal])* $new:ident $new_name:literal = $new_example:tt }
        $(update { $(#[doc = $update_doc:literal])* $update:ident $update_name:literal = $update_example:tt })?
        patch { $(#[doc = $patch_doc:literal])* $patch:ident $patch_name:literal = $patch_example:tt }
        shown { $(#[doc = $shown_doc:literal])* $shown:ident $shown_name:literal of $state:ident }
        each $each:ident;
        first { $($first:tt)* }
        fields { $($fields:tt)* }
        once { $($once:tt)* }
        last { $($last:tt)* }
    ) => {
        $crate::resource! { @new [$($new_doc)*] $new $new_name $new_example { $($fields)* } { $($once)* } { $($first)* } { $($last)* } }
        $crate::resource! {
            @update [$([$($update_doc)*] $update $update_name $update_example)?] $new { $($fields)* } { $($once)* } { $($first)* }
            { $($last)* }
        }
        $crate::resource! {
            @patch [$($patch_doc)*] $patch $patch_name $patch_example { $($fields)* } { $($once)* } { $($first)* } { $($last)* }
        }
        $crate::resource! { @over $patch [$($update)?] $new { $($fields)* } }
        $crate::resource! {
            @shown [$($shown_doc)*] $shown $shown_name $state [$($update)?] $new { $($first)* } { $($fields)* } { $($last)* }
        }
        $crate::resource! { @each ($d) $each { $($fields)* } }
    };

    (
        @new [$($about:literal)*] $new:ident $name:literal $example:tt
        { $($(#[doc = $doc:literal])* $route:ident $mode:ident $field:ident $(/ $older_mode:ident $older:ident)? : $type:ty = $kind:expr;)* }
        { $($(#[doc = $once_doc:literal])* $once_mode:ident $once:ident: $once_type:ty = $once_kind:expr, $elsewhere:literal;)* }
        { $($(#[doc = $first_doc:literal])* $first_mode:ident $first:ident: $first_type:ty = $first_kind:expr;)* }
        { $($(#[doc = $last_doc:literal])* $last_mode:ident $last:ident: $last_type:ty = $last_kind:expr;)* }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $new {
            $(
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "crate::value::absent")]
                pub $field: $crate::whole_type!($mode $type),
            )*
            $(
                $(#[doc = $once_doc])*
                #[serde(skip_serializing_if = "crate::value::absent")]
                pub $once: $crate::whole_type!($once_mode $once_type),
            )*
        }

        #[cfg(feature = "server")]
        impl $crate::read::ApiBody for $new {
            const NAME: &'static str = $name;

            fn schema() -> ::serde_json::Value {
                use $crate::read::{FieldKind as _, schema};
                let mut object = schema::ObjectSchema::new();
                $({
                    let presence = schema::Presence::of(stringify!($mode));
                    object.input($crate::json_name!($field), presence, &schema::about(&[$($doc),*]), $crate::read::kind_for::<$type, _>($kind).input());
                })*
                $({
                    let presence = schema::Presence::of(stringify!($once_mode));
                    let about = schema::about(&[$($once_doc),*]);
                    object.input($crate::json_name!($once), presence, &about, ($once_kind).input());
                })*
                object.finish(&schema::about(&[$($about),*]), true)
            }

            fn nested(into: &mut Vec<(String, ::serde_json::Value)>) {
                use $crate::read::FieldKind as _;
                $($crate::read::kind_for::<$type, _>($kind).nested(into);)*
                let _ = into;
            }
        }

        #[cfg(feature = "server")]
        impl $crate::read::ApiRequest for $new {
            const KNOWN: &'static [&'static str] = &[
                $($crate::json_name!($field), $($crate::json_name!($older),)?)*
                $($crate::json_name!($once),)*
            ];
            const READ_ONLY: &'static [&'static str] =
                &[$($crate::json_name!($first),)* $($crate::json_name!($last),)*];

            fn read(fields: &mut $crate::read::Fields, is_change: bool) -> Self {
                use $crate::read::form::whole;
                let _ = is_change;
                $(
                    let at = $crate::resource!(@at is_change $field $($older)?);
                    let $field = whole::$mode(fields, &$kind, at);
                )*
                $(
                    let at = $crate::resource!(@at is_change $once);
                    let $once = whole::$once_mode(fields, &$once_kind, at);
                )*
                Self { $($field,)* $($once,)* }
            }

            fn example() -> ::serde_json::Value {
                ::serde_json::json!($example)
            }
        }

        #[cfg(feature = "server")]
        impl $new {
            /// The same with the defaults of all that is left out.
            #[must_use]
            pub fn complete(self) -> Self {
                use $crate::read::form::full;
                $(let $field = full::$mode(&$kind, self.$field);)*
                #[allow(clippy::needless_update, reason = "some bodies have fields that are only set once")]
                Self { $($field,)* ..self }
            }

            /// Checks the values of a body that was not read from JSON.
            ///
            /// # Errors
            /// The field, and what is wrong with it.
            pub fn check(&self) -> Result<(), (&'static str, String)> {
                use $crate::read::FieldKind as _;
                use $crate::value::GivenValue as _;
                $(
                    let value: Option<&$type> = self.$field.given_value();
                    if let Some(value) = value {
                        $crate::read::kind_for::<$type, _>($kind).check(value).map_err(|why| (stringify!($field), why))?;
                    }
                )*
                Ok(())
            }
        }
    };

    (@at $is_change:ident $field:ident) => {
        whole::Names { name: $crate::json_name!($field), older: None, is_change: $is_change }
    };
    (@at $is_change:ident $field:ident $older:ident) => {
        whole::Names {
            name: $crate::json_name!($field),
            older: Some($crate::json_name!($older)),
            is_change: $is_change,
        }
    };

    (@update [] $($rest:tt)*) => {};
    (
        @update [[$($about:literal)*] $update:ident $name:literal $example:tt] $new:ident
        { $($(#[doc = $doc:literal])* $route:ident $mode:ident $field:ident $(/ $older_mode:ident $older:ident)? : $type:ty = $kind:expr;)* }
        { $($(#[doc = $once_doc:literal])* $once_mode:ident $once:ident: $once_type:ty = $once_kind:expr, $elsewhere:literal;)* }
        { $($(#[doc = $first_doc:literal])* $first_mode:ident $first:ident: $first_type:ty = $first_kind:expr;)* }
        { $($(#[doc = $last_doc:literal])* $last_mode:ident $last:ident: $last_type:ty = $last_kind:expr;)* }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $update {
            $(
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "crate::value::absent")]
                pub $field: $crate::whole_type!($mode $type),
            )*
        }

        impl From<$update> for $new {
            fn from($update { $($field,)* }: $update) -> Self {
                Self { $($field,)* ..Self::default() }
            }
        }

        #[cfg(feature = "server")]
        impl $crate::read::ApiBody for $update {
            const NAME: &'static str = $name;

            fn schema() -> ::serde_json::Value {
                use $crate::read::{FieldKind as _, schema};
                let mut object = schema::ObjectSchema::new();
                $({
                    let presence = schema::Presence::of(stringify!($mode));
                    object.input($crate::json_name!($field), presence, &schema::about(&[$($doc),*]), $crate::read::kind_for::<$type, _>($kind).input());
                })*
                object.finish(&schema::about(&[$($about),*]), true)
            }

            fn nested(_into: &mut Vec<(String, ::serde_json::Value)>) {}
        }

        #[cfg(feature = "server")]
        impl $crate::read::ApiRequest for $update {
            const KNOWN: &'static [&'static str] = <$new as $crate::read::ApiRequest>::KNOWN;
            const READ_ONLY: &'static [&'static str] = <$new as $crate::read::ApiRequest>::READ_ONLY;

            fn read(fields: &mut $crate::read::Fields, is_change: bool) -> Self {
                use $crate::read::form::whole;
                $($crate::resource!(@elsewhere fields $once $elsewhere);)*
                $(
                    let at = $crate::resource!(@at is_change $field $($older)?);
                    let $field = whole::$mode(fields, &$kind, at);
                )*
                Self { $($field,)* }
            }

            fn example() -> ::serde_json::Value {
                ::serde_json::json!($example)
            }
        }
    };

    (@elsewhere $fields:ident $once:ident $elsewhere:literal) => {
        if $fields.has_value($crate::json_name!($once)) {
            $fields.problem($crate::json_name!($once), $elsewhere);
        }
    };

    (
        @patch [$($about:literal)*] $patch:ident $name:literal $example:tt
        { $($(#[doc = $doc:literal])* $route:ident $mode:ident $field:ident $(/ $older_mode:ident $older:ident)? : $type:ty = $kind:expr;)* }
        { $($(#[doc = $once_doc:literal])* $once_mode:ident $once:ident: $once_type:ty = $once_kind:expr, $elsewhere:literal;)* }
        { $($(#[doc = $first_doc:literal])* $first_mode:ident $first:ident: $first_type:ty = $first_kind:expr;)* }
        { $($(#[doc = $last_doc:literal])* $last_mode:ident $last:ident: $last_type:ty = $last_kind:expr;)* }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $patch {
            $(
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "crate::value::absent")]
                pub $field: $crate::patch_type!($mode $type),
            )*
        }

        #[cfg(feature = "server")]
        impl $crate::read::ApiBody for $patch {
            const NAME: &'static str = $name;

            fn schema() -> ::serde_json::Value {
                use $crate::read::{FieldKind as _, schema};
                let mut object = schema::ObjectSchema::new();
                $(object.patch($crate::json_name!($field), &schema::about(&[$($doc),*]), $crate::read::kind_for::<$type, _>($kind).input());)*
                object.finish(&schema::about(&[$($about),*]), true)
            }

            fn nested(_into: &mut Vec<(String, ::serde_json::Value)>) {}
        }

        #[cfg(feature = "server")]
        impl $crate::read::ApiRequest for $patch {
            const KNOWN: &'static [&'static str] = &[
                $($crate::json_name!($field), $($crate::json_name!($older),)?)*
                $($crate::json_name!($once),)*
            ];
            const READ_ONLY: &'static [&'static str] =
                &[$($crate::json_name!($first),)* $($crate::json_name!($last),)*];

            fn read(fields: &mut $crate::read::Fields, _is_change: bool) -> Self {
                use $crate::read::form::{patch, whole};
                let is_change = true;
                $($crate::resource!(@elsewhere fields $once $elsewhere);)*
                $(
                    let at = $crate::resource!(@at is_change $field $($older)?);
                    let $field = patch::$mode(fields, &$kind, at);
                )*
                Self { $($field,)* }
            }

            fn example() -> ::serde_json::Value {
                ::serde_json::json!($example)
            }
        }
    };

    (@over $patch:ident [] $new:ident $fields:tt) => {
        $crate::resource! { @laid $patch $new $new $fields }
    };
    (@over $patch:ident [$update:ident] $new:ident $fields:tt) => {
        $crate::resource! { @laid $patch $update $update $fields }
    };
    (
        @laid $patch:ident $whole:ident $whole_again:ident
        { $($(#[doc = $doc:literal])* $route:ident $mode:ident $field:ident $(/ $older_mode:ident $older:ident)? : $type:ty = $kind:expr;)* }
    ) => {
        #[cfg(feature = "server")]
        impl $patch {
            /// What there is, with the given fields in the place of its own.
            #[must_use]
            #[allow(clippy::needless_update, reason = "some bodies have fields that no change has")]
            pub fn over(self, current: $whole) -> $whole {
                use $crate::read::form::over;
                $(let $field = over::$mode(self.$field, current.$field);)*
                $whole { $($field,)* ..Default::default() }
            }
        }
    };

    (
        @shown [$($about:literal)*] $shown:ident $name:literal $state:ident [$($update:ident)?] $new:ident
        { $($(#[doc = $first_doc:literal])* $first_mode:ident $first:ident: $first_type:ty = $first_kind:expr;)* }
        { $($(#[doc = $doc:literal])* $route:ident $mode:ident $field:ident $(/ $older_mode:ident $older:ident)? : $type:ty = $kind:expr;)* }
        { $($(#[doc = $last_doc:literal])* $last_mode:ident $last:ident: $last_type:ty = $last_kind:expr;)* }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $shown {
            $($(#[doc = $first_doc])* pub $first: $crate::shown_type!($first_mode $first_type),)*
            $(
                $(#[doc = $doc])*
                pub $field: $crate::shown_type!($mode $type),
                $(
                    /// The same, for older clients.
                    pub $older: $crate::shown_type!($older_mode $type),
                )?
            )*
            $($(#[doc = $last_doc])* pub $last: $crate::shown_type!($last_mode $last_type),)*
        }

        impl serde::Serialize for $shown {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use $crate::value::shown;
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $(
                    if !shown::$first_mode(&self.$first) {
                        map.serialize_entry($crate::json_name!($first), &self.$first)?;
                    }
                )*
                $(
                    if !shown::$mode(&self.$field) {
                        map.serialize_entry($crate::json_name!($field), &self.$field)?;
                    }
                    $(
                        if !shown::$older_mode(&self.$older) {
                            map.serialize_entry($crate::json_name!($older), &self.$older)?;
                        }
                    )?
                )*
                $(
                    if !shown::$last_mode(&self.$last) {
                        map.serialize_entry($crate::json_name!($last), &self.$last)?;
                    }
                )*
                map.end()
            }
        }

        /// What an answer has besides the fields that callers set.
        #[cfg(feature = "server")]
        #[derive(Clone, Debug)]
        pub struct $state {
            $($(#[doc = $first_doc])* pub $first: $crate::shown_type!($first_mode $first_type),)*
            $($(#[doc = $last_doc])* pub $last: $crate::shown_type!($last_mode $last_type),)*
        }

        $crate::resource! { @of $shown $state [$($update)?] $new [$($first)*] [$($last)*] {
            $($mode $field $(/ $older_mode $older)? = $kind;)*
        } }

        #[cfg(feature = "server")]
        impl $crate::read::ApiBody for $shown {
            const NAME: &'static str = $name;

            #[allow(unused_imports, reason = "nested bodies have methods of their own")]
            fn schema() -> ::serde_json::Value {
                use $crate::read::{FieldKind as _, schema};
                let mut object = schema::ObjectSchema::new();
                $({
                    let presence = schema::Presence::of(stringify!($first_mode));
                    let about = schema::about(&[$($first_doc),*]);
                    object.output($crate::json_name!($first), presence, &about, ($first_kind).output());
                })*
                $({
                    let presence = schema::Presence::of(stringify!($mode));
                    let about = schema::about(&[$($doc),*]);
                    object.output($crate::json_name!($field), presence, &about, $crate::read::kind_for::<$type, _>($kind).output());
                    $(
                        let presence = schema::Presence::of(stringify!($older_mode));
                        let about = "The same, for older clients.";
                        object.output($crate::json_name!($older), presence, about, $crate::read::kind_for::<$type, _>($kind).output());
                    )?
                })*
                $({
                    let presence = schema::Presence::of(stringify!($last_mode));
                    let about = schema::about(&[$($last_doc),*]);
                    object.output($crate::json_name!($last), presence, &about, ($last_kind).output());
                })*
                object.finish(&schema::about(&[$($about),*]), false)
            }

            #[allow(unused_imports, reason = "nested bodies have methods of their own")]
            fn nested(into: &mut Vec<(String, ::serde_json::Value)>) {
                use $crate::read::FieldKind as _;
                $(($first_kind).nested(into);)*
                $(($last_kind).nested(into);)*
            }
        }
    };

    (@of $shown:ident $state:ident [] $new:ident [$($first:ident)*] [$($last:ident)*] {}) => {
        #[cfg(feature = "server")]
        impl From<$state> for $shown {
            fn from(state: $state) -> Self {
                Self { $($first: state.$first,)* $($last: state.$last,)* }
            }
        }
    };
    (@of $shown:ident $state:ident [] $new:ident $($rest:tt)*) => {
        $crate::resource! { @of $shown $state [$new] $($rest)* }
    };
    (@of $shown:ident $state:ident [$whole:ident] $new:ident $($rest:tt)*) => {
        $crate::resource! { @of $shown $state [$whole] $($rest)* }
    };
    (
        @of $shown:ident $state:ident [$whole:ident] [$($first:ident)*] [$($last:ident)*]
        { $($mode:ident $field:ident $(/ $older_mode:ident $older:ident)? = $kind:expr;)* }
    ) => {
        #[cfg(feature = "server")]
        impl $shown {
            /// An answer, of what callers have set and of the rest.
            #[must_use]
            pub fn of(whole: $whole, state: $state) -> Self {
                use $crate::read::form::shown;
                $(
                    let $field = shown::$mode(&$kind, whole.$field);
                    $(let $older = $field.clone();)?
                )*
                Self {
                    $($first: state.$first,)*
                    $($field, $($older,)?)*
                    $($last: state.$last,)*
                }
            }
        }
    };

    (
        @each ($d:tt) $each:ident
        { $($(#[doc = $doc:literal])* $route:ident $mode:ident $field:ident $(/ $older_mode:ident $older:ident)? : $type:ty = $kind:expr;)* }
    ) => {
        /// Calls a macro for each field, with its docs, how it is kept, its mode, name and type.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! $each {
            ($d then:ident $d ($d arguments:tt)*) => {
                $($d then! { [$(#[doc = $doc])*] $route $mode $field [$type] $d ($d arguments)* })*
            };
        }
    };
}

/// Declares a body of a request that has no other forms.
#[doc(hidden)]
#[macro_export]
macro_rules! request {
    (
        $(#[doc = $about:literal])*
        $new:ident $name:literal = $example:tt {
            $($(#[doc = $doc:literal])* $mode:ident $field:ident $(/ $older:ident)? : $type:ty = $kind:expr;)*
        }
    ) => {
        $crate::resource! {
            @new [$($about)*] $new $name $example
            { $($(#[doc = $doc])* own $mode $field $(/ nullable $older)? : $type = $kind;)* } {} {} {}
        }
    };
}

/// Declares a body of an answer that has no request.
#[doc(hidden)]
#[macro_export]
macro_rules! response {
    (
        $(#[doc = $about:literal])*
        $shown:ident $name:literal of $state:ident {
            $($(#[doc = $doc:literal])* $mode:ident $field:ident: $type:ty = $kind:expr;)*
        }
    ) => {
        $crate::resource! {
            @shown [$($about)*] $shown $name $state [] $shown
            { $($(#[doc = $doc])* $mode $field: $type = $kind;)* } {} {}
        }
    };
}
