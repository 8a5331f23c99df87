//! The audit log: who changed what.

use super::auth::Access;
use super::json;
use super::page::PageQuery;
use super::routes::{Form, Route};
use super::{Api, Error, error::Problem};
use crate::token::Caller;
use aldaba_delivery::{AppId, AuditId, EndpointId, Timestamp};
use aldaba_store::{ActorFilter, ActorKind, AuditEntry, AuditQuery, Order, Who};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

/// Rows that one request looks at. A filter that finds little goes on from there.
const WALK: usize = 10_000;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/audit", Access::Govern, list)
            .named("v1.audit.list", "Lists who changed what, the newest first")
            .query("app_id", Form::Text, "Only what was about this application")
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
    #[serde(serialize_with = "json::optional_text")]
    #[schema(value_type = Option<String>)]
    app_id: Option<AppId>,
    #[serde(serialize_with = "json::optional_text")]
    #[schema(value_type = Option<String>)]
    endpoint_id: Option<EndpointId>,
    /// The id or the name of what was changed; null where it was several things.
    resource_id: Option<&'a str>,
    /// The fields that have another value now, where that is known. Values are not kept.
    fields: &'a [String],
    /// How many things were changed.
    count: u32,
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
    /// Of a key, as it was at the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    /// Of a portal token.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
}

fn render(entry: &AuditEntry) -> AuditOut<'_> {
    let (kind, org) = (entry.actor.who.kind().name(), entry.actor.org.to_string());
    let nobody = |id| ActorOut { kind, id, prefix: None, name: None, session_id: None };
    let actor = match &entry.actor.who {
        Who::Key { id, prefix, name } => {
            ActorOut { prefix: Some(prefix), name: Some(name), ..nobody(id.to_string()) }
        }
        Who::PortalToken { app, session } => {
            ActorOut { session_id: session.as_deref(), ..nobody(app.to_string()) }
        }
        Who::OrganizationToken | Who::CommandLine | Who::Program => nobody(org),
    };
    let deed = &entry.deed;
    AuditOut {
        id: entry.id,
        timestamp: entry.at(),
        actor,
        action: &deed.action,
        app_id: deed.app,
        endpoint_id: deed.endpoint,
        resource_id: Some(deed.resource.as_str()).filter(|resource| !resource.is_empty()),
        fields: &deed.fields,
        count: entry.count,
    }
}

async fn list(State(api): State<Api>, query: PageQuery<AuditId>, caller: Caller) -> Result<Response, Error> {
    let (before, after) = (query.query.moment("before")?, query.query.moment("after")?);
    let actor = query.query.get("actor").map(|actor| read_actor(&actor)).transpose()?;
    let app = match query.query.get("app_id") {
        None => None,
        // One that is deleted has no name any more, but it has a history.
        Some(app) => Some(match app.parse() {
            Ok(id) => id,
            Err(_) => api.application(&caller, app.into_owned()).await?.id,
        }),
    };
    let (page, order) = query.ask(query.order.unwrap_or(Order::Descending));
    let action = query.query.get("action").map(Into::into);
    let asked = AuditQuery { org: caller.org(), app, action, actor, after, before, page, order, walk: WALK };
    let found = api.engine.store().audit(asked).await?;
    Ok(query.list_walked(found.found, found.stopped, |entry| entry.id).render(render))
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
