//! Endpoints: URLs that messages are delivered to.

use super::replay::BackgroundTask;
#[cfg(feature = "server")]
use crate::names::{channel, name as check_name};
#[cfg(feature = "server")]
use crate::read::{
    choice, count, moment, name, names, number, object, one_of, secret, short_strings, strings,
    strings_or_nulls, text, toggle, uid,
};
use crate::{Json, Metadata, Secret, Timestamp, request, resource, response, words};
use std::collections::BTreeMap;

words! {
    /// What becomes of messages while an endpoint is disabled.
    WhenDisabled {
        /// It never gets them.
        Skip = "skip",
        /// It gets them when it is enabled.
        Hold = "hold",
    }
}

words! {
    /// In which order an endpoint gets its messages.
    Ordering {
        /// In none.
        None = "none",
        /// In the order in which they were accepted.
        Fifo = "fifo",
    }
}

words! {
    /// What an ordered endpoint does with a message that cannot be delivered.
    OnExhausted {
        /// It goes on with the next.
        Skip = "skip",
        /// It waits for its owner.
        Block = "block",
    }
}

words! {
    /// How an endpoint is.
    Condition {
        /// It gets its messages.
        Active = "active",
        /// It failed lately.
        Degraded = "degraded",
        /// It failed for so long that nothing is sent but a probe now and then.
        Failed = "failed",
        /// It was turned off by hand.
        Disabled = "disabled",
    }
}

words! {
    /// Whether an endpoint is sent to.
    EndpointStatus {
        /// It is, or somebody has turned it off.
        Active = "active",
        /// Its policy has given it up.
        Failed = "failed",
    }
}

resource! {
    ($)
    new {
        /// A new endpoint: a URL that wants messages.
        NewEndpoint "EndpointIn" =
            {"url": "https://example.com/hooks", "description": "Their accounting", "policy": "quick"}
    }
    update {
        /// A whole endpoint, but for its secret and its headers. Fields that are left out have their defaults.
        EndpointUpdate "EndpointUpdate" =
            {"url": "https://example.com/other-hooks", "description": "Their accounting", "policy": "standard"}
    }
    patch {
        /// Fields of an endpoint that change; null clears one.
        EndpointPatch "EndpointPatch" = {"throttleRate": 10, "disabled": false}
    }
    shown {
        /// An endpoint.
        Endpoint "EndpointOut" of EndpointState
    }
    each endpoint_fields;
    first {
        /// Such as `ep_…`.
        required id: String = text();
    }
    fields {
        /// Absolute, http or https; user and password in it become basic authentication.
        own required url: String = text().limit(8192).format("uri");
        /// Your own name for it, that does wherever its id does.
        stored nullable uid: String = uid("ep_");
        /// For people.
        plain given description: String = text().bytes(4096);
        /// For people: lists and mails call the endpoint so.
        plain nullable name: String = text().chars(256).filled();
        /// The mail address of the owner.
        plain nullable owner_email: String = text().email();
        /// A number of your own.
        stored or_kept version: u32 = count().or(1);
        /// Nothing is sent to it.
        plain given disabled: bool = toggle();
        /// What becomes of messages while it is disabled: `skip` (default) or `hold`.
        stored or_default when_disabled: WhenDisabled = choice(&["skip", "hold"]);
        /// Only messages of these types; null: of all.
        stored nullable event_types / nullable filter_types: Vec<String> = names(1000, check_name);
        /// Only messages with one of these channels; null: all.
        stored nullable channels: Vec<String> = names(10, channel);
        /// Only messages that pass this filter (see the documentation of filters); null: all.
        own nullable filter: Json = object();
        /// Requests a second at most.
        stored nullable throttle_rate / nullable rate_limit: u32 = count();
        /// The retry policy; `standard`, if not given.
        stored or_default policy: String = text().or("standard");
        /// The wire profile; the server's default, if not given.
        stored nullable profile: String = text();
        /// Whether HTTP/2 is offered to the receiver (https only).
        plain given http2: bool = toggle();
        /// `none` (default) or `fifo`.
        own or_default ordering: Ordering = choice(&["none", "fifo"]);
        /// What an ordered endpoint does with a message that cannot be delivered: `skip` or `block`.
        own nullable on_exhausted: OnExhausted = choice(&["skip", "block"]);
        /// Names and values of your own.
        stored map metadata: Metadata = short_strings();
    }
    once {
        /// `whsec_…` or `whsk_…`; one is made, if not given.
        nullable secret: Secret = secret(), "is not changed here; rotate it with POST …/secret/rotate";
        /// Sent with every request.
        map headers: BTreeMap<String, String> = strings(MAX_HEADERS),
            "are not changed here; change them with PUT or PATCH …/headers";
    }
    last {
        /// Says so where `ownerEmail` is set and the server sends no mails.
        omitted owner_email_note: String = text();
        /// A delivery of an ordered endpoint ended without success, and it waits for its owner.
        required blocked: bool;
        /// `failed` while its health is, else `active`.
        required status: EndpointStatus = text().pattern("^(active|failed)$");
        /// Failures since the last success.
        required failure_count: u32;
        /// How it is.
        required health: EndpointHealth;
        /// When it was made.
        required created_at: Timestamp = moment();
        /// When it was last changed.
        required updated_at: Timestamp = moment();
    }
}

/// Headers of one endpoint.
#[cfg(feature = "server")]
pub const MAX_HEADERS: usize = 50;

impl NewEndpoint {
    /// With a URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }
}

impl EndpointUpdate {
    /// With a URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }
}

