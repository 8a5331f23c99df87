//! Bodies of answers.

/// Declares a body of an answer:
///
/// ```text
/// response! {
///     ($)
///     /// A thing.
///     Thing "ThingOut" of ThingView {
///         /// Its id.
///         required id: String;
///         /// When it was made.
///         required created_at: Timestamp = moment();
///     }
///     each thing_fields;
/// }
///
/// response! {
///     /// A thing that was just made.
///     NewThingShown "NewThingOut" of NewThingView with { thing: Thing as thing_fields; } {
///         /// Its key.
///         required key: Secret;
///     }
/// }
/// ```
///
/// `Thing` is what a client reads. `ThingView` is what a server shows: each of its fields is anything that reads as that field
/// ([`Shows`](crate::value::Shows)), so that nothing is copied. An answer `with` another one has its fields too; its view has that one's
/// view. The schema of a field is that of its type, unless a kind is given.
#[doc(hidden)]
#[macro_export]
macro_rules! response {
    (
        $(#[doc = $about:literal])*
        $shown:ident $name:literal of $view:ident { $($fields:tt)* }
    ) => {
        $crate::response! { @owned [$($about)*] $shown { $($fields)* } }
        $crate::response! { @view [$($about)*] $shown $name $view {} { $($fields)* } }
        $crate::response! { @whole $shown $view { $($fields)* } }
    };
    (
        ($d:tt)
        $(#[doc = $about:literal])*
        $shown:ident $name:literal of $view:ident { $($fields:tt)* }
        each $each:ident;
    ) => {
        $crate::response! { $(#[doc = $about])* $shown $name of $view { $($fields)* } }

        macro_rules! $each {
            ([$d ($d about:literal)*] $d shown:ident [$d ($d rest:ident)*] { $d ($d own:tt)* }) => {
                $crate::response! { @gather [$d ($d about)*] $d shown [$d ($d rest)*] { $($fields)* $d ($d own)* } }
            };
        }
    };
    (
        $(#[doc = $about:literal])*
        $shown:ident $name:literal of $view:ident
        with { $($part:ident: $part_type:ident as $part_fields:ident;)+ } { $($fields:tt)* }
    ) => {
        $crate::response! { @gather [$($about)*] $shown [$($part_fields)+] { $($fields)* } }
        $crate::response! { @view [$($about)*] $shown $name $view { $($part $part_type;)+ } { $($fields)* } }
    };
    (
        ($d:tt)
        $(#[doc = $about:literal])*
        $shown:ident $name:literal of $view:ident
        with { $($part:ident: $part_type:ident as $part_fields:ident;)+ } { $($fields:tt)* }
        each $each:ident;
    ) => {
        $crate::response! {
            $(#[doc = $about])* $shown $name of $view with { $($part: $part_type as $part_fields;)+ } { $($fields)* }
        }

        macro_rules! $each {
            ([$d ($d about:literal)*] $d shown:ident [$d ($d rest:ident)*] { $d ($d own:tt)* }) => {
                $crate::response! {
                    @gather [$d ($d about)*] $d shown [$($part_fields)+ $d ($d rest)*] { $($fields)* $d ($d own)* }
                }
            };
        }
    };

    // The fields of the parts, one part after the other.
    (@gather [$($about:literal)*] $shown:ident [] { $($fields:tt)* }) => {
        $crate::response! { @owned [$($about)*] $shown { $($fields)* } }
    };
    (@gather [$($about:literal)*] $shown:ident [$first:ident $($rest:ident)*] { $($fields:tt)* }) => {
        $first! { [$($about)*] $shown [$($rest)*] { $($fields)* } }
    };

    // What a client reads.
    (
        @owned [$($about:literal)*] $shown:ident
        { $($(#[doc = $doc:literal])* $mode:ident $field:ident $([$json:literal])? : $type:ty $(= $kind:expr)?;)* }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $shown {
            $($(#[doc = $doc])* $(#[serde(rename = $json)])? pub $field: $crate::shown_type!($mode $type),)*
        }

        impl serde::Serialize for $shown {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $crate::value::WriteFields::write(self, &mut map)?;
                map.end()
            }
        }

        impl $crate::value::WriteFields for $shown {
            fn write<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                use $crate::value::unshown;
                $(
                    if !unshown::$mode::<$crate::shown_type!($mode $type), _>(&self.$field) {
                        map.serialize_entry($crate::json_name!($field $($json)?), &self.$field)?;
                    }
                )*
                let _ = map;
                Ok(())
            }
        }

        impl $crate::value::Shows<$shown> for $shown {}

        #[cfg(feature = "server")]
        impl $crate::read::TypeSchema for $shown {
            fn schema() -> ::serde_json::Value {
                $crate::read::schema::reference(<Self as $crate::read::ApiBody>::NAME)
            }

            fn nested(into: &mut Vec<(String, ::serde_json::Value)>) {
                $crate::read::schema::nest::<Self>(into);
            }
        }
    };

    // What a server shows, and what the document says.
    (
        @view [$($about:literal)*] $shown:ident $name:literal $view:ident
        { $($part:ident $part_type:ident;)* }
        { $($(#[doc = $doc:literal])* $mode:ident $field:ident $([$json:literal])? : $type:ty $(= $kind:expr)?;)* }
    ) => {
        $(#[doc = $about])*
        #[cfg(feature = "server")]
        #[allow(non_camel_case_types, reason = "a type is named after its field")]
        #[derive(Clone, Copy, Debug)]
        pub struct $view<$($part,)* $($field,)*> {
            $(/** Its fields are fields of this one. */ pub $part: $part,)*
            $($(#[doc = $doc])* pub $field: $field,)*
        }

        #[cfg(feature = "server")]
        #[allow(non_camel_case_types, reason = "a type is named after its field")]
        impl<$($part,)* $($field,)*> $crate::value::WriteFields for $view<$($part,)* $($field,)*>
        where
            $($part: $crate::value::Shows<$part_type> + $crate::value::WriteFields,)*
            $($field: $crate::value::Shows<$crate::shown_type!($mode $type)>,)*
        {
            fn write<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                use $crate::value::unshown;
                $(self.$part.write(map)?;)*
                $(
                    if !unshown::$mode::<$crate::shown_type!($mode $type), _>(&self.$field) {
                        map.serialize_entry($crate::json_name!($field $($json)?), &self.$field)?;
                    }
                )*
                Ok(())
            }
        }

        #[cfg(feature = "server")]
        #[allow(non_camel_case_types, reason = "a type is named after its field")]
        impl<$($part,)* $($field,)*> serde::Serialize for $view<$($part,)* $($field,)*>
        where
            Self: $crate::value::WriteFields,
        {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $crate::value::WriteFields::write(self, &mut map)?;
                map.end()
            }
        }

        #[cfg(feature = "server")]
        #[allow(non_camel_case_types, reason = "a type is named after its field")]
        impl<$($part,)* $($field,)*> $crate::value::Shows<$shown> for $view<$($part,)* $($field,)*>
        where
            Self: $crate::value::WriteFields,
        {
        }

        #[cfg(feature = "server")]
        impl $crate::read::ApiBody for $shown {
            const NAME: &'static str = $name;

            fn described() -> $crate::read::Described {
                use $crate::read::{Described, Form};
                let parts: &[fn(&mut Described)] = &[$(Described::with::<$part_type>),*];
                let about: &[&str] = &[$($about),*];
                Described::of(Form::Shown, about, [
                    $crate::response_fields! { $($(#[doc = $doc])* $mode $field $([$json])? : $type $(= $kind)?;)* },
                ]).with_all(parts)
            }
        }
    };

    // Out of a view that owns what it shows.
    (
        @whole $shown:ident $view:ident
        { $($(#[doc = $doc:literal])* $mode:ident $field:ident $([$json:literal])? : $type:ty $(= $kind:expr)?;)* }
    ) => {
        #[cfg(feature = "server")]
        impl From<$view<$($crate::shown_type!($mode $type)),*>> for $shown {
            fn from(view: $view<$($crate::shown_type!($mode $type)),*>) -> Self {
                Self { $($field: view.$field,)* }
            }
        }
    };

    // What an answer has besides the fields that callers set.
    (
        @state $state:ident
        { $($(#[doc = $doc:literal])* $mode:ident $field:ident: $type:ty $(= $kind:expr)?;)* }
    ) => {
        /// What an answer has besides the fields that callers set.
        #[cfg(feature = "server")]
        #[derive(Clone, Debug)]
        pub struct $state {
            $($(#[doc = $doc])* pub $field: $crate::shown_type!($mode $type),)*
        }
    };
}
