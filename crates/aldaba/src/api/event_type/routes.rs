//! Event types: the kinds of events that an organization sends.

use super::body::{patched, read, read_whole, whole};
use crate::api::request::body::Pending;
use crate::api::request::ids::{self, Ids};
use crate::api::request::json;
use crate::api::request::query::Query;
use crate::api::response::code::Code;
use crate::api::response::error::Problem;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::questions::{Missing, is_operational};
use crate::token::Caller;
use aldaba_api::{EventTypePatch, EventTypeState, EventTypeUpdate, NewEventType};
use aldaba_engine::{ChangeError, PutOutcome};
use aldaba_store::{EventType, Order, panic_message};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Event types in the document.
type EventTypeOut = aldaba_api::EventType;

/// Bytes of schemas after which a page ends early.
const PAGE_BYTES: usize = 4 << 20;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/event-type", Access::Read, list)
            .named("v1.event-type.list", "Lists event types by name")
            .query("include_archived", Form::Boolean, "Whether archived ones are listed; no, if not given")
            .with_content("Whether schemas are shown; no, if not given")
            .ordered()
            .lists::<EventTypeOut>(),
        Route::post("/event-type", Access::Administer, create)
            .keyed()
            .named("v1.event-type.create", "Creates an event type, or unarchives one")
            .takes::<NewEventType>()
            .answers::<EventTypeOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::get("/event-type/{event_type_name}", Access::Read, show)
            .named("v1.event-type.get", "Shows an event type")
            .answers::<EventTypeOut>(StatusCode::OK),
        Route::put("/event-type/{event_type_name}", Access::Administer, put)
            .named("v1.event-type.update", "Replaces an event type, or creates it")
            .takes::<EventTypeUpdate>()
            .answers::<EventTypeOut>(StatusCode::OK)
            .answers::<EventTypeOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::patch("/event-type/{event_type_name}", Access::Administer, patch)
            .named("v1.event-type.patch", "Changes the given fields of an event type")
            .takes::<EventTypePatch>()
            .answers::<EventTypeOut>(StatusCode::OK)
            .may_conflict(),
        Route::delete("/event-type/{event_type_name}", Access::Administer, delete)
            .named("v1.event-type.delete", "Archives an event type, or deletes it")
            .query("expunge", Form::Boolean, "Whether it is removed for good; no, if not given")
            .answers_nothing()
            .may_conflict(),
    ]
}

pub(crate) fn render(event_type: &EventType) -> aldaba_api::EventType {
    let state = EventTypeState {
        name: event_type.name.clone(),
        created_at: json::moment(event_type.created_at),
        updated_at: json::moment(event_type.updated_at),
    };
    aldaba_api::EventType::of(whole(event_type), state)
}

/// A name as an iterator. A name that begins with `-` gets a mark, because `-` means backwards.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NameCursor(String);

impl fmt::Display for NameCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.0.starts_with('-') { "~" } else { "" };
        write!(f, "{mark}{}", self.0)
    }
}

impl FromStr for NameCursor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix('~').unwrap_or(text);
        ids::name(name).map(|()| Self(name.to_owned()))
    }
}

/// An event type that can be changed.
fn find(api: &Api, caller: &Caller, name: &str) -> Result<Arc<EventType>, Error> {
    api.ask(caller).described_event_type(name).map_err(|_| missing_or_own(caller, name))
}

fn missing_or_own(caller: &Caller, name: &str) -> Error {
    if is_operational(caller, name) {
        let detail = format!("`{name}` is an event of the server itself. PUT describes it in your own words");
        return Error::conflict(detail);
    }
    Missing::EventType.into()
}

async fn list(
    State(api): State<Api>,
    query: PageQuery<NameCursor>,
    caller: Caller,
) -> Result<Response, Error> {
    let archived = query.query.boolean("include_archived", false);
    let content = query.query.boolean("with_content", false);
    let mut types = api.ask(&caller).event_types();
    types.retain(|event_type| archived || !event_type.archived);
    let order = query.order.unwrap_or(Order::Ascending);
    let mut types = query.cut(types, order, |event_type| NameCursor(event_type.name.clone()));
    let fits = if content { fitting(&types) } else { types.len() };
    let more = fits < types.len();
    types.truncate(fits);
    let listed = query.list(types, more, |event_type| NameCursor(event_type.name.clone()));
    Ok(listed.render(|event_type| {
        let mut shown = render(event_type);
        if !content {
            shown.schemas = None;
        }
        shown
    }))
}

/// The number of event types whose schemas fit on a page; at least one.
fn fitting(types: &[Arc<EventType>]) -> usize {
    let mut bytes = 0;
    let fits = |one: &&Arc<EventType>| {
        bytes += one.schemas.as_ref().map_or(0, String::len);
        bytes <= PAGE_BYTES
    };
    types.iter().take_while(fits).count().max(1)
}

async fn show(State(api): State<Api>, caller: Caller, Ids(name): Ids<String>) -> Result<Response, Error> {
    let found = api.ask(&caller).event_type(&name)?;
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
                ChangeError::NotFound => Missing::EventType.into(),
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

async fn delete(
    State(api): State<Api>,
    query: Query,
    caller: Caller,
    Ids(name): Ids<String>,
) -> Result<StatusCode, Error> {
    let (directory, org) = (api.directory(&caller), caller.org());
    let deleted = match query.boolean("expunge", false) {
        true => directory.expunge_event_type(org, &name).await,
        false => directory.archive_event_type(org, &name).await,
    };
    deleted.map_err(|error| match error {
        ChangeError::NotFound => missing_or_own(&caller, &name),
        error => error.into(),
    })?;
    Ok(StatusCode::NO_CONTENT)
}

/// Reads schemas on a blocking thread: many large ones take a while.
pub(crate) async fn apart<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|cause| {
        // Not the error's own text: it quotes the panic, which may hold a part of the request.
        let message = cause.try_into_panic().map_or_else(|_| String::new(), |panic| panic_message(&*panic));
        tracing::error!(message, "reading a request has panicked");
        Err(Error::server())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_can_be_an_iterator_both_ways() {
        for name in ["a", "-a", "--", "a-b", "~"] {
            let cursor = NameCursor(name.to_owned());
            let forwards = cursor.to_string();
            assert!(!forwards.starts_with('-'), "{forwards}");
            if name == "~" {
                assert!(forwards.parse::<NameCursor>().is_err(), "it is no name");
                continue;
            }
            assert_eq!(forwards.parse::<NameCursor>().unwrap(), cursor);
        }
        assert!("a b".parse::<NameCursor>().is_err());
    }
}
