use crate::Error;
use crate::event::{check_all, set};
use aldaba_api::{EndpointPatch, EndpointUpdate, NewEndpoint as EndpointBody, Set};
use aldaba_delivery::{Condition, EndpointId, Filter, Ordering, Timestamp, WhenDisabled, names};
use aldaba_engine::wire::{BasicCredentials, Guard};
use aldaba_engine::{EndpointHeaders, HeaderProblem, NewEndpoint, Policies};
use aldaba_signature::SigningKey;
use aldaba_store::{Endpoint as Stored, EndpointConfig};
use std::fmt;
use std::sync::Arc;

/// The fields of an endpoint. [`to`](Self::to) begins a new endpoint; [`unchanged`](Self::unchanged) begins an update,
/// which changes only the given fields.
#[derive(Clone, Default)]
#[must_use]
pub struct EndpointSpec {
    url: Option<String>,
    uid: Option<String>,
    /// Those that are set as they are.
    plain: EndpointPatch,
    events: Option<Vec<String>>,
    channels: Option<Vec<String>>,
    filter: Option<Option<String>>,
    policy: Option<String>,
    profile: Option<String>,
    throttle_rate: Option<Option<u16>>,
    ordering: Option<Ordering>,
    when_disabled: Option<WhenDisabled>,
    headers: Option<Vec<(String, String)>>,
    secret: Option<String>,
}

