//! The explanations of the API.

use super::cause::{Cause, Failure};
use crate::api::shown_time;
use aldaba_delivery::{GateScope, HealthStatus};

impl Cause {
    pub(crate) fn explanation(&self) -> String {
        match self {
            Self::Skipped(_) => {
                "Not sent: the endpoint was turned off when the message came. A replay of what is missing sends it".into()
            }
            Self::Delivered { attempt, at } => {
                format!("Delivered by attempt {attempt} at {}", shown_time(*at))
            }
            Self::Dead { reason, at, attempts, failure } => {
                let error = failure.as_ref().map(|failure| format!("; the last error: {}", failure.text));
                let (text, at, error) = (reason.text(), shown_time(*at), error.unwrap_or_default());
                format!("{text}: ended at {at} after {}{error}", times(*attempts))
            }
            Self::EndpointDeleted => "The endpoint is deleted; what waits for it is being cancelled".into(),
            Self::NoEndpoint => "There is no such endpoint any more".into(),
            Self::InFlight { attempt } => format!("Attempt {attempt} is being made"),
            Self::EndpointDisabled => {
                "Held: the endpoint is turned off; it is sent when it is turned on again".into()
            }
            Self::NeedsResume(status) => needs_resume(*status).into(),
            Self::ProbeFirst => "Held: the endpoint has failed; one delivery goes first, as a probe".into(),
            Self::ReceiverBusy { until } => {
                format!("Held: the receiver asked (Retry-After) for no request before {}", shown_time(*until))
            }
            Self::FailedUntilProbe { at } => {
                format!("Held: the endpoint has failed; it is probed at {}", shown_time(*at))
            }
            Self::HostHeld { scope, until } => {
                let what = match scope {
                    GateScope::Host => "the host cannot be reached",
                    GateScope::Application(_) => "the host fails for this application",
                };
                match until {
                    Some(until) => {
                        format!("Held until {}: {what}; then one probe goes first", shown_time(*until))
                    }
                    None => format!("Held: {what}; a probe is on its way"),
                }
            }
            Self::TakesPlaceAt(at) => {
                format!("Is for later: it takes its place in the endpoint's order at {}", shown_time(*at))
            }
            Self::InOrder => "Waits for an earlier message: the endpoint gets them in order".into(),
            Self::Paused => {
                "Nothing is sent at present: the server is stopping, its disk cannot be written, or its operator has paused it".into()
            }
            Self::FirstPlanned { at } => format!("The first attempt is planned for {}", shown_time(*at)),
            Self::RetryPlanned { retry, of, at, failure } => {
                let of = of.map(|most| format!(" of {most}")).unwrap_or_default();
                let error = failure.as_ref().map_or("no success", |Failure { text, .. }| text.as_str());
                format!("Retry {retry}{of} is planned for {}, after: {error}", shown_time(*at))
            }
            Self::Throttled { rate } => format!("Due; the endpoint gets at most {rate} requests a second"),
            Self::ApplicationThrottled => {
                "Due; the application's endpoints have had as many requests as its throttleRate allows".into()
            }
            Self::HostBusy => {
                "Due; as many requests are on their way to the host as may be (`requests_per_origin`)".into()
            }
            Self::Due => "The endpoint subscribes to it; it is due and waits for its turn".into(),
            Self::EndpointNewer => "Not sent: the endpoint was created after the message was accepted".into(),
            Self::ForAnotherEndpoint => "Not sent: the message is an example for another endpoint".into(),
            Self::EventTypeNotSubscribed { event_type } => {
                format!("Not sent: the endpoint does not subscribe to {event_type} (as it is now)")
            }
            Self::ChannelNotSubscribed => {
                "Not sent: the message has none of the endpoint's channels (as it is now)".into()
            }
            Self::FilteredAt { location, text } => {
                format!("Not sent: the endpoint's filter keeps it back. At {location}: {text} (as it is now)")
            }
            Self::FilteredUnknown => {
                "Not sent. The endpoint has a filter, and the payload was deleted: what the filter said of it cannot be \
                 told any more (as it is now)"
                    .into()
            }
            Self::SubscriptionChanged => {
                "Not sent: the endpoint did not want it when it was accepted. As it is now, it would".into()
            }
        }
    }
}

fn needs_resume(status: HealthStatus) -> &'static str {
    match status {
        HealthStatus::Blocked => {
            "Held: an earlier message has died, and the endpoint gets them in order. It waits for someone to resume it"
        }
        HealthStatus::Gone => "Held: the receiver answered 410 (Gone), which turned the endpoint off",
        HealthStatus::Failed | HealthStatus::Active => {
            "Held: the endpoint has failed, and waits for someone to resume it"
        }
    }
}

fn times(attempts: u32) -> String {
    match attempts {
        0 => "no attempt".to_owned(),
        1 => "1 attempt".to_owned(),
        _ => format!("{attempts} attempts"),
    }
}
