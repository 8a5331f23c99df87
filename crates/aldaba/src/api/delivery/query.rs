//! Which deliveries a caller asks for.

use crate::api::request::ids;
use crate::api::request::json;
use crate::api::request::query::Query;
use crate::api::response::error::Problem;
use crate::api::{Api, Error};
use aldaba_delivery::{AppId, EndpointId, OrgId, Reason};
use aldaba_store::{DeliveryFilter, Phase};

/// How many deliveries one read looks at. A filter that finds little ends its page early.
pub(crate) const WALK: usize = 5_000;

pub(crate) fn phase(state: Option<&str>, at: &[&str]) -> Result<Phase, Error> {
    Ok(match state {
        None => Phase::Any,
        Some("pending") => Phase::Pending,
        Some("history") => Phase::Settled,
        Some("delivered") => Phase::Delivered,
        Some("dead") => Phase::Dead,
        Some(other) => {
            let expected = "expected pending, history, delivered or dead";
            return Err(Problem::value(at, format!("{expected}; it is {other}")).into());
        }
    })
}

/// A filter as it is written, in a query string or in a body.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) endpoint: Option<String>,
    pub(crate) event_type: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

/// Whose endpoints a filter may name.
#[derive(Clone, Copy)]
pub(crate) enum Owner {
    Application(AppId),
    Organization(OrgId),
}

impl Written {
    pub(crate) fn in_query(query: &Query) -> Self {
        let text = |name| query.get(name).map(std::borrow::Cow::into_owned);
        Self {
            endpoint: text("endpoint"),
            event_type: text("eventType"),
            reason: text("reason"),
            before: text("before"),
            after: text("after"),
        }
    }

    /// `place` is where it was written.
    pub(crate) async fn read(self, api: &Api, owner: Owner, place: &str) -> Result<DeliveryFilter, Error> {
        let mut problems = Vec::new();
        let reason = self.reason.and_then(|name| {
            let found = Reason::named(&name);
            if found.is_none() {
                let names = Reason::ALL.map(Reason::name).join(", ");
                problems.push(Problem::value(
                    &[place, "reason"],
                    format!("expected one of {names}; it is {name}"),
                ));
            }
            found
        });
        let mut moment = |name, text: Option<String>| {
            let text = text?;
            let read = json::read_moment(&text);
            if read.is_none() {
                let expected = "expected a moment such as 2026-01-31T12:00:00Z";
                problems.push(Problem::value(&[place, name], format!("{expected}; it is {text}")));
            }
            read
        };
        let (before, after) = (moment("before", self.before), moment("after", self.after));
        if let Some(name) = &self.event_type
            && let Err(message) = ids::name(name)
        {
            problems.push(Problem::value(&[place, "eventType"], message));
        }
        if !problems.is_empty() {
            return Err(Error::problems(problems));
        }
        let endpoint = match self.endpoint {
            Some(key) => Some(endpoint(api, owner, key).await?),
            None => None,
        };
        Ok(DeliveryFilter { endpoint, event_type: self.event_type, reason, after, before })
    }
}

/// One that is deleted too: what happened to its deliveries stays visible.
async fn endpoint(api: &Api, owner: Owner, key: String) -> Result<EndpointId, Error> {
    if let Ok(id) = key.parse::<EndpointId>() {
        let found = api.engine.store().lane_endpoints(vec![id]).await?;
        let owned = found.first().is_some_and(|endpoint| match owner {
            Owner::Application(app) => endpoint.app == app,
            Owner::Organization(org) => endpoint.org == org,
        });
        if owned {
            return Ok(id);
        }
    }
    match owner {
        Owner::Application(app) => Ok(api.endpoint(app, key).await?.id),
        Owner::Organization(_) => {
            Err(Error::not_found("There is no such endpoint; with `app` it may be named by its uid"))
        }
    }
}
