//! The audit log: who changed what.

use crate::api::request::json::{Moment, Text};
use crate::api::response::error::Problem;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::value::Shows;
use aldaba_api::{
    ActorView, AuditEntry as Shown, AuditEntryView, FieldChange as ShownChange, FieldChangeView,
};
use aldaba_delivery::{AuditId, EndpointId};
use aldaba_store::{ActorFilter, ActorIdentity, ActorKind, AuditEntry, AuditQuery, FieldChange, Order};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

/// Rows that one request reads. A page that ends early can be continued from there.
const MAX_ROWS_WALKED: usize = 10_000;

/// The first parts of actions.
const RESOURCE_TYPES: [&str; 15] = [
    "alert",
    "api_key",
    "application",
    "attempt",
    "delivery",
    "endpoint",
    "event_type",
    "host",
    "message",
    "policy",
    "portal_access",
    "profile",
    "replay",
    "source",
    "token",
];

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/audit", Access::Govern, list)
            .named("v1.audit.list", "Lists the audit log, newest first")
            .query("app_id", Form::Text, "Only what was about this application")
            .query("endpoint_id", Form::Text, "Only what was about this endpoint (its id)")
            .query("resource_type", Form::OneOf(&RESOURCE_TYPES), "Only changes of this kind of thing")
            .query("resource_id", Form::Text, "Only changes of the thing with this id or name, such as `ep_…` or `invoice.paid`")
            .query("field", Form::Text, "Only changes of this field, such as `url`")
            .query("action", Form::Text, "Only this action, such as `endpoint.update`")
            .query(
                "actor",
                Form::Text,
                "Only changes by this key (its id), by portal tokens of this application (its id), or by this kind \
                 of actor: `api_key`, `organization_token`, `portal_token`, `command_line` or `program`",
            )
            .query("before", Form::Moment, "Only what was changed before this moment")
            .query("after", Form::Moment, "Only what was changed at this moment or later")
            .ordered()
            .lists::<Shown>()
            .or_error(StatusCode::NOT_FOUND),
    ]
}

fn render_change(change: &FieldChange) -> impl Shows<ShownChange> {
    FieldChangeView {
        field: &change.field,
        before: &change.before,
        after: &change.after,
        cut: change.cut.then_some(true),
    }
}

fn render(entry: &AuditEntry) -> impl Shows<Shown> {
    let (kind, org) = (entry.actor.identity.kind().name(), entry.actor.org.to_string());
    let nobody = |id| ActorView { kind, id, prefix: None, name: None, session_id: None };
    let actor = match &entry.actor.identity {
        ActorIdentity::Key { id, prefix, name } => {
            ActorView { prefix: Some(prefix.as_str()), name: Some(name.as_str()), ..nobody(id.to_string()) }
        }
        ActorIdentity::PortalToken { app, session } => {
            ActorView { session_id: session.as_deref(), ..nobody(app.to_string()) }
        }
        ActorIdentity::OrganizationToken { name } => ActorView { name: name.as_deref(), ..nobody(org) },
        ActorIdentity::CommandLine | ActorIdentity::Program => nobody(org),
    };
    let action = &entry.action;
    AuditEntryView {
        id: Text(entry.id),
        timestamp: Moment(entry.at()),
        actor,
        action: &action.name,
        resource_type: action.kind(),
        app_id: action.app.map(Text),
        endpoint_id: action.endpoint.map(Text),
        resource_id: Some(action.resource.as_str()).filter(|resource| !resource.is_empty()),
        fields: action.fields.as_slice(),
        changes: action.changes.iter().map(render_change).collect::<Vec<_>>(),
        count: entry.count,
    }
}

async fn list(State(api): State<Api>, page: PageQuery<AuditId>, caller: Caller) -> Result<Response, Error> {
    let query = &page.query;
    let text = |name| query.text(name).map(str::to_owned);
    let app = match query.text("app_id") {
        None => None,
        Some(app) => Some(api.ask(&caller).audited_application(app).await?),
    };
    let (range, order) = page.ask(page.order.unwrap_or(Order::Descending));
    let audited = AuditQuery {
        org: caller.org(),
        app,
        endpoint: query.text("endpoint_id").map(read_endpoint).transpose()?,
        kind: text("resource_type"),
        resource: text("resource_id"),
        field: text("field"),
        action: text("action"),
        actor: query.text("actor").map(read_actor).transpose()?,
        after: query.moment("after"),
        before: query.moment("before"),
        page: range,
        order,
        most: MAX_ROWS_WALKED,
    };
    let found = api.ask(&caller).audit(audited).await?;
    Ok(page.list_walked(found.found, found.stopped, |entry| entry.id).render(render))
}

fn read_endpoint(text: &str) -> Result<EndpointId, Error> {
    text.parse().map_err(|_| Error::query("endpoint_id", text, "the id of an endpoint (ep_…)"))
}

fn read_actor(text: &str) -> Result<ActorFilter, Error> {
    let kind = ActorKind::ALL.into_iter().find(|kind| kind.name() == text).map(ActorFilter::Kind);
    let key = || text.parse().ok().map(ActorFilter::Key);
    let portal = || text.parse().ok().map(ActorFilter::Portal);
    kind.or_else(key).or_else(portal).ok_or_else(|| {
        let names = ActorKind::ALL.map(ActorKind::name).join(", ");
        let expected = format!("expected the id of a key or of an application, or one of {names}");
        Problem::value(&["query", "actor"], expected).into()
    })
}
