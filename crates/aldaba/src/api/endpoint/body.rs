//! Endpoints as callers write them: what is checked beyond their form, and how they are kept.

use super::{filter, headers, ordering, reads_disabled};
use crate::api::request::json::{Fields, ReadField};
use crate::api::request::kept::Kept;
use crate::api::{Api, Error, event_type};
use crate::token::Caller;
use aldaba_api::read::{ApiRequest, Parsed};
use aldaba_api::{EndpointPatch, EndpointUpdate, Json, NewEndpoint as Body, Secret};
use aldaba_delivery::OrgId;
use aldaba_engine::wire::{BasicCredentials, TargetUrl};
use aldaba_engine::{EndpointHeaders, NewEndpoint, Policies};
use aldaba_store::{Endpoint, EndpointConfig};

const MAX_URL_BYTES: usize = EndpointConfig::MAX_URL_BYTES;

const _: () = assert!(aldaba_api::MAX_HEADERS == EndpointHeaders::MAX_HEADERS);

/// Keeps a field as it is.
macro_rules! keep {
    ([$($doc:tt)*] own $($rest:tt)*) => {};
    ([$($doc:tt)*] $kept:ident $mode:ident $field:ident [$type:ty] $config:ident $body:ident) => {
        $config.$field = Kept::keep($body.$field);
    };
}

/// Shows a field as it is kept.
macro_rules! show {
    ([$($doc:tt)*] own $($rest:tt)*) => {};
    ([$($doc:tt)*] $kept:ident $mode:ident $field:ident [$type:ty] $config:ident $body:ident) => {
        $body.$field = Kept::show(&$config.$field);
    };
}

/// An endpoint as a body that would make it.
pub(crate) fn whole(config: &EndpointConfig) -> EndpointUpdate {
    let mut whole = EndpointUpdate {
        url: config.url.clone(),
        filter: config.filter.as_ref().and_then(|filter| Json::from_text(filter.as_str()).ok()),
        ordering: Some(config.ordering.name().into()),
        on_exhausted: config.ordering.on_exhausted().map(|then| then.name().into()),
        ..EndpointUpdate::default()
    };
    aldaba_api::endpoint_fields!(show config whole);
    whole
}

/// The event types that an endpoint can ask for.
pub(crate) struct Offer<'a> {
    /// What they cannot see is not there.
    pub(crate) caller: &'a Caller,
    /// It keeps asking for these, whatever has become of them.
    pub(crate) asked_before: &'a [String],
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

/// A body whose form is known, checked against what there is. What is wrong is noted with the rest.
pub(crate) fn checked<T>(api: &Api, offer: &Offer<'_>, parsed: Parsed<T>) -> Result<NewEndpoint, Error>
where
    T: ApiRequest + Into<Body>,
{
    let Parsed { value, mut fields } = parsed;
    let body: Body = value.into();
    let new = check(api, offer, &mut fields, body.complete());
    fields.finish_in_order(T::KNOWN)?;
    new.ok_or_else(Error::server)
}

fn check(api: &Api, offer: &Offer<'_>, fields: &mut Fields, body: Body) -> Option<NewEndpoint> {
    let org = offer.caller.org();
    let url = fields.is_fine("url").then(|| body.url.clone());
    let target = target(api, fields, "url", url);
    // The name that was given.
    let named =
        if fields.gives("filterTypes") && !fields.gives("eventTypes") { "filterTypes" } else { "eventTypes" };
    offer.check(api, fields, named, body.event_types.as_deref().unwrap_or_default());
    let filter = filter::checked(fields, body.filter.as_ref());
    let key = fields.signing_key("secret", body.secret.as_ref().map(Secret::reveal));
    if let Some(name) = body.policy.as_deref().filter(|_| fields.is_fine("policy")) {
        check_policy(api, org, fields, name);
    }
    if let Some(name) = &body.profile {
        check_profile(api, org, fields, name);
    }
    if body.http2 == Some(true) && target.as_ref().is_some_and(|target| target.url.scheme() != "https") {
        fields.problem("http2", "needs an https:// URL: the choice of HTTP/2 is made in the TLS handshake");
    }
    let ordering = ordering::checked(fields, body.ordering.as_ref(), body.on_exhausted.as_ref());
    let headers = headers::checked(fields, "headers", body.headers.into_iter().collect());
    let TargetUrl { url, credentials, .. } = target?;
    let mut config = EndpointConfig { filter, ordering, ..EndpointConfig::new(url, Policies::DEFAULT) };
    aldaba_api::endpoint_fields!(keep config body);
    let credentials = credentials.map(|BasicCredentials { user, password }| (user, password));
    Some(NewEndpoint { config, credentials, headers, key })
}

/// Where a URL leads, if it may be used at all.
pub(crate) fn target(api: &Api, fields: &mut Fields, name: &str, url: Option<String>) -> Option<TargetUrl> {
    let url = fields.checked(name, url, |url| match url.len() {
        ..=MAX_URL_BYTES => Ok(()),
        length => Err(format!("may be {MAX_URL_BYTES} bytes long at most; it is {length}")),
    });
    match api.guard.parse_url(&url?) {
        Ok(target) => Some(target),
        Err(refused) => {
            fields.problem(name, refused.to_string());
            None
        }
    }
}

pub(crate) fn check_policy(api: &Api, org: OrgId, fields: &mut Fields, name: &str) {
    let policies = api.engine.policies();
    if policies.get(org, name).is_none() {
        let known = policies.of_organization(org);
        let names: Vec<_> = known.iter().map(|policy| policy.name.as_str()).collect();
        fields.problem("policy", format!("unknown policy `{name}`; there are: {}", names.join(", ")));
    }
}

pub(crate) fn check_profile(api: &Api, org: OrgId, fields: &mut Fields, name: &str) {
    let profiles = api.engine.profiles();
    if profiles.get(org, name).is_none() {
        let known = profiles.of_organization(org);
        let names: Vec<_> = known.iter().map(|profile| profile.name()).collect();
        fields.problem("profile", format!("unknown wire profile `{name}`; there are: {}", names.join(", ")));
    }
}

/// What a change makes of an endpoint.
pub(crate) fn patched(current: &Endpoint, parsed: Parsed<EndpointPatch>) -> Parsed<EndpointUpdate> {
    let mut whole = whole(&current.config);
    let Parsed { value: mut patch, fields } = parsed.against(&whole);
    if turns_off_again(current, patch.disabled) {
        patch.disabled = None;
    }
    // It belongs to the ordering, and goes with it.
    if patch.ordering.as_ref().is_some_and(|ordering| *ordering != aldaba_api::Ordering::Fifo) {
        whole.on_exhausted = None;
    }
    Parsed { value: patch.over(whole), fields }
}

/// It reads so already: a client that sends back what it has read turns nothing off.
pub(crate) fn turns_off_again(current: &Endpoint, disabled: Option<bool>) -> bool {
    disabled == Some(true) && reads_disabled(current)
}
