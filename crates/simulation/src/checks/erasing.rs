//! After an erasure nothing of the application is in any row, and everything of others is.

use super::Violation;
use crate::store::Disk;
use aldaba_delivery::{AppId, EndpointId, MessageId};

const CHECK: &str = "erasure";

/// What is known of one application.
#[derive(Clone, Debug)]
pub struct Known {
    pub app: AppId,
    pub endpoints: Vec<EndpointId>,
    pub messages: Vec<MessageId>,
    /// A text that is in all that was given for the application.
    pub canary: &'static str,
}

/// The audit log and the erasure itself name ids; a key of the organization leads to what it has made.
const MAY_NAME_IDS: [&str; 3] = ["audit", "erasure", "unique_key"];

/// Nothing of it is left.
pub fn nothing_is_left(disk: &Disk, erased: &Known) -> Vec<Violation> {
    let mut found = Vec::new();
    for table in disk.tables_with(erased.canary.as_bytes()) {
        found.push(violation(format!("{table} has `{}`", erased.canary)));
    }
    let ids = erased.endpoints.iter().map(EndpointId::as_bytes);
    let ids = ids.chain(erased.messages.iter().map(MessageId::as_bytes)).chain([erased.app.as_bytes()]);
    for id in ids {
        let tables = disk.tables_with(id).into_iter();
        for table in tables.filter(|table| !MAY_NAME_IDS.contains(&&**table)) {
            found.push(violation(format!("{table} has the id of something of {}", erased.app)));
        }
    }
    found
}

/// All of it is there, with a delivery for each message and endpoint.
pub fn all_is_there(disk: &Disk, other: &Known) -> Vec<Violation> {
    let everything = disk.everything();
    let mut found = Vec::new();
    for message in &other.messages {
        if !everything.has_message(other.app, *message) {
            found.push(violation(format!("{message} of another application is gone")));
        }
        let of_message = everything.deliveries.iter().filter(|delivery| delivery.message == *message);
        let kept = of_message.filter(|delivery| everything.has_delivery(delivery.seq)).count();
        if kept != other.endpoints.len() {
            found.push(violation(format!("{message} has {kept} deliveries, not {}", other.endpoints.len())));
        }
    }
    if !everything.has_application(other.app) {
        found.push(violation(format!("{} is gone", other.app)));
    }
    found
}

fn violation(text: String) -> Violation {
    Violation { check: CHECK, text }
}
