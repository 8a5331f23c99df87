//! The languages of mails.

use serde::Deserialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    English,
    Spanish,
}

impl Language {
    pub const ALL: [Self; 2] = [Self::English, Self::Spanish];
    pub const CODES: [&str; 2] = ["en", "es"];
    /// The key in the metadata of an endpoint or an application that chooses the language of its mails.
    pub const METADATA_KEY: &str = "mailLanguage";

    pub fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Spanish => "es",
        }
    }

    pub fn of_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.code() == code)
    }

    /// The one that metadata chooses.
    pub(super) fn of_metadata(metadata: &str) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Chosen {
            mail_language: String,
        }
        let chosen: Chosen = serde_json::from_str(metadata).ok()?;
        Self::of_code(&chosen.mail_language)
    }
}
