//! The audit log: who changed what.

use crate::api::request::json;
use crate::api::response::error::Problem;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::{AppId, AuditId, EndpointId, Timestamp};
use aldaba_store::{ActorFilter, ActorIdentity, ActorKind, AuditEntry, AuditQuery, FieldChange, Order};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

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
            .lists::<AuditOut<'_>>()
            .or_error(StatusCode::NOT_FOUND),
    ]
}

/// One change.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditOut<'a> {
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    id: AuditId,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    timestamp: Timestamp,
    actor: ActorOut<'a>,
    action: &'a str,
    /// The kind of thing that was changed: what the action begins with.
    resource_type: &'a str,
    #[serde(serialize_with = "json::optional_text")]
    #[schema(value_type = Option<String>)]
    app_id: Option<AppId>,
    #[serde(serialize_with = "json::optional_text")]
    #[schema(value_type = Option<String>)]
    endpoint_id: Option<EndpointId>,
    /// The id or the name of what was changed; null where it was several things.
    resource_id: Option<&'a str>,
    /// The fields that have another value now, where that is known.
    fields: &'a [String],
    /// Their values before and after. Empty for changes from before this was kept, and where nothing has values.
    changes: Vec<FieldChangeOut<'a>>,
    /// How many things were changed.
    count: u32,
}

/// A field that has another value now.
#[derive(Serialize, ToSchema)]
struct FieldChangeOut<'a> {
    field: &'a str,
    /// Null: there was none. Secrets are `***`.
    #[schema(value_type = Value)]
    before: &'a Value,
    /// Null: there is none. Secrets are `***`.
    #[schema(value_type = Value)]
    after: &'a Value,
    /// A value was too long to be kept: the beginning of its text stands for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<bool>,
}

impl<'a> From<&'a FieldChange> for FieldChangeOut<'a> {
    fn from(change: &'a FieldChange) -> Self {
        let FieldChange { field, before, after, cut } = change;
        Self { field, before, after, cut: cut.then_some(true) }
    }
}

/// Who changed it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ActorOut<'a> {
    /// `api_key`, `organization_token`, `portal_token`, `command_line` or `program`
    kind: &'static str,
    /// Of the key, of the organization, or of the application.
    id: String,
    /// Of a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<&'a str>,
    /// Of a key, as it was at the time; of an organization's token, if it was given one.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    /// Of a portal token.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
}

fn render(entry: &AuditEntry) -> AuditOut<'_> {
    let (kind, org) = (entry.actor.identity.kind().name(), entry.actor.org.to_string());
    let nobody = |id| ActorOut { kind, id, prefix: None, name: None, session_id: None };
    let actor = match &entry.actor.identity {
        ActorIdentity::Key { id, prefix, name } => {
            ActorOut { prefix: Some(prefix), name: Some(name), ..nobody(id.to_string()) }
        }
        ActorIdentity::PortalToken { app, session } => {
            ActorOut { session_id: session.as_deref(), ..nobody(app.to_string()) }
        }
        ActorIdentity::OrganizationToken { name } => ActorOut { name: name.as_deref(), ..nobody(org) },
        ActorIdentity::CommandLine | ActorIdentity::Program => nobody(org),
    };
    let action = &entry.action;
    AuditOut {
        id: entry.id,
        timestamp: entry.at(),
        actor,
        action: &action.name,
        resource_type: action.kind(),
        app_id: action.app,
        endpoint_id: action.endpoint,
        resource_id: Some(action.resource.as_str()).filter(|resource| !resource.is_empty()),
        fields: &action.fields,
        changes: action.changes.iter().map(Into::into).collect(),
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
