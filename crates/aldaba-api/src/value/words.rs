//! Enums that are strings or numbers in JSON. Values that this version does not know are kept.

/// Declares an enum of strings.
#[doc(hidden)]
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(from = "String", into = "String")]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)+
            /// A value that this version does not know.
            Other(String),
        }

        impl $name {
            /// The value as it is in JSON.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $($word => Self::$variant,)+
                    _ => Self::Other(word),
                }
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.as_str().to_owned()
            }
        }

        impl Default for $name {
            /// The empty string.
            fn default() -> Self {
                Self::Other(String::new())
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                word.to_owned().into()
            }
        }

        impl $crate::value::Absent for $name {}
        impl $crate::value::Shows<$name> for $name {}
        impl $crate::value::Shows<$name> for str {}

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

/// Declares an enum of numbers.
#[doc(hidden)]
#[macro_export]
macro_rules! numbers {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $number:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(from = "u16", into = "u16")]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)+
            /// A value that this version does not know.
            Other(u16),
        }

        impl $crate::value::Shows<$name> for $name {}
        impl $crate::value::Shows<$name> for u8 {}

        impl From<u16> for $name {
            fn from(number: u16) -> Self {
                match number {
                    $($number => Self::$variant,)+
                    _ => Self::Other(number),
                }
            }
        }

        impl From<$name> for u16 {
            fn from(value: $name) -> Self {
                match value {
                    $($name::$variant => $number,)+
                    $name::Other(number) => number,
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    words! {
        /// Colours.
        Colour { /// Like fire.
            Red = "red" }
    }
    numbers! {
        /// Levels.
        Level { /// The lowest.
            Ground = 0 }
    }

    #[test]
    fn what_is_not_known_is_kept_as_it_is() {
        let colours: Vec<Colour> = serde_json::from_str(r#"["red", "blue"]"#).unwrap();
        assert_eq!(colours, [Colour::Red, Colour::Other("blue".into())]);
        assert_eq!(serde_json::to_string(&colours).unwrap(), r#"["red","blue"]"#);
        let levels: Vec<Level> = serde_json::from_str("[0, 7]").unwrap();
        assert_eq!(levels, [Level::Ground, Level::Other(7)]);
        assert_eq!(serde_json::to_string(&levels).unwrap(), "[0,7]");
    }
}
