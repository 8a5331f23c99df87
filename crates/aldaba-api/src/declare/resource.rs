//! Bodies of requests, and resources: bodies that are made, changed and shown.

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
///         required id: String; }
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
/// as they are, and `plain` ones are also set as they are where there is no JSON. `update`, `patch` and `each` may be left out.
#[doc(hidden)]
#[macro_export]
macro_rules! resource {
    (
        ($d:tt)
        new { $(#[doc = $new_doc:literal])* $new:ident $new_name:literal = $new_example:tt }
        $(update { $(#[doc = $update_doc:literal])* $update:ident $update_name:literal = $update_example:tt })?
        $(patch { $(#[doc = $patch_doc:literal])* $patch:ident $patch_name:literal = $patch_example:tt })?
        shown { $(#[doc = $shown_doc:literal])* $shown:ident $shown_name:literal of $state:ident }
        $(each $each:ident;)?
        first { $($first:tt)* }
        fields { $(
            $(#[doc = $doc:literal])* $route:ident $mode:ident $field:ident $(/ $older_mode:ident $older:ident)? : $type:ty = $kind:expr;
        )* }
        once { $(
            $(#[doc = $once_doc:literal])* $once_mode:ident $once:ident: $once_type:ty = $once_kind:expr, $elsewhere:literal;
        )* }
        last { $($last:tt)* }
    ) => {
        $crate::request! {
            @whole [$($new_doc)*] $new $new_name $new_example;
            { $($(#[doc = $doc])* $mode $field $(/ $older_mode $older)? : $type = $kind;)* }
            { $($(#[doc = $once_doc])* $once_mode $once: $once_type = $once_kind;)* }
        }
        $crate::request! { @read_only $new { $($first)* $($last)* } }
        $crate::request! {
            @update [$([$($update_doc)*] $update $update_name $update_example)?] $new
            { $($(#[doc = $doc])* $mode $field $(/ $older_mode $older)? : $type = $kind;)* }
            { $($once $elsewhere;)* }
        }
        $crate::request! {
            @patch [$([$($patch_doc)*] $patch $patch_name $patch_example)?] $new
            { $($(#[doc = $doc])* $mode $field $(/ $older_mode $older)? : $type = $kind;)* }
            { $($once $elsewhere;)* }
        }
        $crate::resource! { @over [$($patch)?] [$($update)? $new] { $($mode $field;)* } }
        $crate::response! { @state $state { $($first)* $($last)* } }
        $crate::response! {
            @owned [$($shown_doc)*] $shown
            {
                $($first)*
                $(
                    $(#[doc = $doc])* $mode $field: $type;
                    $(
                        /// The same, for older clients.
                        $older_mode $older: $type;
                    )?
                )*
                $($last)*
            }
        }
        $crate::resource! {
            @of $shown $state [$($update)? $new] { $($mode $field $(/ $older_mode $older)? = $kind;)* } { $($first)* $($last)* }
        }

        #[cfg(feature = "server")]
        impl $crate::read::ApiBody for $shown {
            const NAME: &'static str = $shown_name;

            fn described() -> $crate::read::Described {
                use $crate::read::{Described, Form};
                Described::of(Form::Shown, &[$($shown_doc),*], [
                    $crate::response_fields! { $($first)* },
                    <$new>::declared(),
                    $crate::response_fields! { $($last)* },
                ])
            }
        }

        $crate::resource! { @each ($d) [$($each)?] { $([$(#[doc = $doc])*] $route $mode $field [$type];)* } }
    };

    (@each ($d:tt) [] $fields:tt) => {};
    (@each ($d:tt) [$each:ident] { $($docs:tt $route:ident $mode:ident $field:ident $type:tt;)* }) => {
        /// Calls a macro for each field, with its docs, how it is kept, its mode, name and type.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! $each {
            ($d then:ident $d ($d arguments:tt)*) => {
                $($d then! { $docs $route $mode $field $type $d ($d arguments)* })*
            };
        }
    };

    (@over [] $($rest:tt)*) => {};
    (@over [$patch:ident] [$whole:ident $($new:ident)?] { $($mode:ident $field:ident;)* }) => {
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
        @of $shown:ident $state:ident [$whole:ident $($new:ident)?]
        { $($mode:ident $field:ident $(/ $older_mode:ident $older:ident)? = $kind:expr;)* }
        { $($(#[doc = $doc:literal])* $own_mode:ident $own:ident: $own_type:ty $(= $own_kind:expr)?;)* }
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
                Self { $($own: state.$own,)* $($field, $($older,)?)* }
            }
        }
    };
}

/// Declares a body of a request that has no other forms.
#[doc(hidden)]
#[macro_export]
macro_rules! request {
    ($(#[doc = $about:literal])* $new:ident $name:literal = $example:tt { $($fields:tt)* }) => {
        $crate::request! { @whole [$($about)*] $new $name $example; { $($fields)* } {} }
        $crate::request! { @read_only $new {} }
    };

    // A new object. The fields of the second block are set once.
    (
        @whole [$($about:literal)*] $new:ident $name:literal $example:tt;
        { $(
            $(#[doc = $doc:literal])* $mode:ident $field:ident $([$json:literal])? $(/ $older_mode:ident $older:ident)? : $type:ty = $kind:expr;
        )* }
        { $($(#[doc = $once_doc:literal])* $once_mode:ident $once:ident: $once_type:ty = $once_kind:expr;)* }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $new {
            $($(#[doc = $doc])* $(#[serde(rename = $json)])? pub $field: $crate::whole_type!($mode $type),)*
            $($(#[doc = $once_doc])* pub $once: $crate::whole_type!($once_mode $once_type),)*
        }

        impl serde::Serialize for $new {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                use $crate::value::left_out;
                let mut map = serializer.serialize_map(None)?;
                $(
                    if !left_out::$mode(&self.$field) {
                        map.serialize_entry($crate::json_name!($field $($json)?), &self.$field)?;
                    }
                )*
                $(
                    if !left_out::$once_mode(&self.$once) {
                        map.serialize_entry($crate::json_name!($once), &self.$once)?;
                    }
                )*
                map.end()
            }
        }

        impl $crate::value::Shows<$new> for $new {}

        #[cfg(feature = "server")]
        impl $crate::read::ApiBody for $new {
            const NAME: &'static str = $name;

            fn described() -> $crate::read::Described {
                use $crate::read::{Described, Form};
                Described::of(Form::Whole, &[$($about),*], [
                    Self::declared(),
                    $crate::request_fields! { $($(#[doc = $once_doc])* $once_mode $once: $once_type = $once_kind;)* },
                ])
            }
        }

        #[cfg(feature = "server")]
        impl $crate::read::ApiRequest for $new {
            const KNOWN: &'static [&'static str] = &[
                $($crate::json_name!($field $($json)?), $($crate::json_name!($older),)?)*
                $($crate::json_name!($once),)*
            ];
            const READ_ONLY: &'static [&'static str] = Self::SHOWN_ALONE;
            const OLDER: &'static [(&'static str, &'static str)] =
                &[$($(($crate::json_name!($field), $crate::json_name!($older)),)?)*];

            fn inner() -> Vec<(&'static str, &'static [&'static str])> {
                use $crate::read::FieldKind as _;
                vec![$(($crate::json_name!($field $($json)?), $crate::read::kind_for::<$type, _>($kind).inner())),*]
            }

            fn shown() -> ::serde_json::Value {
                $crate::read::Described::of($crate::read::Form::Shown, &[], [Self::declared()]).schema
            }

            fn read(fields: &mut $crate::read::Fields, is_change: bool) -> Self {
                use $crate::read::form::whole;
                $(let $field = whole::$mode(fields, &$kind, $crate::request!(@at is_change $field [$($json)?] $($older)?));)*
                $(let $once = whole::$once_mode(fields, &$once_kind, $crate::request!(@at is_change $once []));)*
                let _ = (fields, is_change);
                Self { $($field,)* $($once,)* }
            }

            fn example() -> ::serde_json::Value {
                ::serde_json::json!($example)
            }
        }

        #[cfg(feature = "server")]
        impl $new {
            fn declared() -> Vec<$crate::read::DeclaredField> {
                $crate::request_fields! { $(
                    $(#[doc = $doc])* $mode $field $([$json])? $(/ $older_mode $older)? : $type = $kind;
                )* }
            }

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

    // Fields that answers alone have.
    (
        @read_only $new:ident
        { $($(#[doc = $doc:literal])* $mode:ident $field:ident: $type:ty $(= $kind:expr)?;)* }
    ) => {
        #[cfg(feature = "server")]
        impl $new {
            const SHOWN_ALONE: &'static [&'static str] = &[$($crate::json_name!($field)),*];
        }
    };

    (@at $is_change:ident $field:ident [$($json:literal)?] $($older:ident)?) => {
        $crate::read::form::whole::Names {
            name: $crate::json_name!($field $($json)?),
            older: $crate::older_name!($($older)?),
            is_change: $is_change,
        }
    };

    (@update [] $($rest:tt)*) => {};
    (
        @update [[$($about:literal)*] $update:ident $name:literal $example:tt] $new:ident
        { $(
            $(#[doc = $doc:literal])* $mode:ident $field:ident $(/ $older_mode:ident $older:ident)? : $type:ty = $kind:expr;
        )* }
        { $($once:ident $elsewhere:literal;)* }
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

        $crate::request! {
            @change Whole [$($about)*] $update $name $example; $new { $($once $elsewhere;)* }
            { $(whole $mode $field $(/ $older)? = $kind;)* }
        }
    };

    (@patch [] $($rest:tt)*) => {};
    (
        @patch [[$($about:literal)*] $patch:ident $name:literal $example:tt] $new:ident
        { $(
            $(#[doc = $doc:literal])* $mode:ident $field:ident $(/ $older_mode:ident $older:ident)? : $type:ty = $kind:expr;
        )* }
        $once:tt
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

        $crate::request! {
            @change Patch [$($about)*] $patch $name $example; $new $once
            { $(patch $mode $field $(/ $older)? = $kind;)* }
        }
    };

    // How a change is described and read.
    (
        @change $form:ident [$($about:literal)*] $change:ident $name:literal $example:tt; $new:ident
        { $($once:ident $elsewhere:literal;)* }
        { $($module:ident $mode:ident $field:ident $(/ $older:ident)? = $kind:expr;)* }
    ) => {
        #[cfg(feature = "server")]
        impl $crate::read::ApiBody for $change {
            const NAME: &'static str = $name;

            fn described() -> $crate::read::Described {
                use $crate::read::{Described, Form};
                Described::of(Form::$form, &[$($about),*], [<$new>::declared()])
            }
        }

        #[cfg(feature = "server")]
        impl $crate::read::ApiRequest for $change {
            const KNOWN: &'static [&'static str] = <$new as $crate::read::ApiRequest>::KNOWN;
            const READ_ONLY: &'static [&'static str] = <$new as $crate::read::ApiRequest>::READ_ONLY;
            const OLDER: &'static [(&'static str, &'static str)] = <$new as $crate::read::ApiRequest>::OLDER;

            fn inner() -> Vec<(&'static str, &'static [&'static str])> {
                <$new as $crate::read::ApiRequest>::inner()
            }

            fn shown() -> ::serde_json::Value {
                <$new as $crate::read::ApiRequest>::shown()
            }

            fn read(fields: &mut $crate::read::Fields, is_change: bool) -> Self {
                $(
                    if fields.has_value($crate::json_name!($once)) {
                        fields.problem($crate::json_name!($once), $elsewhere);
                    }
                )*
                $(let $field = $crate::read::form::$module::$mode(fields, &$kind, $crate::request!(@at is_change $field [] $($older)?));)*
                Self { $($field,)* }
            }

            fn example() -> ::serde_json::Value {
                ::serde_json::json!($example)
            }
        }
    };
}
