//! Endpoints as callers write them.

use super::{filter, headers, ordering};
use super::{reads_disabled, some_items};
use crate::api::request::bounded_json;
use crate::api::request::ids;
use crate::api::request::json::{self, Fields};
use crate::api::request::variant::Variant;
use crate::api::response::error::Problem;
use crate::api::routing::route::example;
use crate::api::{Api, Error, event_type};
use crate::token::Caller;
use aldaba_delivery::{OnExhausted, OrgId, WhenDisabled, names};
use aldaba_engine::wire::{Credentials, TargetUrl};
use aldaba_engine::{NewEndpoint, Policies};
use aldaba_store::{Endpoint, EndpointConfig};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

const FIELDS: &[&str] = &[
    "url",
    "uid",
    "description",
    "version",
    "disabled",
    "whenDisabled",
    "eventTypes",
    "filterTypes",
    "channels",
    "filter",
    "throttleRate",
    "rateLimit",
    "policy",
    "profile",
    "http2",
    "ordering",
    "onExhausted",
    "metadata",
    "secret",
    "headers",
];
/// What only the server sets. Whoever changes an endpoint may send back all that they have read.
const READ_ONLY_FIELDS: [&str; 7] =
    ["id", "blocked", "status", "failureCount", "health", "createdAt", "updatedAt"];
const LONGEST_URL: usize = EndpointConfig::MAX_URL_BYTES;

/// An endpoint: a URL that wants messages.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
pub(crate) struct EndpointIn {
    /// Absolute, http or https; user and password in it become basic authentication.
    #[schema(format = "uri", max_length = 8192)]
    url: String,
    /// Your own name for it.
    #[schema(min_length = 1, max_length = 256, pattern = "^(?!ep_)[a-zA-Z0-9\\-_.]+$")]
    uid: Option<String>,
    #[schema(max_length = 4096)]
    description: Option<String>,
    #[schema(minimum = 1)]
    version: Option<u16>,
    disabled: Option<bool>,
    /// What becomes of messages while it is disabled: `skip` (default) or `hold`.
    when_disabled: Option<String>,
    /// Only messages of these types; null: of all.
    #[schema(min_items = 1, max_items = 1000)]
    event_types: Option<Vec<String>>,
    /// Only messages with one of these channels; null: all.
    #[schema(min_items = 1, max_items = 10)]
    channels: Option<Vec<String>>,
    /// Only messages that pass this filter (see the documentation of filters); null: all.
    #[schema(value_type = Option<Object>)]
    filter: Option<()>,
    /// Requests a second at most.
    #[schema(minimum = 1)]
    throttle_rate: Option<u16>,
    /// Of retries; `standard`, if not given.
    policy: Option<String>,
    /// Wire profile; the server's default, if not given.
    profile: Option<String>,
    /// Offer HTTP/2 to the receiver (https only).
    http2: Option<bool>,
    /// `none` (default) or `fifo`.
    ordering: Option<String>,
    /// Of an ordered endpoint: `skip` or `block`.
    on_exhausted: Option<String>,
    metadata: Option<BTreeMap<String, String>>,
    /// `whsec_…` or `whsk_…`; one is made, if not given.
    secret: Option<String>,
    /// Sent with every request.
    headers: Option<BTreeMap<String, String>>,
}

example!(EndpointIn, {"url": "https://example.com/hooks", "description": "Their accounting", "policy": "quick"});

pub(crate) struct EndpointUpdate;

impl ToSchema for EndpointUpdate {}

impl PartialSchema for EndpointUpdate {
    fn schema() -> RefOr<Schema> {
        Variant::of::<EndpointIn>("An endpoint as it is to be; what is not given is set to its default.")
            .without(&["secret", "headers"])
            .into()
    }
}

example!(EndpointUpdate, {"url": "https://example.com/other-hooks", "description": "Their accounting", "policy": "standard"});

pub(crate) struct EndpointPatch;

impl ToSchema for EndpointPatch {}

impl PartialSchema for EndpointPatch {
    fn schema() -> RefOr<Schema> {
        Variant::of::<EndpointUpdate>("Fields of an endpoint that change; null clears one.")
            .optional("url")
            .into()
    }
}

example!(EndpointPatch, {"throttleRate": 10, "disabled": false});

/// The event types that an endpoint can ask for.
pub(crate) struct Offer<'a> {
    /// What they cannot see is not there.
    pub(crate) caller: &'a Caller,
    /// It keeps asking for these, whatever has become of them.
    pub(crate) asked_before: &'a [String],
    /// It may be there already.
    pub(crate) is_change: bool,
}

