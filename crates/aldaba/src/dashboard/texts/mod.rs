//! The texts of pages, in every language. The texts of a page lie beside it (`texts.rs`); a text that a language lacks does not compile.
//! What happens reaches them as values, never as sentences of another language.

mod causes;
mod faults;
mod format;
mod session;
mod shell;
mod states;

pub(crate) use causes::CauseTexts;
pub(crate) use faults::FaultTexts;
pub(crate) use format::Format;
pub(crate) use session::SessionTexts;
pub(crate) use shell::ShellTexts;
pub(crate) use states::StateTexts;

use aldaba_delivery::Language;

/// The language of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tongue {
    English,
    Spanish,
    /// English in brackets, by which tests find what is in no table of texts.
    #[cfg(test)]
    Pseudo,
}

impl Tongue {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Spanish => "es",
            #[cfg(test)]
            Self::Pseudo => "en",
        }
    }

    pub(crate) fn named(code: &str) -> Option<Self> {
        match code {
            "en" => Some(Self::English),
            "es" => Some(Self::Spanish),
            #[cfg(test)]
            "pseudo" => Some(Self::Pseudo),
            _ => None,
        }
    }

    /// For texts that mails and alerts have too.
    pub(crate) fn language(self) -> Language {
        match self {
            Self::Spanish => Language::Spanish,
            _ => Language::English,
        }
    }

    /// A text of mails or alerts, as this language shows it.
    pub(crate) fn shared(self, text: &str) -> String {
        match self {
            #[cfg(test)]
            Self::Pseudo => pseudo(text),
            _ => text.to_owned(),
        }
    }
}

pub(crate) struct En;
pub(crate) struct Es;
#[cfg(test)]
pub(crate) struct Pseudo;

#[cfg(test)]
pub(crate) fn pseudo(text: &str) -> String {
    format!("⟦{text}⟧")
}

/// Declares texts: `name(arguments) => English, Spanish;`. It makes a trait with one method for each, which every language has.
macro_rules! texts {
    (
        $(#[$doc:meta])*
        $name:ident {
            $($(#[$text_doc:meta])* $text:ident($($argument:ident: $type:ty),* $(,)?) => $en:expr, $es:expr;)*
        }
    ) => {
        $(#[$doc])*
        pub(crate) trait $name: Send + Sync {
            $($(#[$text_doc])* fn $text(&self $(, $argument: $type)*) -> String;)*
        }

        impl $name for $crate::dashboard::texts::En {
            $(fn $text(&self $(, $argument: $type)*) -> String { String::from($en) })*
        }

        impl $name for $crate::dashboard::texts::Es {
            $(fn $text(&self $(, $argument: $type)*) -> String { String::from($es) })*
        }

        #[cfg(test)]
        impl $name for $crate::dashboard::texts::Pseudo {
            $(fn $text(&self $(, $argument: $type)*) -> String {
                $crate::dashboard::texts::pseudo(&$name::$text(&$crate::dashboard::texts::En $(, $argument)*))
            })*
        }

        impl dyn $name {
            /// In this language.
            pub(crate) fn of(tongue: $crate::dashboard::texts::Tongue) -> &'static dyn $name {
                match tongue {
                    $crate::dashboard::texts::Tongue::English => &$crate::dashboard::texts::En,
                    $crate::dashboard::texts::Tongue::Spanish => &$crate::dashboard::texts::Es,
                    #[cfg(test)]
                    $crate::dashboard::texts::Tongue::Pseudo => &$crate::dashboard::texts::Pseudo,
                }
            }
        }
    };
}
pub(crate) use texts;
