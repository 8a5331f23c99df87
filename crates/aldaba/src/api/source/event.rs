//! The events of a source with their progress, and its refused requests.

use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::{MessageId, RefusalId, SourceId, Timestamp};
use aldaba_engine::RefusedRequest;
use aldaba_store::{EventState, Order, SourceEvent, SourceEventsQuery};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use utoipa::ToSchema;

const DELETED: &str = "The endpoint was deleted before it had the event";
const STATES: &[&str] = &["processing", "processed", "failed"];

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/ingest/source/{source_id}/event", Access::ReadOrganization, list)
            .named("v1.ingest.event.list", "Lists the events of a source, newest first")
            .query("status", Form::OneOf(STATES), "Only those that have come so far")
            .time_limited()
            .lists::<SourceEventOut<'_>>(),
        Route::get("/ingest/source/{source_id}/event/{event_id}", Access::ReadOrganization, show)
            .named("v1.ingest.event.get", "Shows an event of a source with its status")
            .answers::<SourceEventOut<'_>>(StatusCode::OK),
        Route::get("/ingest/source/{source_id}/log", Access::ReadOrganization, log)
            .named(
                "v1.ingest.log.list",
                "Lists the last refused requests to a source, newest first; in memory only, so empty after a restart",
            )
            .ordered()
            .lists::<SourceLogOut>(),
    ]
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SourceEventOut<'a> {
    /// The message's.
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    id: MessageId,
    /// What its sender calls it; null where that has no names for events.
    event_id: Option<&'a str>,
    event_type: &'a str,
    /// `processing` until every endpoint has it (`processed`) or none will try again (`failed`).
    #[schema(pattern = "^(processing|processed|failed)$")]
    status: &'static str,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    received_at: Timestamp,
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    processed_at: Option<Timestamp>,
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    failed_at: Option<Timestamp>,
    /// Of the last attempt, or why there was none.
    error: Option<Cow<'a, str>>,
    /// Endpoints that it goes, or went, to.
    deliveries: usize,
}

fn render(event: &SourceEvent) -> SourceEventOut<'_> {
    let message = &event.message;
    let (status, failure) = match event.state() {
        EventState::Processing => ("processing", None),
        EventState::Processed => ("processed", None),
        EventState::Failed => ("failed", event.failure()),
    };
    let error = failure.map(|(delivery, _)| {
        let last = delivery.last.as_ref().map(|last| last.error.as_str()).filter(|error| !error.is_empty());
        match (event.deleted.contains(&delivery.status.endpoint), last) {
            (true, Some(last)) => format!("{DELETED}. Its last attempt: {last}").into(),
            (true, None) => DELETED.into(),
            (false, Some(last)) => last.into(),
            (false, None) => delivery.status.state.reason().map_or("", |reason| reason.text()).into(),
        }
    });
    SourceEventOut {
        id: message.id,
        event_id: message.content.event_id.as_deref(),
        event_type: &message.content.event_type,
        status,
        received_at: message.created_at,
        processed_at: (event.state() == EventState::Processed).then(|| event.processed_at()),
        failed_at: failure.map(|(_, at)| at),
        error,
        deliveries: event.deliveries.len(),
    }
}

async fn list(
    State(api): State<Api>,
    mut query: PageQuery<MessageId>,
    caller: Caller,
    Ids(source): Ids<String>,
) -> Result<Response, Error> {
    let source = api.ask(&caller).source(&source).await?;
    let state = query.query.text("status").map(|status| match status {
        "processing" => EventState::Processing,
        "processed" => EventState::Processed,
        _ => EventState::Failed,
    });
    let part = query.part(query.query.within(), api.engine.clock().now());
    let _turn = api.page_permits.next().await?;
    let found = source.events(SourceEventsQuery { app: source.app, state, part }).await?;
    let listed = query.list_walked(found.items, found.stopped, |event| event.message.id);
    Ok(listed.render(render))
}

async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids((source, event)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let found = api.ask(&caller).source(&source).await?.event(event).await?;
    Ok(json::answer(StatusCode::OK, &render(&found)))
}

/// Kept in memory alone, the last 100 of a source: it begins anew with the server. Nothing of the request itself is kept,
/// neither its headers nor its body.
#[derive(Serialize, ToSchema)]
struct SourceLogOut {
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    id: RefusalId,
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    source_id: SourceId,
    /// What its sender was answered.
    status_code: u16,
    error_text: String,
    /// Always empty.
    headers: BTreeMap<String, String>,
    /// Always empty.
    payload: String,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

async fn log(
    State(api): State<Api>,
    query: PageQuery<RefusalId>,
    caller: Caller,
    Ids(source): Ids<String>,
) -> Result<Response, Error> {
    let source = api.ask(&caller).source(&source).await?;
    let order = query.order.unwrap_or(Order::Descending);
    let page = query.cut(source.refused_requests(), order, |refused| refused.id);
    let row = |refused: &RefusedRequest| SourceLogOut {
        id: refused.id,
        source_id: source.id,
        status_code: refused.status,
        error_text: refused.error.clone(),
        headers: BTreeMap::new(),
        payload: String::new(),
        created_at: refused.at,
        updated_at: refused.at,
    };
    Ok(query.list(page, false, |refused| refused.id).render(row))
}