impl Offer<'_> {
    /// The server's own events need no description.
    fn is_operational(&self, name: &str) -> bool {
        event_type::is_operational(self.caller, name)
    }

    fn check(&self, api: &Api, fields: &mut Fields, field: &str, names: &[String]) {
        let (mut missing, mut archived) = (Vec::new(), Vec::new());
        for name in names.iter().filter(|name| !self.asked_before.contains(name)) {
            let found = api.engine.event_types().get(self.caller.org(), name);
            match found.filter(|found| self.caller.sees(found)) {
                None if self.is_operational(name) => {}
                None => missing.push(name.as_str()),
                Some(found) if found.archived => archived.push(name.as_str()),
                Some(_) => {}
            }
        }
        if !missing.is_empty() {
            let message = format!(
                "there is no event type {}; POST /api/v1/event-type makes one, GET lists them",
                listed(&missing)
            );
            fields.problem(field, message);
        }
        if !archived.is_empty() {
            let message = format!(
                "{} is archived; POST /api/v1/event-type with its name revives it",
                listed(&archived)
            );
            fields.problem(field, message);
        }
    }
}

/// How many names a message has.
const NAMED: usize = 10;

fn listed(names: &[&str]) -> String {
    let first: Vec<_> = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", first.join(", "))
}

pub(crate) fn read(api: &Api, offer: &Offer<'_>, body: &[u8]) -> Result<NewEndpoint, Error> {
    let org = offer.caller.org();
    let mut fields = Fields::parse(body)?;
    if offer.is_change {
        fields.forget(&READ_ONLY_FIELDS);
    }
    fields.refuse_others(FIELDS);
    let url = fields.required_string("url");
    let target = target(api, &mut fields, "url", url);
    let description = fields.string_or("description", "");
    let description = fields.checked("description", Some(description), |text| {
        names::text(text, EndpointConfig::MAX_DESCRIPTION_BYTES)
    });
    let uid = fields.string("uid");
    let uid = fields.checked("uid", uid, |uid| ids::uid(uid, "ep_"));
    let version = fields.count("version").unwrap_or(1);
    let disabled = fields.boolean_or("disabled", false);
    let when_disabled = when_disabled(&mut fields);
    let (throttle_rate, rate_limit) = (fields.count("throttleRate"), fields.count("rateLimit"));
    if fields.has("eventTypes") && fields.has("filterTypes") {
        fields.problem("eventTypes", "is given twice: `filterTypes` is another name for it");
    }
    let event_types = fields.set("eventTypes", EndpointConfig::MAX_EVENT_TYPES, ids::name);
    let filter_types = fields.set("filterTypes", EndpointConfig::MAX_EVENT_TYPES, ids::name);
    offer.check(api, &mut fields, "eventTypes", &event_types);
    offer.check(api, &mut fields, "filterTypes", &filter_types);
    let channels = fields.set("channels", EndpointConfig::MAX_CHANNELS, ids::channel);
    let filter = filter::read(&mut fields, body);
    let metadata = fields.metadata();
    let key = fields.signing_key("secret");
    let policy = policy(api, org, &mut fields);
    let profile = profile(api, org, &mut fields);
    let http2 = fields.boolean_or("http2", false);
    if http2 && target.as_ref().is_some_and(|target| target.url.scheme() != "https") {
        fields.problem("http2", "needs an https:// URL: the choice of HTTP/2 is made in the TLS handshake");
    }
    let ordering = ordering::read(&mut fields);
    let headers = headers::read(&mut fields, "headers");
    fields.finish()?;
    let target = target.ok_or_else(Error::server)?;
    let config = EndpointConfig {
        uid,
        url: target.url.into(),
        description: description.unwrap_or_default(),
        version,
        disabled,
        when_disabled,
        event_types: if event_types.is_empty() { filter_types } else { event_types },
        channels,
        filter,
        throttle_rate: throttle_rate.or(rate_limit),
        policy,
        profile,
        http2,
        ordering,
        metadata,
    };
    let credentials = target.credentials.map(|Credentials { user, password }| (user, password));
    Ok(NewEndpoint { config, credentials, headers, key })
}

/// Where a URL leads, if it may be used at all.
pub(crate) fn target(api: &Api, fields: &mut Fields, name: &str, url: Option<String>) -> Option<TargetUrl> {
    let url = fields.checked(name, url, |url| match url.len() {
        ..=LONGEST_URL => Ok(()),
        length => Err(format!("may be {LONGEST_URL} bytes long at most; it is {length}")),
    });
    match api.guard.parse_url(&url?) {
        Ok(target) => Some(target),
        Err(refused) => {
            fields.problem(name, refused.to_string());
            None
        }
    }
}

fn when_disabled(fields: &mut Fields) -> WhenDisabled {
    match fields.string("whenDisabled").as_deref() {
        None | Some("skip") => WhenDisabled::Skip,
        Some("hold") => WhenDisabled::Hold,
        Some(other) => {
            fields.problem("whenDisabled", format!("must be `skip` or `hold`, not `{other}`"));
            WhenDisabled::Skip
        }
    }
}

