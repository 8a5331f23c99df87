//! The codes of errors. Programs decide by the code; people read the `detail`.

use http::StatusCode;
use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($variant:ident $name:literal [$($status:literal),+] $meaning:literal $remedy:literal;)+) => {
        /// The kind of an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code {
            $(#[doc = $meaning] $variant,)+
        }

        impl Code {
            /// In the order in which `docs/errors.md` lists them.
            pub(crate) const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The code's text in a response.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The statuses that go with the code.
            fn statuses(self) -> &'static [u16] {
                match self {
                    $(Self::$variant => &[$($status),+],)+
                }
            }

            #[cfg(test)]
            fn about(self) -> (&'static str, &'static str) {
                match self {
                    $(Self::$variant => ($meaning, $remedy),)+
                }
            }
        }
    };
}

codes! {
    Validation "validation" [422]
        "A field of the body, the query string or the path has a value that cannot be used."
        "`detail` is a list of all such places; correct each.";
    GenericError "generic_error" [400]
        "The request as a whole cannot be understood."
        "Correct it as `detail` says.";
    InvalidRange "invalid_range" [400]
        "A span of time is in the future, too long, or ends before it begins."
        "Ask for another span.";
    InvalidScheme "invalid_scheme" [400]
        "The event type has no example that can be sent."
        "Add one to the `examples` of its newest schema.";
    MissingPayload "missing_payload" [400, 404]
        "The message's payload has been deleted."
        "Send a new message.";
    LimitReached "limit_reached" [400]
        "As many former keys of the endpoint still sign as there may be."
        "Rotate again when one has expired.";
    BadToken "bad_token" [400]
        "The token is signed, but does not name an organization or an application."
        "Issue a token with `aldaba token create`.";
    IncompleteBody "incomplete_body" [400]
        "The connection ended before the whole body had come."
        "Send the request again.";
    NoEvent "no_event" [400]
        "What came to a source is no event of its type."
        "Look at what the sender sends, and at the source's `eventIdFrom` and `eventTypeFrom`.";
    AuthenticationFailed "authentication_failed" [401]
        "There is no token or API key, or it is not valid."
        "Send `Authorization: Bearer` with a valid one.";
    NotVerified "not_verified" [401, 403]
        "The signature or the verify token of what came to a source is wrong."
        "Compare the secret of the source with the sender's.";
    InsufficientAccess "insufficient_access" [403]
        "The token or API key may not do this."
        "Use one that may.";
    NotFound "not_found" [404]
        "There is no such thing, no such route, or it belongs to another organization."
        "Check the id and the path; for a route, `detail` names those that are near.";
    MethodNotAllowed "method_not_allowed" [405]
        "The route exists, but not with this method."
        "Use a method of the header `Allow`; `detail` names them too.";
    BodyTimeout "body_timeout" [408]
        "The request's body came too slowly."
        "Send the request again.";
    Conflict "conflict" [409]
        "What is there already does not allow this; `detail` names it with its id."
        "Change that first, or choose another name.";
    EventTypeExists "event_type_exists" [409]
        "There is an event type of this name."
        "Replace it with PUT, or choose another name.";
    InFlight "in_flight" [409, 503]
        "A request of the delivery is under way."
        "Try again after `Retry-After`.";
    PayloadTooLarge "payload_too_large" [413]
        "The body or the payload is larger than the limit, which `detail` names with its setting."
        "Send less, or raise the setting.";
    RateLimited "rate_limited" [429]
        "Too many requests."
        "Try again after `Retry-After`.";
    QuotaExceeded "quota_exceeded" [429]
        "The day's messages are used up."
        "Try again after `Retry-After`, or raise the quota.";
    BatchTooCostly "batch_too_costly" [429]
        "Checking the payloads of a batch took too long."
        "Send this message alone, or in a smaller batch.";
    TooManyTokens "too_many_tokens" [429]
        "As many former tokens of the source still count as there may be."
        "Try again after `Retry-After`.";
    TooManyRevocations "too_many_revocations" [429]
        "As many tokens have been ended before their time as are remembered."
        "End all portal tokens of the application at once.";
    TooManyReplays "too_many_replays" [429]
        "The application has as many replays running as it may have."
        "Wait until one is over, or cancel one.";
    TooManyErasures "too_many_erasures" [429]
        "The organization has as many erasures running as it may have."
        "Wait until one is over.";
    TooManyExports "too_many_exports" [429]
        "The organization has as many exports running as it may have."
        "Try again after `Retry-After`.";
    HeadersTooLarge "headers_too_large" [431]
        "The headers of what came to a source are too large to keep."
        "Have the sender send fewer.";
    ServerError "server_error" [500]
        "A fault of the server; its log has the cause."
        "Report it to the operator.";
    Busy "busy" [503]
        "The server has more to do than it has room for."
        "Try again after `Retry-After`.";
    Paused "paused" [503]
        "The server sends nothing now, because its store cannot be written, or because it was restored from a backup and not resumed yet."
        "Try again after `Retry-After`.";
    Timeout "timeout" [503]
        "Reading from the store took too long."
        "Try again with a smaller `limit`.";
    Late "late" [503]
        "The store did not confirm in time; what was sent may be stored."
        "Send it again with the same `idempotency-key` or `eventId`.";
    Unsettled "unsettled" [503]
        "Others keep changing the same thing."
        "Try again after `Retry-After`.";
    More "more" [503]
        "There was more to do than one request may."
        "Send the same request again.";
    Stopping "stopping" [503]
        "The server is stopping."
        "Try again after `Retry-After`.";
    StoreUnavailable "store_unavailable" [503]
        "The server's database is out of reach for the moment."
        "Try again after `Retry-After`.";
    StoreFailed "store_failed" [503]
        "The server's store has failed; its log has the cause."
        "Report it to the operator.";
    DiskFull "disk_full" [507]
        "The server's disk is full."
        "Make room, then try again.";
}

impl Code {
    pub(crate) fn comes_with(self, status: StatusCode) -> bool {
        self.statuses().contains(&status.as_u16())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../../docs/errors.md");

    fn table() -> String {
        let rows = Code::ALL.iter().map(|code| {
            let statuses: Vec<_> = code.statuses().iter().map(u16::to_string).collect();
            let (meaning, remedy) = code.about();
            format!("| `{}` | {} | {meaning} | {remedy} |\n", code.name(), statuses.join(", "))
        });
        let head = "| code | status | meaning | what to do |\n| --- | --- | --- | --- |\n";
        head.to_owned() + &rows.collect::<String>()
    }

    #[test]
    fn the_page_about_errors_lists_exactly_the_codes_that_there_are() {
        let table = table();
        assert!(PAGE.contains(&table), "docs/errors.md must have this table:\n{table}");
        assert_eq!(PAGE.matches("\n| `").count(), Code::ALL.len(), "and no other row");
    }

    #[test]
    fn codes_are_identifiers_and_no_two_are_the_same() {
        for (place, code) in Code::ALL.iter().enumerate() {
            let name = code.name();
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert!(Code::ALL[..place].iter().all(|other| other.name() != name), "{name}");
        }
    }
}
