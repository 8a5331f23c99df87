//! Event types: the kinds of events that an organization sends.

use super::body::{patched, read, read_whole, whole};
use crate::api::request::body::Pending;
use crate::api::request::ids::{self, Ids};
use crate::api::request::json;
use crate::api::request::query::Query;
use crate::api::request::variant::Described;
use crate::api::response::code::Code;
use crate::api::response::error::Problem;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::{EventTypePatch, EventTypeState, EventTypeUpdate, NewEventType};
use aldaba_delivery::{EventTypeId, Timestamp};
use aldaba_engine::{ChangeError, OPERATIONAL_EVENTS, PutOutcome, management};
use aldaba_store::{EventType, Order};
use axum::extract::{FromRequestParts, State};
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Event types in the document.
type EventTypeOut = Described<aldaba_api::EventType>;

/// Bytes of schemas after which a page ends early.
const PAGE_BYTES: usize = 4 << 20;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/event-type", Access::Read, list)
            .named("v1.event-type.list", "Lists event types by their names")
            .query("include_archived", Form::Boolean, "Whether archived ones are listed; no, if not given")
            .with_content("Whether schemas are shown; no, if not given")
            .ordered()
            .lists::<EventTypeOut>(),
        Route::post("/event-type", Access::Administer, create)
            .keyed()
            .named("v1.event-type.create", "Makes an event type, or revives an archived one")
            .takes::<Described<NewEventType>>()
            .answers::<EventTypeOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::get("/event-type/{event_type_name}", Access::Read, show)
            .named("v1.event-type.get", "Shows an event type")
            .answers::<EventTypeOut>(StatusCode::OK),
        Route::put("/event-type/{event_type_name}", Access::Administer, put)
            .named("v1.event-type.update", "Gives an event type other values, or makes it")
            .takes::<Described<EventTypeUpdate>>()
            .answers::<EventTypeOut>(StatusCode::OK)
            .answers::<EventTypeOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::patch("/event-type/{event_type_name}", Access::Administer, patch)
            .named("v1.event-type.patch", "Changes the given fields of an event type")
            .takes::<Described<EventTypePatch>>()
            .answers::<EventTypeOut>(StatusCode::OK)
            .may_conflict(),
        Route::delete("/event-type/{event_type_name}", Access::Administer, delete)
            .named("v1.event-type.delete", "Archives an event type, or removes it")
            .query("expunge", Form::Boolean, "Whether it is removed for good; no, if not given")
            .answers_nothing()
            .may_conflict(),
    ]
}

fn render(event_type: &EventType) -> aldaba_api::EventType {
    let state = EventTypeState {
        name: event_type.name.clone(),
        created_at: json::moment(event_type.created_at),
        updated_at: json::moment(event_type.updated_at),
    };
    aldaba_api::EventType::of(whole(event_type), state)
}

/// A name as an iterator. One that begins with `-` would look like the way back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place(String);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.0.starts_with('-') { "~" } else { "" };
        write!(f, "{mark}{}", self.0)
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix('~').unwrap_or(text);
        ids::name(name).map(|()| Self(name.to_owned()))
    }
}

fn missing() -> Error {
    Error::not_found("There is no such event type; GET /api/v1/event-type lists them")
}

/// One that can be changed.
fn find(api: &Api, caller: &Caller, name: &str) -> Result<Arc<EventType>, Error> {
    let found = api.engine.event_types().get(caller.org(), name);
    found.filter(|found| caller.sees(found)).ok_or_else(|| missing_or_own(caller, name))
}

/// An event of the server itself: there without being described, for the management organization alone.
fn operational(name: &str) -> Arc<EventType> {
    let (id, at) = (EventTypeId::from_bytes([0; 20]), Timestamp::from_millis(0));
    Arc::new(EventType {
        id,
        org: management(),
        name: name.to_owned(),
        description: "An operational webhook of the server".to_owned(),
        archived: false,
        deprecated: false,
        validate: false,
        schemas: None,
        feature_flags: Vec::new(),
        group_name: None,
        created_at: at,
        updated_at: at,
    })
}

pub(crate) fn is_operational(caller: &Caller, name: &str) -> bool {
    caller.org() == management() && OPERATIONAL_EVENTS.contains(&name)
}

fn missing_or_own(caller: &Caller, name: &str) -> Error {
    if is_operational(caller, name) {
        let detail = format!("`{name}` is an event of the server itself. PUT describes it in your own words");
        return Error::conflict(detail);
    }
    missing()
}

/// By name; those of the server itself too, unless somebody has described them.
fn all(api: &Api, caller: &Caller) -> Vec<Arc<EventType>> {
    let mut types = api.engine.event_types().of_organization(caller.org());
    if caller.org() == management() {
        let missing = OPERATIONAL_EVENTS.iter().filter(|name| types.iter().all(|one| one.name != **name));
        let missing: Vec<_> = missing.map(|name| operational(name)).collect();
        types.extend(missing);
        types.sort_by(|one, other| one.name.cmp(&other.name));
    }
    types
}

