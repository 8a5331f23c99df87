//! Objects that have one of several forms.

/// Declares an object in a body, whose field `type` says which fields it has besides:
///
/// ```text
/// variants! {
///     /// A shape.
///     Shape "Shape" = {"type": "circle", "radius": 1} {
///         /// A circle.
///         Circle "circle" {
///             /// In metres.
///             required radius: u32 = count();
///         }
///         /// A point.
///         Point "point" {}
///     }
/// }
/// ```
///
/// A form that this version does not know is kept as it is.
#[doc(hidden)]
#[macro_export]
macro_rules! variants {
    ($(#[doc = $about:literal])* $name:ident $schema:literal = $example:tt { $(
        $(#[doc = $variant_about:literal])* $variant:ident $word:literal {
            $($(#[doc = $doc:literal])* $mode:ident $field:ident: $type:ty = $kind:expr;)*
        }
    )* }) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "type", rename_all_fields = "camelCase")]
        #[non_exhaustive]
        pub enum $name {
            $(
                $(#[doc = $variant_about])*
                #[serde(rename = $word)]
                $variant { $(
                    $(#[doc = $doc])*
                    #[serde(skip_serializing_if = "crate::value::absent")]
                    $field: $crate::whole_type!($mode $type),
                )* },
            )*
            /// A form that this version does not know.
            #[serde(untagged)]
            Other(serde_json::Value),
        }

        impl Default for $name {
            /// Null.
            fn default() -> Self {
                Self::Other(serde_json::Value::Null)
            }
        }

        impl $crate::value::Absent for $name {}
        impl $crate::value::Shows<$name> for $name {}

        #[cfg(feature = "server")]
        impl $name {
            fn forms() -> Vec<$crate::read::Variant> {
                vec![$($crate::read::Variant {
                    word: $word,
                    about: &[$($variant_about),*],
                    fields: $crate::request_fields! { $($(#[doc = $doc])* $mode $field: $type = $kind;)* },
                }),*]
            }
        }

        #[cfg(feature = "server")]
        impl $crate::read::ApiBody for $name {
            const NAME: &'static str = $schema;

            fn described() -> $crate::read::Described {
                use $crate::read::{Described, Form};
                Described::variants(Form::Whole, &[$($about),*], "type", Self::forms())
            }
        }

        #[cfg(feature = "server")]
        impl $crate::read::ApiRequest for $name {
            const KNOWN: &'static [&'static str] = &["type", $($($crate::json_name!($field),)*)*];
            const READ_ONLY: &'static [&'static str] = &[];
            const OLDER: &'static [(&'static str, &'static str)] = &[];

            /// Which there are is known once the form is.
            fn refuse_others(_fields: &mut $crate::read::Fields) {}

            fn shown() -> ::serde_json::Value {
                use $crate::read::{Described, Form};
                Described::variants(Form::Shown, &[], "type", Self::forms()).schema
            }

            fn read(fields: &mut $crate::read::Fields, is_change: bool) -> Self {
                use $crate::read::form::whole::{self, Names};
                let kind = $crate::read::choice::<String>(&[$($word),*]);
                let at = |name| Names { name, older: None, is_change };
                match whole::needed(fields, &kind, at("type")).as_deref() {
                    $(Some($word) => {
                        fields.refuse_others(&["type", $($crate::json_name!($field)),*]);
                        $(let $field = whole::$mode(fields, &$kind, at($crate::json_name!($field)));)*
                        Self::$variant { $($field,)* }
                    })*
                    _ => Self::default(),
                }
            }

            fn example() -> ::serde_json::Value {
                ::serde_json::json!($example)
            }
        }
    };
}
