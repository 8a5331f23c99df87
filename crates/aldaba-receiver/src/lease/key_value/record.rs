use serde::{Deserialize, Serialize};

/// What stands under an event's key. Other programs may leave out all but the first two.
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
    /// What its handler has failed with.
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
    /// Also where nothing is said of it: a record is a mark.
    #[default]
    Processed,
    /// Its handler has failed: it is anybody's again.
    Failed,
}

impl Record {
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).expect("strings serialise")
    }

    /// Whatever cannot be read was not written here, and is a mark: somebody has had the event.
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
