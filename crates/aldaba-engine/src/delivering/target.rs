use crate::wire::Identity;
use crate::{Policies, Profile, Profiles, Vault};
use aldaba_delivery::{AppId, Controls, Ordering, OrgId, Origin, Policy, Timestamp};
use aldaba_signature::SigningKey;
use aldaba_store::Endpoint;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::borrow::Cow;
use std::sync::Arc;
use url::Url;

/// What a lane knows of its endpoint.
pub(crate) struct Target {
    pub(crate) org: OrgId,
    pub(crate) app: AppId,
    pub(crate) policy: Policy,
    pub(crate) profile: Arc<Profile>,
    pub(crate) throttle_rate: Option<u16>,
    /// The rate of the application, for all its endpoints together.
    pub(crate) app_rate: Option<u16>,
    pub(crate) ordering: Ordering,
    pub(crate) deleted: bool,
    /// It is an address of `/dispatch`.
    pub(crate) direct: bool,
    /// Turned off by its operator.
    pub(crate) disabled: bool,
    pub(crate) origin: Origin,
    /// `Err`: why nothing can be sent there.
    pub(crate) address: Result<Address, &'static str>,
}

pub(crate) struct Address {
    pub(crate) url: Arc<Url>,
    pub(crate) keys: Keys,
    /// The endpoint's own headers. They never replace a header of the profile.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) http2: bool,
    pub(crate) identity: Option<Arc<Identity>>,
}

/// The keys that sign: the present one, and old ones for a while.
pub(crate) struct Keys {
    current: [SigningKey; 1],
    /// With their ends, the earliest first.
    old: Vec<(SigningKey, Timestamp)>,
}

impl Keys {
    fn new(current: SigningKey, mut old: Vec<(SigningKey, Timestamp)>) -> Self {
        old.sort_by_key(|(_, until)| *until);
        Self { current: [current], old }
    }

    /// The keys that sign at a moment, the present one first.
    pub(crate) fn at(&self, now: Timestamp) -> Cow<'_, [SigningKey]> {
        let mut valid = self.old.iter().filter(|(_, until)| *until > now).peekable();
        if valid.peek().is_none() {
            return Cow::Borrowed(&self.current);
        }
        let valid = valid.map(|(key, _)| key.clone());
        self.current.iter().cloned().chain(valid).collect()
    }
}

impl Target {
    pub(crate) fn new(endpoint: &Endpoint, policies: &Policies, profiles: &Profiles, vault: &Vault) -> Self {
        Self::of_lane(endpoint, None, policies, profiles, vault)
    }

    pub(crate) fn of_lane(
        endpoint: &Endpoint,
        app_rate: Option<u16>,
        policies: &Policies,
        profiles: &Profiles,
        vault: &Vault,
    ) -> Self {
        let address = Address::new(endpoint, vault);
        let origin = match &address {
            Ok(address) => origin(&address.url),
            Err(_) => Origin::new("none", "", 0),
        };
        let policy = policies.of(endpoint.org, &endpoint.config.policy);
        let policy = if endpoint.direct { policy.without_owner() } else { policy };
        Self {
            org: endpoint.org,
            app: endpoint.app,
            policy,
            profile: profiles.of(endpoint.org, endpoint.config.profile.as_deref()),
            throttle_rate: endpoint.config.throttle_rate,
            app_rate,
            ordering: endpoint.config.ordering,
            deleted: endpoint.deleted,
            direct: endpoint.direct,
            disabled: endpoint.config.disabled,
            origin,
            address,
        }
    }
}

impl Target {
    /// The settings that decide whether deliveries go to it.
    pub(crate) fn controls(&self) -> Controls {
        Controls { disabled: self.disabled, ordering: self.ordering }
    }

    /// The headers of a request: those of the profile, the endpoint and the message.
    pub(crate) fn with_own(
        profile: &Profile,
        address: &Address,
        of_message: &[(HeaderName, HeaderValue)],
        mut headers: HeaderMap,
    ) -> HeaderMap {
        for (name, value) in &address.headers {
            if !profile.sends(name) {
                headers.insert(name, value.clone());
            }
        }
        // A header that came several times is sent as often.
        for (number, (name, value)) in of_message.iter().enumerate() {
            let came_before = of_message[..number].iter().any(|(other, _)| other == name);
            if profile.sends(name) {
                continue;
            }
            if came_before {
                headers.append(name, value.clone());
            } else {
                headers.insert(name, value.clone());
            }
        }
        headers
    }
}

impl Address {
    fn new(endpoint: &Endpoint, vault: &Vault) -> Result<Self, &'static str> {
        let url = Url::parse(&endpoint.config.url).map_err(|_| "the endpoint's URL cannot be read")?;
        let secrets = vault
            .open(endpoint.app, endpoint.id, &endpoint.sealed)
            .map_err(|_| "the endpoint's secret cannot be opened with the configured encryption key")?;
        let mut headers = secrets.headers.on_the_wire();
        if let Some((user, password)) = secrets.credentials
            && !headers.iter().any(|(name, _)| name == AUTHORIZATION)
        {
            headers.push((AUTHORIZATION, basic(&user, &password)));
        }
        Ok(Self {
            url: Arc::new(url),
            keys: Keys::new(secrets.key, secrets.old_keys),
            headers,
            http2: endpoint.config.http2,
            identity: secrets.identity,
        })
    }
}

/// The origin of an endpoint's URL, where it can be read.
pub(crate) fn origin_of(endpoint: &Endpoint) -> Option<Origin> {
    Url::parse(&endpoint.config.url).ok().map(|url| origin(&url))
}

fn origin(url: &Url) -> Origin {
    Origin::new(url.scheme(), url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(0))
}

fn basic(user: &str, password: &str) -> HeaderValue {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    let mut value = HeaderValue::from_str(&format!("Basic {text}")).expect("base64 is a header value");
    value.set_sensitive(true);
    value
}

#[cfg(test)]
impl Target {
    /// An endpoint under a built-in policy, to which nothing is sent.
    pub(crate) fn sample(policy: &str) -> Self {
        let policies = Policies::new(&aldaba_delivery::policy::Overrides::default());
        let policies = policies.expect("the built-in policies are valid");
        Self {
            org: OrgId::from_bytes([9; 20]),
            app: AppId::from_bytes([2; 20]),
            policy: policies.builtin(policy).expect("a built-in policy").clone(),
            profile: Profiles::standard(),
            throttle_rate: None,
            app_rate: None,
            ordering: Ordering::None,
            deleted: false,
            direct: false,
            disabled: false,
            origin: Origin::new("https", "example.com", 443),
            address: Err("nothing is sent in this test"),
        }
    }
}
