//! Who may read the metrics, and the answer. They are about all organizations, so no key of one of them is enough.

use super::{Format, Metrics};
use crate::api::{Code, Error};
use crate::config::{Config, Secret};
use aldaba_engine::Engine;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use std::net::IpAddr;
use subtle::ConstantTimeEq;

const ELSEWHERE: &str = "The metrics are served at the address of the setting `metrics_listen`, not here";
const CLOSED: &str = "The metrics are open on loopback addresses only. To read them from elsewhere, set `metrics_listen` to an \
                      address of their own, or `metrics_token` and send it as `Authorization: Bearer`";
const WRONG_TOKEN: &str =
    "The metrics need the token of the setting `metrics_token`; send it as `Authorization: Bearer`";

/// Who may read the metrics at one address.
#[derive(Clone, Debug)]
pub(crate) enum MetricsAccess {
    Open,
    Token(Secret<String>),
    /// Nobody: the API listens for others than this machine, and there is no token.
    Closed,
    /// They have a listener of their own.
    Elsewhere,
}

impl MetricsAccess {
    /// At `metrics_listen`, by the settings.
    pub(crate) fn of_own_listener(config: &Config) -> Self {
        config.metrics_token.clone().map_or(Self::Open, Self::Token)
    }

    /// Where the API listens, by the settings. `address`: of that, if it has a socket of its own.
    pub(crate) fn of(config: &Config, address: Option<IpAddr>) -> Self {
        match (&config.metrics_listen, &config.metrics_token) {
            (Some(_), _) => Self::Elsewhere,
            (None, Some(token)) => Self::Token(token.clone()),
            (None, None) if address.is_some_and(|address| address.is_loopback()) => Self::Open,
            (None, None) => Self::Closed,
        }
    }

    fn check(&self, headers: &HeaderMap) -> Result<(), Error> {
        match self {
            Self::Open => Ok(()),
            Self::Elsewhere => Err(Error::not_found(ELSEWHERE)),
            Self::Closed => Err(Error::forbidden(CLOSED)),
            Self::Token(Secret(token)) => {
                let given = headers.get(AUTHORIZATION).map_or(&[][..], |value| value.as_bytes());
                let given =
                    given.split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
                let is_it =
                    |(_, given): (&[u8], &[u8])| bool::from(given.trim_ascii().ct_eq(token.as_bytes()));
                match given.is_some_and(is_it) {
                    true => Ok(()),
                    false => {
                        Err(Error::new(StatusCode::UNAUTHORIZED, Code::AuthenticationFailed, WRONG_TOKEN))
                    }
                }
            }
        }
    }
}

/// The answer where the API listens.
pub(crate) fn answer(metrics: &Metrics, engine: &Engine, headers: &HeaderMap) -> Response {
    answer_to(&metrics.access.read().clone(), metrics, engine, headers)
}

/// The answer where those with `access` may read them.
pub(super) fn answer_to(
    access: &MetricsAccess,
    metrics: &Metrics,
    engine: &Engine,
    headers: &HeaderMap,
) -> Response {
    if let Err(error) = access.check(headers) {
        return error.into_response();
    }
    let accept: Vec<_> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let format = Format::accepted(&accept.join(","));
    let head = [(CONTENT_TYPE, format.content_type()), (CACHE_CONTROL, "no-store")];
    (head, metrics.text(engine, format)).into_response()
}
