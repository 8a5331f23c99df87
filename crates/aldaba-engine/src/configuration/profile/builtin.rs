//! The built-in profiles.

use super::{Brand, Profile, ProfileSpec};
use aldaba_signature::{HashKind, Scheme};

const TIMESTAMPED: Scheme = Scheme::Timestamped(HashKind::Sha256);
const HEX: Scheme = Scheme::Hex(HashKind::Sha256);

/// The built-in profile of that name, if any.
pub(crate) fn builtin(name: &str, brand: &Brand) -> Option<Profile> {
    let header = |name: &str, template: &str| (name.to_owned(), template.to_owned());
    let standard_webhooks = |prefix: &str| {
        vec![
            header(&format!("{prefix}-id"), "{id}"),
            header(&format!("{prefix}-timestamp"), "{timestamp}"),
            header(&format!("{prefix}-signature"), "{signature}"),
        ]
    };
    let (headers, scheme) = match name {
        "standard" => (standard_webhooks("webhook"), Some(Scheme::Standard)),
        // The same with Svix's header names.
        "svix" => (standard_webhooks("svix"), Some(Scheme::Standard)),
        "x-webhook" => {
            let headers = vec![
                header("X-Webhook-Signature", "{signature}"),
                header("X-Webhook-Retry", "{attempt}"),
                header("X-Webhook-Version", "{version}"),
            ];
            (headers, Some(HEX))
        }
        "job-status" => {
            let mut headers = standard_webhooks("webhook");
            headers.extend([header("X-Webhook-Event", "job.status"), header("X-Job-Id", "{payload.jobId}")]);
            (headers, Some(Scheme::Standard))
        }
        "branded" => {
            let headers = vec![
                header(&format!("{brand}-Event-Id"), "{eventId}"),
                header(&format!("{brand}-Event-Type"), "{type}"),
                header(&format!("{brand}-Signature"), "{signature}"),
            ];
            (headers, Some(TIMESTAMPED))
        }
        _ => return None,
    };
    let spec = ProfileSpec { name: name.to_owned(), headers, scheme };
    Some(Profile::new(spec).expect("a built-in profile is valid under every brand"))
}
