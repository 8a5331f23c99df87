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

/// A URL that wants events, as it is to be. For a new one [`to`](Self::to) begins; for an update
/// [`unchanged`](Self::unchanged), where only what is given changes.
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
    /// One at this URL, http or https. User and password in it become basic authentication.
    pub fn to(url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::default() }
    }

    /// One that is as it was, but for what follows.
    pub fn unchanged() -> Self {
        Self::default()
    }

    /// Another URL. What waits goes there, from its next attempt on.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Your own name for it, unique in the application.
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = Some(uid.into());
        self
    }

    /// Only events of these types; none given: of all. They need not be described anywhere.
    pub fn events<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.events = Some(set(types));
        self
    }

    /// Only events with one of these channels; none given: all.
    pub fn channels<T: Into<String>>(mut self, channels: impl IntoIterator<Item = T>) -> Self {
        self.channels = Some(set(channels));
        self
    }

    /// Only events that pass this filter, as JSON (docs/filters.md); `None`: all.
    pub fn filter(mut self, filter: Option<&str>) -> Self {
        self.filter = Some(filter.map(str::to_owned));
        self
    }

    /// By which deliveries are retried; `standard`, if it is not given.
    pub fn policy(mut self, name: impl Into<String>) -> Self {
        self.policy = Some(name.into());
        self
    }

    /// The wire profile: headers and signature. The engine's default, if it is not given.
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.profile = Some(name.into());
        self
    }

    /// Requests a second, at most; `None`: any number.
    pub fn throttle_rate(mut self, rate: Option<u16>) -> Self {
        self.throttle_rate = Some(rate);
        self
    }

    /// Whether events go out one after another, in their order.
    pub fn ordering(mut self, ordering: Ordering) -> Self {
        self.ordering = Some(ordering);
        self
    }

    /// What becomes of events while it is turned off; they are skipped, if it is not given.
    pub fn when_disabled(mut self, then: WhenDisabled) -> Self {
        self.when_disabled = Some(then);
        self
    }

    /// Sent with every request, in the place of all that were given before.
    pub fn headers<N: Into<String>, V: Into<String>>(
        mut self,
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.headers = Some(headers.into_iter().map(|(name, value)| (name.into(), value.into())).collect());
        self
    }

    /// What signs the deliveries of a new one: `whsec_…` (HMAC) or `whsk_…` (Ed25519). One is made, if it is not
    /// given. Of one that there is, it is changed by [`Application::rotate_secret`](crate::Application::rotate_secret).
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// As the engine takes it.
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

    /// Another configuration, and what to log in with if the URL changes.
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

    /// What there is to change.
    pub(crate) fn of_one_there_is(self, uid: &str) -> Self {
        Self { uid: Some(uid.to_owned()), secret: None, ..self }
    }

    pub(crate) fn has_secret(&self) -> bool {
        self.secret.is_some()
    }
}

/// Without what may be secret.
impl fmt::Debug for EndpointSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointSpec").field("uid", &self.uid).finish_non_exhaustive()
    }
}

/// A URL that may be sent to, and what to log in with.
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

/// An endpoint as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoint {
    /// Its id.
    pub id: EndpointId,
    /// Your own name for it.
    pub uid: Option<String>,
    /// Without user and password.
    pub url: String,
    /// What people should know about it.
    pub description: String,
    /// What people call it.
    pub name: Option<String>,
    /// The mail address of whoever answers for it.
    pub owner_email: Option<String>,
    /// Empty: all.
    pub events: Vec<String>,
    /// Empty: all.
    pub channels: Vec<String>,
    /// By which deliveries are retried.
    pub policy: String,
    /// `None`: the engine's default.
    pub profile: Option<String>,
    /// Requests a second, at most; `None`: any number.
    pub throttle_rate: Option<u16>,
    /// Whether events go out one after another.
    pub ordering: Ordering,
    /// Turned off by hand.
    pub disabled: bool,
    /// How it is: active, failing, given up, …
    pub condition: Condition,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was last changed.
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
    fn what_the_api_of_a_server_would_refuse_is_refused_here() {
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
    fn what_is_not_given_stays_as_it_was_and_a_login_goes_with_its_url() {
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