/// Makes a method that sets a field as it is.
macro_rules! setter {
    ([$(#[doc = $doc:literal])*] plain $mode:ident $field:ident [$type:ty]) => {
        $(#[doc = $doc])*
        pub fn $field(mut self, $field: impl Into<$type>) -> Self {
            let value: $type = $field.into();
            self.plain.$field = value.into();
            self
        }
    };
    ([$($doc:tt)*] $route:ident $($rest:tt)*) => {};
}

/// Lays a field that is set as it is over what there is.
macro_rules! lay {
    ([$($doc:tt)*] plain $mode:ident $field:ident [$type:ty] $spec:ident $config:ident) => {
        Lay::lay(&$spec.plain.$field, &mut $config.$field);
    };
    ([$($doc:tt)*] $route:ident $($rest:tt)*) => {};
}

/// A field that may be given, over one that there is.
trait Lay<T> {
    fn lay(&self, current: &mut T);
}

impl<T: Clone> Lay<T> for Option<T> {
    fn lay(&self, current: &mut T) {
        if let Some(value) = self {
            current.clone_from(value);
        }
    }
}

impl<T: Clone> Lay<Option<T>> for Set<T> {
    fn lay(&self, current: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *current = None,
            Self::To(value) => *current = Some(value.clone()),
        }
    }
}

impl EndpointSpec {
    aldaba_api::endpoint_fields!(setter);

    pub(crate) fn turns_on(&self) -> bool {
        self.plain.disabled == Some(false)
    }
}

/// User and password, sent as basic authentication.
pub(crate) type Login = Option<(String, String)>;

impl EndpointSpec {
    /// A new endpoint at this URL, http or https. User and password in it become basic authentication.
    pub fn to(url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::default() }
    }

    /// An update that changes only the fields set after this.
    pub fn unchanged() -> Self {
        Self::default()
    }

    /// Sets another URL. Pending deliveries use it from their next attempt.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Sets your own name of the endpoint, unique in the application.
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = Some(uid.into());
        self
    }

    /// Sets the event types that the endpoint gets; none: all. They need not be described as event types.
    pub fn events<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.events = Some(set(types));
        self
    }

    /// Sets the channels that the endpoint gets; none: all.
    pub fn channels<T: Into<String>>(mut self, channels: impl IntoIterator<Item = T>) -> Self {
        self.channels = Some(set(channels));
        self
    }

    /// Sets a filter, as JSON (docs/filters.md); `None`: no filter.
    pub fn filter(mut self, filter: Option<&str>) -> Self {
        self.filter = Some(filter.map(str::to_owned));
        self
    }

    /// Sets the retry policy. Default: `standard`.
    pub fn policy(mut self, name: impl Into<String>) -> Self {
        self.policy = Some(name.into());
        self
    }

    /// Sets the wire profile: headers and signature. Default: the engine's.
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.profile = Some(name.into());
        self
    }

    /// Sets the maximum number of requests per second; `None`: unlimited.
    pub fn throttle_rate(mut self, rate: Option<u16>) -> Self {
        self.throttle_rate = Some(rate);
        self
    }

    /// Sets whether events are sent one after another, in order.
    pub fn ordering(mut self, ordering: Ordering) -> Self {
        self.ordering = Some(ordering);
        self
    }

    /// Sets what happens to events while the endpoint is turned off. Default: they are skipped.
    pub fn when_disabled(mut self, then: WhenDisabled) -> Self {
        self.when_disabled = Some(then);
        self
    }

    /// Sets headers that are sent with every request, replacing all earlier ones.
    pub fn headers<N: Into<String>, V: Into<String>>(
        mut self,
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.headers = Some(headers.into_iter().map(|(name, value)| (name.into(), value.into())).collect());
        self
    }

    /// Sets the signing secret of a new endpoint: `whsec_…` (HMAC) or `whsk_…` (Ed25519). Default: a generated one.
    /// [`Application::rotate_secret`](crate::Application::rotate_secret) changes the secret of an existing endpoint.
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// Converts the fields for the engine.
    pub(crate) fn made(&self, guard: &Guard) -> Result<NewEndpoint, Error> {
        let nothing = EndpointConfig::new("", Policies::DEFAULT);
        if self.url.is_none() {
            return Err(Error::Invalid {
                field: "url",
                why: "a new endpoint needs one: begin with `to`".into(),
            });
        }
        let (config, login) = self.laid_over(nothing, guard)?;
        let key = self.secret.as_deref().map(key).transpose()?;
        let headers = self.checked_headers()?.unwrap_or_default();
        Ok(NewEndpoint { config, credentials: login.flatten(), headers, key })
    }

    /// The changed configuration, and the login if the URL changes.
    pub(crate) fn laid_over(
        &self,
        current: EndpointConfig,
        guard: &Guard,
    ) -> Result<(EndpointConfig, Option<Login>), Error> {
        let mut config = current;
        let mut login = None;
        if let Some(url) = &self.url {
            let (url, given) = target(url, guard)?;
            config.url = url;
            login = Some(given);
        }
        if let Some(uid) = &self.uid {
            names::uid(uid, "ep_").map_err(Error::invalid("uid"))?;
            config.uid = Some(uid.clone());
        }
        let plain = EndpointBody::from(self.plain.clone().over(EndpointUpdate::default()));
        plain.check().map_err(|(field, why)| Error::Invalid { field, why })?;
        let spec = self;
        aldaba_api::endpoint_fields!(lay spec config);
        if let Some(events) = &self.events {
            check_all("events", events, EndpointConfig::MAX_EVENT_TYPES, names::name)?;
            config.event_types.clone_from(events);
        }
        if let Some(channels) = &self.channels {
            check_all("channels", channels, EndpointConfig::MAX_CHANNELS, names::channel)?;
            config.channels.clone_from(channels);
        }
        if let Some(filter) = &self.filter {
            config.filter = filter.as_deref().map(read_filter).transpose()?;
        }
        if self.throttle_rate == Some(Some(0)) {
            let why = "must be at least 1; `None` for any number".into();
            return Err(Error::Invalid { field: "throttle_rate", why });
        }
        config.throttle_rate = self.throttle_rate.unwrap_or(config.throttle_rate);
        config.ordering = self.ordering.unwrap_or(config.ordering);
        config.when_disabled = self.when_disabled.unwrap_or(config.when_disabled);
        if let Some(policy) = &self.policy {
            config.policy.clone_from(policy);
        }
        if let Some(profile) = &self.profile {
            config.profile = Some(profile.clone());
        }
        if config.http2 && !config.url.starts_with("https:") {
            let why = "needs an https:// URL: the choice of HTTP/2 is made in the TLS handshake".into();
            return Err(Error::Invalid { field: "http2", why });
        }
        Ok((config, login))
    }

    pub(crate) fn checked_headers(&self) -> Result<Option<EndpointHeaders>, Error> {
        self.headers.clone().map(checked_headers).transpose()
    }

    /// The changes for the engine.
    pub(crate) fn of_one_there_is(self, uid: &str) -> Self {
        Self { uid: Some(uid.to_owned()), secret: None, ..self }
    }

    pub(crate) fn has_secret(&self) -> bool {
        self.secret.is_some()
    }
}

/// Does not show values that may be secret.
impl fmt::Debug for EndpointSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointSpec").field("uid", &self.uid).finish_non_exhaustive()
    }
}

/// Checks a URL, and splits off its login.
pub(crate) fn target(url: &str, guard: &Guard) -> Result<(String, Login), Error> {
    if url.len() > EndpointConfig::MAX_URL_BYTES {
        let why = format!("may be {} bytes long at most", EndpointConfig::MAX_URL_BYTES);
        return Err(Error::Invalid { field: "url", why });
    }
    let target = guard.parse_url(url)?;
    let login = target.credentials.map(|BasicCredentials { user, password }| (user, password));
    Ok((target.url.into(), login))
}

pub(crate) fn checked_headers(given: Vec<(String, String)>) -> Result<EndpointHeaders, Error> {
    EndpointHeaders::new(given).map_err(|problems| headers_refused(&problems))
}

pub(crate) fn headers_refused(problems: &[HeaderProblem]) -> Error {
    let problems: Vec<_> =
        problems.iter().map(|problem| format!("{} {}", problem.name, problem.why)).collect();
    Error::Invalid { field: "headers", why: problems.join("; ") }
}

