//! What was deleted is not sent any more.

use super::Findings;
use crate::log::{Log, Resend};

/// No request begins once the caller knows; a manual attempt may have read the payload before.
pub(super) fn deleted_payloads_stay_here(log: &Log, found: &mut Findings) {
    for (message, answered) in &log.expunged {
        let asked_before = |resend: &&Resend| resend.asked < *answered;
        let late = log.requests.iter().filter(|request| {
            request.message == *message
                && request.step > *answered
                && !log.resends.iter().filter(asked_before).any(|resend| resend.may_be(request))
        });
        for request in late {
            found.add("expunge", || format!("{message} was deleted, and a request left at {:?}", request.at));
        }
    }
}