response! {
    /// How an endpoint is.
    EndpointHealth "HealthOut" of EndpointHealthView {
        /// In a word.
        required status: Condition = text();
        /// In a sentence.
        required text: String = text();
        /// Failures in a row.
        required failure_count: u32;
        /// When the status last changed, but for *degraded*.
        required since: Timestamp = moment();
        /// Since when there was no success.
        nullable failing_since: Timestamp = moment();
        /// What happened last.
        nullable last_error: LastError;
        /// When a failed one is looked at again.
        nullable next_probe_at: Timestamp = moment();
    }
}

response! {
    /// What an endpoint failed with.
    LastError "LastErrorOut" of LastErrorView {
        /// In words.
        required text: String = text();
        /// Of the answer, if there was one.
        nullable status_code: u16;
        /// When.
        required at: Timestamp = moment();
    }
}

request! {
    /// Another secret.
    RotateSecret "RotateIn" = {"gracePeriodSeconds": 3600} {
        /// `whsec_…` or `whsk_…`; one of the same kind is made, if not given.
        nullable key: Secret = secret();
        /// For how long the present key still signs beside the new one; a day, if not given.
        nullable grace_period_seconds: u32 = number(0, 7 * 24 * 3600);
    }
}

request! {
    /// An example to send.
    SendExample "EventExampleIn" = {"eventType": "svix.ping"} {
        /// Its event type, or `svix.ping`, which needs none.
        required event_type: String = name();
        /// Which of the schema's examples; the first, if not given.
        nullable example_index: u32 = number(0, MAX_INDEX).wide().without_max();
    }
}

/// Beyond what any schema has.
#[cfg(feature = "server")]
const MAX_INDEX: u64 = 0xffff_ffff;

impl SendExample {
    /// Of an event type.
    pub fn new(event_type: impl Into<String>) -> Self {
        Self { event_type: event_type.into(), ..Self::default() }
    }
}

request! {
    /// How an endpoint goes on.
    Resume "ResumeIn" = {"recover": true} {
        /// Also send again what has died in the outage.
        given recover: bool = toggle();
    }
}

request! {
    /// All headers of an endpoint; there may be none.
    SetHeaders "HeadersIn" = {"headers": {"X-Team": "billing"}} {
        /// Names and values.
        required headers: BTreeMap<String, String> = strings(MAX_HEADERS);
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for SetHeaders {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(headers: I) -> Self {
        Self { headers: headers.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }
}

request! {
    /// What is to change about an endpoint's headers.
    HeadersPatch "HeadersPatch" = {"headers": {"X-Team": "support", "X-Region": "eu"}, "deleteHeaders": ["X-Former"]} {
        /// Names and values; null takes one away.
        map headers: BTreeMap<String, Option<String>> = strings_or_nulls(MAX_HEADER_CHANGES);
        /// The names of headers to take away.
        nullable delete_headers: Vec<String> = names(MAX_HEADER_CHANGES, any_name).undescribed();
    }
}

/// Names of headers in one request.
#[cfg(feature = "server")]
pub const MAX_HEADER_CHANGES: usize = 250;

#[cfg(feature = "server")]
fn any_name(_name: &str) -> Result<(), String> {
    Ok(())
}

response! {
    /// Headers of an endpoint.
    EndpointHeaders "HeadersOut" of EndpointHeadersView {
        /// Names and values.
        required headers: BTreeMap<String, String>;
        /// The names of those whose values are not shown.
        required sensitive: Vec<String>;
    }
}

request! {
    /// A certificate with its private key.
    Identity "IdentityIn" = {"identity": include_str!("identity_example.pem")} {
        /// Certificate chain and private key, as PEM.
        required identity: Secret = secret();
    }
}

response! {
    /// The public part of a certificate that is shown to a receiver.
    Certificate "CertificateOut" of CertificateView {
        /// Its digest.
        required certificate_sha256: String;
        /// When it or one of its issuers' certificates expires.
        nullable expires_at: Timestamp = moment();
    }
}

response! {
    /// Whether a certificate is shown.
    MutualTls "MtlsOut" of MutualTlsView {
        /// Whether.
        required enabled: bool;
        /// Which.
        nullable config: Certificate;
    }
}

response! {
    /// What requests are signed with.
    SigningSecret "SecretOut" of SigningSecretView {
        /// `whsec_…`, or for an asymmetric one its public key `whpk_…`.
        required key: Secret;
    }
}

response! {
    /// What came of going on.
    Resumed "ResumedOut" of ResumedView {
        /// `false`: the endpoint was active already.
        required changed: bool;
        /// Since when it had been failing, as far as that is known.
        nullable failing_since: Timestamp = moment();
        /// The replay of what died in the outage, where it was asked for and anything did.
        omitted task: BackgroundTask;
        /// As it is now.
        required endpoint: Endpoint;
    }
}

response! {
    /// A change of an endpoint's health.
    HealthChange "ChangeOut" of HealthChangeView {
        /// When.
        required at: Timestamp = moment();
        /// What it was.
        required from: Condition = text();
        /// What it became.
        required to: Condition = text();
        /// Why, in a word.
        required reason: String;
        /// And in more words.
        nullable detail: String;
    }
}

words! {
    /// Whether a rate holds something back.
    ThrottlingStatus {
        /// No.
        Fine = "Ok",
        /// Yes.
        RateLimited = "RateLimited",
    }
}

response! {
    /// Whether something waits for a rate.
    Throttling "EndpointThrottleRateStatusOut" of ThrottlingView {
        /// In a word.
        required status: ThrottlingStatus = one_of("EndpointRateLimitStatus", &["Ok", "RateLimited"]);
        /// Since when there has always been something that is due and has to wait for a rate.
        nullable throttled_since: Timestamp = moment();
        /// Of the endpoint: requests a second.
        nullable throttle_rate: u32;
        /// Of its application: to all endpoints together.
        nullable application_throttle_rate: u32;
    }
}
