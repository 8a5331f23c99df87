//! Retry policies, and what one would do.

#[cfg(feature = "server")]
use crate::duration_text;
#[cfg(feature = "server")]
use crate::read::{
    body, catalog_name, choice, number, size, span, statuses, text, texts, toggle, whole_number,
};
use crate::{Span, request, resource, response, variants};

resource! {
    ($)
    new {
        /// A policy: when to try again, what counts as success, when to stop. Spans are written as `500ms`, `5s`, `15m`, `2h` or
        /// `7d`; what is left out is as in `standard`. All fields: [policies](/docs/guides/policies).
        NewPolicy "PolicyIn" = {
            "name": "patient",
            "schedule": {"type": "list", "delays": ["10s", "5m", "1h", "1h"]},
            "limit": {"attempts": 5, "stopAfter": "1d"},
        }
    }
    update {
        /// A policy as it is to be, but for its name. What is left out is as in `standard`.
        PolicyUpdate "PolicyUpdate" =
            {"schedule": {"type": "exponential", "base": "1s", "factor": 2, "cap": "1h"}, "limit": {"attempts": 8}}
    }
    shown {
        /// A policy.
        Policy "PolicyOut" of PolicyState
    }
    first {
        /// By which endpoints ask for it.
        required name: String = catalog_name();
    }
    fields {
        /// When to try again.
        own required schedule: PolicySchedule = body();
        /// How far delays are spread.
        own or_default jitter: PolicyJitter = body();
        /// When a delivery is given up. If it is left out beside a list of delays, there is one attempt more than delays.
        own or_default limit: PolicyLimit = body();
        /// How long an attempt may take.
        own or_default timeouts: PolicyTimeouts = body();
        /// Statuses that are a success.
        own or_default success: Vec<String> = statuses();
        /// What a redirect is.
        own or_default redirects: PolicyRedirects = body();
        /// Statuses that no retry mends.
        own or_default rejects: Vec<String> = statuses();
        /// What is not HTTP ends the delivery at once.
        own or_default malformed_rejects: bool = toggle();
        /// A 410 turns the endpoint off.
        own or_default gone_disables: bool = toggle();
        /// Which answers may ask for a delay; null: none.
        own or_none retry_after: PolicyRetryAfter = body();
        /// Whether the host waits while it looks down.
        own or_default gate: PolicyGate = body();
        /// When the endpoint counts as failed.
        own or_default endpoint_fails: PolicyEndpointFails = body();
        /// How a failed endpoint is tried; null: it waits for its owner.
        own or_none probe: PolicyProbe = body();
        /// How long deliveries are kept.
        own or_default retention: PolicyRetention = body();
    }
    once {
        /// By which endpoints ask for it.
        required name: String = catalog_name(),
            "must be the name in the path, or be left out: a policy keeps its name";
    }
    last {
        /// It cannot be changed.
        required built_in: bool;
    }
}

impl NewPolicy {
    /// With delays such as `10s`, `5m`, `1h`: one attempt more than there are delays.
    pub fn with_delays(name: impl Into<String>, delays: &[&str]) -> Self {
        let delays = delays.iter().map(|delay| (*delay).to_owned()).collect();
        Self { name: name.into(), schedule: PolicySchedule::List { delays }, ..Self::default() }
    }

    /// With delays that grow from `base` by `factor` up to `cap`.
    pub fn exponential(name: impl Into<String>, base: &str, factor: u32, cap: &str) -> Self {
        let (base, factor, cap) = (base.to_owned(), Some(factor), cap.to_owned());
        Self {
            name: name.into(),
            schedule: PolicySchedule::Exponential { base, factor, cap },
            ..Self::default()
        }
    }
}

/// The most delays in a listed schedule.
pub const MAX_SCHEDULE_STEPS: usize = 100;

variants! {
    /// When to try again.
    PolicySchedule "PolicySchedule" = {"type": "list", "delays": ["10s", "5m"]} {
        /// After delays that grow.
        Exponential "exponential" {
            /// The first one.
            required base: Span = span();
            /// What each is multiplied by for the next; 2, if not given.
            or_default factor: u32 = whole_number().or(2);
            /// The longest one.
            required cap: Span = span();
        }
        /// After these delays; then the last one repeats.
        List "list" {
            /// One for each attempt after the first.
            required delays: Vec<Span> = texts(MAX_SCHEDULE_STEPS, span());
        }
    }
}

variants! {
    /// How far delays are spread.
    PolicyJitter "PolicyJitter" = {"type": "full"} {
        /// Not at all.
        None "none" {}
        /// Between nothing and the delay.
        Full "full" {}
        /// Up to a span is added.
        AddUpTo "addUpTo" {
            /// The span.
            required most: Span = span();
        }
        /// Up to a share of the delay is added.
        AddPercent "addPercent" {
            /// The share.
            required percent: u8 = number(0, 100);
        }
        /// Up to a share of the delay is added or taken away.
        AroundPercent "aroundPercent" {
            /// The share.
            required percent: u8 = number(0, 100);
        }
    }
}

request! {
    /// When a delivery is given up: by one of the two, or by both.
    PolicyLimit "PolicyLimit" = {"attempts": 5, "stopAfter": "1d"} {
        /// How many attempts there are at most.
        stated attempts: u32 = whole_number();
        /// How long after its creation the last one may begin.
        stated stop_after: Span = span();
    }
}