async fn list(State(api): State<Api>, query: PageQuery<Place>, caller: Caller) -> Result<Response, Error> {
    let archived = query.query.boolean("include_archived", false)?;
    let content = query.query.boolean("with_content", false)?;
    let (page, order) = query.ask(query.order.unwrap_or(Order::Ascending));
    let mut types = all(&api, &caller);
    if order == Order::Descending {
        types.reverse();
    }
    types.retain(|one| {
        let beyond = page.after.as_ref().is_none_or(|after| match order {
            Order::Ascending => one.name > after.0,
            Order::Descending => one.name < after.0,
        });
        beyond && (archived || !one.archived) && caller.sees(one)
    });
    types.truncate(page.limit);
    let fits = if content { fitting(&types) } else { types.len() };
    let more = fits < types.len();
    types.truncate(fits);
    let listed = query.list(types, more, |one| Place(one.name.clone()));
    Ok(listed.render(|one| {
        let mut shown = render(one);
        if !content {
            shown.schemas = None;
        }
        shown
    }))
}

/// How many of them are no more than a page may have of schemas; one at least.
fn fitting(types: &[Arc<EventType>]) -> usize {
    let mut bytes = 0;
    let fits = |one: &&Arc<EventType>| {
        bytes += one.schemas.as_ref().map_or(0, String::len);
        bytes <= PAGE_BYTES
    };
    types.iter().take_while(fits).count().max(1)
}

async fn show(State(api): State<Api>, caller: Caller, Ids(name): Ids<String>) -> Result<Response, Error> {
    let found = match find(&api, &caller, &name) {
        Err(_) if is_operational(&caller, &name) => operational(&name),
        found => found?,
    };
    Ok(json::answer(StatusCode::OK, &render(&found)))
}

async fn create(State(api): State<Api>, caller: Caller, pending: Pending) -> Result<Response, Error> {
    let (once, body) = (pending.once(caller.org(), &[]), pending.read().await?);
    let new = apart(move || read(body.text())).await?;
    let name = new.name.clone();
    let made =
        api.directory(&caller).create_event_type(caller.org(), new, once).await.map_err(
            |error| match error {
                ChangeError::UidTaken => {
                    let detail = format!("There is an event type `{name}` already; PUT or PATCH changes it");
                    Error::new(StatusCode::CONFLICT, Code::EventTypeExists, detail)
                }
                ChangeError::NotFound => missing(),
                error => error.into(),
            },
        );
    Ok(json::answer(StatusCode::CREATED, &render(&*made?)))
}

async fn put(
    State(api): State<Api>,
    caller: Caller,
    Ids(name): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    ids::name(&name).map_err(|message| Problem::value(&["path", "event_type_name"], message))?;
    let body = pending.read().await?;
    let new = apart(move || read_whole(body.text(), &name)).await?;
    let (status, event_type) = match api.directory(&caller).put_event_type(caller.org(), new).await? {
        PutOutcome::Created(made) => (StatusCode::CREATED, made),
        PutOutcome::Replaced(made) => (StatusCode::OK, made),
    };
    Ok(json::answer(status, &render(&event_type)))
}

async fn patch(
    State(api): State<Api>,
    caller: Caller,
    Ids(name): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    find(&api, &caller, &name)?;
    let received = Arc::new(pending.read().await?);
    let mut retry = api.engine.directory().conflict_retry();
    loop {
        let current = find(&api, &caller, &name)?;
        let (body, before) = (received.clone(), current.clone());
        let new = apart(move || patched(&before, body.text())).await?;
        match api.directory(&caller).change_event_type(&current, &new).await {
            Err(ChangeError::Unsettled) => retry.wait().await?,
            changed => return Ok(json::answer(StatusCode::OK, &render(&*changed?))),
        }
    }
}

/// Whether the event type is removed for good.
struct Expunge(bool);

impl FromRequestParts<Api> for Expunge {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Error> {
        Query::of(parts).boolean("expunge", false).map(Self)
    }
}

async fn delete(
    State(api): State<Api>,
    Expunge(expunge): Expunge,
    caller: Caller,
    Ids(name): Ids<String>,
) -> Result<StatusCode, Error> {
    let (directory, org) = (api.directory(&caller), caller.org());
    let deleted = match expunge {
        true => directory.expunge_event_type(org, &name).await,
        false => directory.archive_event_type(org, &name).await,
    };
    deleted.map_err(|error| match error {
        ChangeError::NotFound => missing_or_own(&caller, &name),
        error => error.into(),
    })?;
    Ok(StatusCode::NO_CONTENT)
}

/// Reads schemas where no other request waits for the thread: many large ones take a while.
pub(crate) async fn apart<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|cause| {
        tracing::error!(%cause, "reading a request has panicked");
        Err(Error::server())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_can_be_an_iterator_both_ways() {
        for name in ["a", "-a", "--", "a-b", "~"] {
            let place = Place(name.to_owned());
            let forwards = place.to_string();
            assert!(!forwards.starts_with('-'), "{forwards}");
            if name == "~" {
                assert!(forwards.parse::<Place>().is_err(), "it is no name");
                continue;
            }
            assert_eq!(forwards.parse::<Place>().unwrap(), place);
        }
        assert!("a b".parse::<Place>().is_err());
    }
}
