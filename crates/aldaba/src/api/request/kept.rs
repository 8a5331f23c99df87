//! How fields of bodies are kept: the types of a body are for callers, those of the store for the server.

use crate::api::request::json;
use aldaba_api::Metadata;
use aldaba_delivery::WhenDisabled;

/// A field of a body, with its default, that is kept as a `T`.
pub(crate) trait Kept<T> {
    fn keep(self) -> T;

    fn show(kept: &T) -> Self;
}

impl Kept<String> for String {
    fn keep(self) -> String {
        self
    }

    fn show(kept: &String) -> Self {
        kept.clone()
    }
}

impl Kept<Option<String>> for Option<String> {
    fn keep(self) -> Option<String> {
        self
    }

    fn show(kept: &Option<String>) -> Self {
        kept.clone()
    }
}

impl Kept<String> for Option<String> {
    fn keep(self) -> String {
        self.unwrap_or_default()
    }

    fn show(kept: &String) -> Self {
        Some(kept.clone())
    }
}

impl Kept<bool> for Option<bool> {
    fn keep(self) -> bool {
        self.unwrap_or_default()
    }

    fn show(kept: &bool) -> Self {
        Some(*kept)
    }
}

/// Counts are checked to be small.
impl Kept<u16> for Option<u32> {
    fn keep(self) -> u16 {
        self.map_or(0, |count| u16::try_from(count).unwrap_or(u16::MAX))
    }

    fn show(kept: &u16) -> Self {
        Some((*kept).into())
    }
}

impl Kept<Option<u16>> for Option<u32> {
    fn keep(self) -> Option<u16> {
        self.map(|count| u16::try_from(count).unwrap_or(u16::MAX))
    }

    fn show(kept: &Option<u16>) -> Self {
        kept.map(u32::from)
    }
}

/// An empty set is null: no filter.
impl Kept<Vec<String>> for Option<Vec<String>> {
    fn keep(self) -> Vec<String> {
        self.unwrap_or_default()
    }

    fn show(kept: &Vec<String>) -> Self {
        (!kept.is_empty()).then(|| kept.clone())
    }
}

/// A JSON object, as text.
impl Kept<String> for Metadata {
    fn keep(self) -> String {
        serde_json::to_string(&self).unwrap_or_default()
    }

    fn show(kept: &String) -> Self {
        serde_json::from_str(json::raw(kept).get()).unwrap_or_default()
    }
}

impl Kept<WhenDisabled> for Option<aldaba_api::WhenDisabled> {
    fn keep(self) -> WhenDisabled {
        match self {
            Some(aldaba_api::WhenDisabled::Hold) => WhenDisabled::Hold,
            _ => WhenDisabled::Skip,
        }
    }

    fn show(kept: &WhenDisabled) -> Self {
        Some(kept.name().into())
    }
}