request! {
    /// How long an attempt may take.
    PolicyTimeouts "PolicyTimeouts" = {"connect": "5s", "answer": "20s", "total": "20s"} {
        /// Until there is a connection.
        or_default connect: Span = span();
        /// From then until there is an answer.
        or_default answer: Span = span();
        /// In all, redirects included.
        or_default total: Span = span();
    }
}

variants! {
    /// What a redirect is.
    PolicyRedirects "PolicyRedirects" = {"type": "follow", "hops": 5} {
        /// A failure.
        Fail "fail" {}
        /// Sent again to where it leads.
        Follow "follow" {
            /// How often at most; 5, if not given.
            or_default hops: u8 = whole_number().or(5);
        }
        /// A success.
        Success "success" {}
    }
}

request! {
    /// Which answers may ask for a delay.
    PolicyRetryAfter "PolicyRetryAfter" = {"statuses": ["429", "503"], "use": "lengthen", "longest": "1h"} {
        /// Those with these statuses.
        or_default statuses: Vec<String> = statuses();
        /// `lengthen`: the longer of the two delays counts; `replace`: the one that is asked for.
        or_default r#use: String = choice(&["lengthen", "replace"]).asked();
        /// The least that counts.
        or_default shortest: Span = span();
        /// The most that counts.
        or_default longest: Span = span();
    }
}

variants! {
    /// Whether the host waits while it looks down.
    PolicyGate "PolicyGate" = {"type": "hostFailures", "inARow": 5, "first": "30s", "longest": "15m"} {
        /// It does not, and waits of others do not count.
        Apart "apart" {}
        /// After failures of the host, for longer each time.
        HostFailures "hostFailures" {
            /// How many failures in a row.
            required in_a_row: u32 = whole_number();
            /// How long it waits first.
            required first: Span = span();
            /// How long it waits at most.
            required longest: Span = span();
        }
        /// Until the next attempt, if that is far away.
        DelayOver "delayOver" {
            /// How far.
            required threshold: Span = span();
            /// How long it waits at most.
            required longest: Span = span();
        }
    }
}

variants! {
    /// When the endpoint counts as failed.
    PolicyEndpointFails "PolicyEndpointFails" = {"type": "withoutSuccessFor", "span": "5d"} {
        /// Never.
        Never "never" {}
        /// When a delivery has used up its attempts or its time.
        WhenExhausted "whenExhausted" {}
        /// At a failure so long after the first one without a success between.
        WithoutSuccessFor "withoutSuccessFor" {
            /// How long.
            required span: Span = span();
        }
    }
}

request! {
    /// How a failed endpoint is tried.
    PolicyProbe "PolicyProbe" = {"firstGap": "15m", "longestGap": "12h"} {
        /// After how long first; then after twice as long each time.
        required first_gap: Span = span();
        /// After how long at most.
        required longest_gap: Span = span();
    }
}

request! {
    /// How long deliveries are kept after their end. What is left out is as the server is set.
    PolicyRetention "PolicyRetention" = {"delivered": {"for": "24h", "newest": 1000}, "dead": {"for": "untilRemoved"}} {
        /// Those that were delivered.
        or_default delivered: RetentionOfDelivered = body();
        /// Those that were not.
        or_default dead: RetentionOfDead = body();
    }
}

request! {
    /// How long delivered deliveries are kept.
    RetentionOfDelivered "RetentionOfDelivered" = {"for": "24h", "newest": 1000} {
        /// A span, or `untilRemoved`.
        stated r#for: String = kept();
        /// While they are among so many newest ones of their application.
        stated newest: u32 = whole_number();
    }
}

request! {
    /// How long dead deliveries are kept.
    RetentionOfDead "RetentionOfDead" = {"for": "untilRemoved"} {
        /// A span, or `untilRemoved`.
        stated r#for: String = kept();
    }
}

/// No span: deliveries are kept until somebody removes them.
pub const UNTIL_REMOVED: &str = "untilRemoved";

#[cfg(feature = "server")]
const KEPT: &str = "a duration such as \"24h\" or \"90d\", or \"untilRemoved\"";

#[cfg(feature = "server")]
const fn kept() -> crate::read::TextField {
    text().by(check_kept).expecting(KEPT)
}

#[cfg(feature = "server")]
fn check_kept(text: &str) -> Result<(), String> {
    match text {
        UNTIL_REMOVED => Ok(()),
        text if duration_text::parse_duration(text).is_none() && !duration_text::is_duration(text) => {
            Err(format!("expected {KEPT}, not \"{text}\""))
        }
        text => duration_text::check(text),
    }
}

response! {
    /// What a policy would do.
    Previewed "PreviewOut" of PreviewedView {
        /// Its name.
        required policy: String;
        /// For how long the receiver refuses connections.
        nullable outage: String;
        /// Of the chances in it.
        required seed: u64;
        /// What would be tried when.
        required attempts: Vec<PlannedAttempt>;
        /// Seconds after the first attempt; null: it never arrives.
        nullable arrives_at: f64;
        /// It would arrive.
        required delivered: bool;
        /// Why not.
        nullable reason: String;
    }
}

response! {
    /// An attempt that would be made.
    PlannedAttempt "Planned" of PlannedAttemptView {
        /// Its number.
        required attempt: u32 = size();
        /// Seconds from the first.
        required at: f64;
        /// The same in words.
        required after: String;
    }
}