pub(crate) fn policy(api: &Api, org: OrgId, fields: &mut Fields) -> String {
    let policies = api.engine.policies();
    let given = fields.string("policy");
    let known = fields.checked("policy", given, |name| match policies.get(org, name) {
        Some(_) => Ok(()),
        None => {
            let known = policies.of_organization(org);
            let names: Vec<_> = known.iter().map(|policy| policy.name.as_str()).collect();
            Err(format!("`{name}` is no policy; there are: {}", names.join(", ")))
        }
    });
    known.unwrap_or_else(|| Policies::DEFAULT.to_owned())
}

pub(crate) fn profile(api: &Api, org: OrgId, fields: &mut Fields) -> Option<String> {
    let profiles = api.engine.profiles();
    let given = fields.string("profile");
    fields.checked("profile", given, |name| match profiles.get(org, name) {
        Some(_) => Ok(()),
        None => {
            let known = profiles.of_organization(org);
            let names: Vec<_> = known.iter().map(|profile| profile.name()).collect();
            Err(format!("`{name}` is no wire profile; there are: {}", names.join(", ")))
        }
    })
}

/// The body that would make the endpoint, with the given fields in the place of its own; and those.
pub(crate) fn merge(current: &Endpoint, body: &[u8]) -> Result<(String, Map<String, Value>), Error> {
    let mut given = changes(body)?;
    if turns_off_again(current, &given) {
        given.remove("disabled");
    }
    if given.get("version") == Some(&Value::Null) {
        return Err(Problem::value(&["body", "version"], "cannot be null; leave it out").into());
    }
    let metadata: &RawValue = json::raw(&current.config.metadata);
    let mut merged = json!({
        "uid": current.config.uid,
        "url": current.config.url,
        "description": current.config.description,
        "version": current.config.version,
        "disabled": current.config.disabled,
        "whenDisabled": current.config.when_disabled.name(),
        "eventTypes": some_items(&current.config.event_types),
        "channels": some_items(&current.config.channels),
        "throttleRate": current.config.throttle_rate,
        "policy": current.config.policy,
        "profile": current.config.profile,
        "http2": current.config.http2,
        "ordering": current.config.ordering.name(),
        "onExhausted": current.config.ordering.on_exhausted().map(OnExhausted::name),
        "metadata": metadata,
    });
    // It belongs to the ordering, and goes with it.
    if given.contains_key("ordering") && given["ordering"] != "fifo" {
        merged["onExhausted"] = Value::Null;
    }
    // Older names for the same things.
    let same = [("filterTypes", "eventTypes"), ("rateLimit", "throttleRate")];
    for (name, value) in &given {
        // Both at once are for `read` to judge.
        if let Some((_, twin)) = same.iter().find(|(older, _)| older == name)
            && !given.contains_key(*twin)
        {
            merged.as_object_mut().and_then(|fields| fields.remove(*twin));
        }
        merged[name] = value.clone();
    }
    Ok((with_filter(merged, current, body, given.contains_key("filter"))?, given))
}

/// The filter goes in as it is written.
fn with_filter(mut merged: Value, current: &Endpoint, body: &[u8], is_given: bool) -> Result<String, Error> {
    let own = current.config.filter.as_ref().map(|filter| filter.as_str());
    let given = filter::text(body);
    let given = given.map_err(|_| Error::from(Problem::value(&["body", "filter"], "is given twice")))?;
    merged.as_object_mut().and_then(|fields| fields.remove("filter"));
    let merged = merged.to_string();
    let Some(filter) = (if is_given { given } else { own }) else { return Ok(merged) };
    let fields = merged.strip_suffix('}').unwrap_or_default();
    Ok(format!("{fields},\"filter\":{filter}}}"))
}

/// The body of a change. What has a route of its own is not changed in passing.
pub(crate) fn changes(body: &[u8]) -> Result<Map<String, Value>, Error> {
    let given: Map<String, Value> = bounded_json::body(body)?;
    let elsewhere = [
        ("secret", "is not changed here; rotate it with POST …/secret/rotate"),
        ("headers", "are not changed here; change them with PUT or PATCH …/headers"),
    ];
    let problem = |(name, message): &(&str, &str)| Problem::value(&["body", name], *message);
    let there = |(name, _): &&(&str, &str)| given.get(*name).is_some_and(|value| !value.is_null());
    let problems: Vec<_> = elsewhere.iter().filter(there).map(problem).collect();
    if problems.is_empty() { Ok(given) } else { Err(Error::problems(problems)) }
}

/// It reads so already. Whoever sends back what they have read turns nothing off.
pub(crate) fn turns_off_again(current: &Endpoint, given: &Map<String, Value>) -> bool {
    given.get("disabled") == Some(&Value::Bool(true)) && reads_disabled(current)
}
