use serde::{Deserialize, Serialize};

/// The value under an event's key. Other programs may omit all fields but the first two.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    #[serde(default)]
    pub(super) r#type: String,
    #[serde(default)]
    pub(super) status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) received_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) processed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failed_at: Option<String>,
    /// The error of the failed handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Processing,
    /// Also the default: a record without a status is a mark.
    #[default]
    Processed,
    /// The handler has failed; the next copy can claim the event.
    Failed,
}

impl Record {
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).expect("strings serialise")
    }

    /// Reads a record. An unreadable one, of another program, counts as a mark.
    pub(super) fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or(Self {
            r#type: String::new(),
            status: Status::Processed,
            received_at: None,
            processed_at: None,
            failed_at: None,
            error: None,
            digest: None,
            owner: None,
        })
    }
}