pub(crate) fn key(text: &str) -> Result<SigningKey, Error> {
    SigningKey::parse(text).map_err(|error| Error::Invalid { field: "secret", why: error.to_string() })
}

fn read_filter(text: &str) -> Result<Arc<Filter>, Error> {
    Filter::parse(text).map(Arc::new).map_err(|errors| {
        let errors: Vec<_> =
            errors.iter().map(|error| format!("{} {}", error.location.join("."), error.why)).collect();
        Error::Invalid { field: "filter", why: errors.join("; ") }
    })
}

/// An endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoint {
    /// The id.
    pub id: EndpointId,
    /// Your own name of the endpoint.
    pub uid: Option<String>,
    /// The URL without user and password.
    pub url: String,
    /// The description for people.
    pub description: String,
    /// The name for people.
    pub name: Option<String>,
    /// The mail address of the owner.
    pub owner_email: Option<String>,
    /// The event types; empty: all.
    pub events: Vec<String>,
    /// The channels; empty: all.
    pub channels: Vec<String>,
    /// The retry policy.
    pub policy: String,
    /// The wire profile; `None`: the engine's default.
    pub profile: Option<String>,
    /// The maximum number of requests per second; `None`: unlimited.
    pub throttle_rate: Option<u16>,
    /// Whether events are sent one after another.
    pub ordering: Ordering,
    /// Whether a person has turned it off.
    pub disabled: bool,
    /// The health: active, degraded, failed, …
    pub condition: Condition,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

impl From<Stored> for Endpoint {
    fn from(stored: Stored) -> Self {
        let condition = stored.state().condition();
        let EndpointConfig {
            uid,
            url,
            description,
            name,
            owner_email,
            event_types,
            channels,
            policy,
            profile,
            throttle_rate,
            ordering,
            disabled,
            ..
        } = stored.config;
        Self {
            id: stored.id,
            uid,
            url,
            description,
            name,
            owner_email,
            events: event_types,
            channels,
            policy,
            profile,
            throttle_rate,
            ordering,
            disabled,
            condition,
            created_at: stored.created_at,
            updated_at: stored.updated_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(spec: &EndpointSpec) -> &'static str {
        match spec.made(&Guard::default()) {
            Err(Error::Invalid { field, .. }) => field,
            other => panic!("{other:?}"),
        }
    }

    fn spec() -> EndpointSpec {
        EndpointSpec::to("https://example.com/hook")
    }

    #[test]
    fn input_that_the_api_refuses_is_refused_here() {
        assert_eq!(refused(&EndpointSpec::unchanged()), "url");
        for url in
            ["", "example.com", "ftp://example.com", "https://127.0.0.1/", "http://[::1]/", "https://a b/"]
        {
            assert_eq!(refused(&EndpointSpec::to(url)), "url", "{url}");
        }
        assert_eq!(refused(&spec().url(format!("https://example.com/{}", "x".repeat(8192)))), "url");
        assert_eq!(refused(&spec().uid("ep_1")), "uid");
        assert_eq!(refused(&spec().description("a\0b")), "description");
        assert_eq!(refused(&spec().events(["a b"])), "events");
        assert_eq!(refused(&spec().channels((0..11).map(|n| n.to_string()))), "channels");
        assert_eq!(refused(&spec().filter(Some("[1]"))), "filter");
        assert_eq!(refused(&spec().throttle_rate(Some(0))), "throttle_rate");
        assert_eq!(refused(&EndpointSpec::to("http://example.com/").http2(true)), "http2");
        assert_eq!(refused(&spec().headers([("host", "x")])), "headers");
        assert_eq!(refused(&spec().headers([("x-a", "1\r\nx-b: 2")])), "headers");
        assert_eq!(refused(&spec().secret("not a secret")), "secret");
    }

    #[test]
    fn omitted_fields_stay_and_a_login_is_dropped_with_its_url() {
        let guard = Guard::default();
        let spec =
            EndpointSpec::to("https://user:pass@example.com/hook").events(["b", "a", "b"]).policy("quick");
        let made = spec.made(&guard).unwrap();
        assert_eq!(made.config.url, "https://example.com/hook");
        assert_eq!(made.credentials, Some(("user".into(), "pass".into())));
        assert_eq!(made.config.event_types, ["a", "b"]);
        assert!(!format!("{spec:?}").contains("pass"));
        let change = EndpointSpec::unchanged().policy("persistent");
        let (config, login) = change.laid_over(made.config.clone(), &guard).unwrap();
        assert_eq!(config, EndpointConfig { policy: "persistent".into(), ..made.config });
        assert_eq!(login, None, "left alone");
        let (_, login) = EndpointSpec::to("https://example.org/").laid_over(config, &guard).unwrap();
        assert_eq!(login, Some(None), "taken away");
    }
}
