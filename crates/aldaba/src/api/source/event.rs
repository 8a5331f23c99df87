//! The events of a source with their progress, and its refused requests.

use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Moment, Text};
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::value::Shows;
use aldaba_api::{SourceEvent as Shown, SourceEventView, SourceRefusal, SourceRefusalView};
use aldaba_delivery::{MessageId, RefusalId};
use aldaba_engine::RefusedRequest;
use aldaba_store::{EventState, Order, SourceEvent, SourceEventsQuery};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use std::borrow::Cow;
use std::collections::BTreeMap;

const DELETED: &str = "The endpoint was deleted before it had the event";
const STATES: &[&str] = &["processing", "processed", "failed"];

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/ingest/source/{source_id}/event", Access::ReadOrganization, list)
            .named("v1.ingest.event.list", "Lists the events of a source, newest first")
            .query("status", Form::OneOf(STATES), "Only those that have come so far")
            .time_limited()
            .lists::<Shown>(),
        Route::get("/ingest/source/{source_id}/event/{event_id}", Access::ReadOrganization, show)
            .named("v1.ingest.event.get", "Shows an event of a source with its status")
            .answers::<Shown>(StatusCode::OK),
        Route::get("/ingest/source/{source_id}/log", Access::ReadOrganization, log)
            .named(
                "v1.ingest.log.list",
                "Lists the last refused requests to a source, newest first; in memory only, so empty after a restart",
            )
            .ordered()
            .lists::<SourceRefusal>(),
    ]
}

fn render(event: &SourceEvent) -> impl Shows<Shown> {
    let message = &event.message;
    let (status, failure) = match event.state() {
        EventState::Processing => ("processing", None),
        EventState::Processed => ("processed", None),
        EventState::Failed => ("failed", event.failure()),
    };
    let error: Option<Cow<'_, str>> = failure.map(|(delivery, _)| {
        let last = delivery.last.as_ref().map(|last| last.error.as_str()).filter(|error| !error.is_empty());
        match (event.deleted.contains(&delivery.status.endpoint), last) {
            (true, Some(last)) => format!("{DELETED}. Its last attempt: {last}").into(),
            (true, None) => DELETED.into(),
            (false, Some(last)) => last.into(),
            (false, None) => delivery.status.state.reason().map_or("", |reason| reason.text()).into(),
        }
    });
    SourceEventView {
        id: Text(message.id),
        event_id: message.content.event_id.as_deref(),
        event_type: &*message.content.event_type,
        status,
        received_at: Moment(message.created_at),
        processed_at: (event.state() == EventState::Processed).then(|| Moment(event.processed_at())),
        failed_at: failure.map(|(_, at)| Moment(at)),
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

async fn log(
    State(api): State<Api>,
    query: PageQuery<RefusalId>,
    caller: Caller,
    Ids(source): Ids<String>,
) -> Result<Response, Error> {
    let source = api.ask(&caller).source(&source).await?;
    let order = query.order.unwrap_or(Order::Descending);
    let page = query.cut(source.refused_requests(), order, |refused| refused.id);
    let row = |refused: &RefusedRequest| SourceRefusalView {
        id: Text(refused.id),
        source_id: Text(source.id),
        status_code: refused.status,
        error_text: refused.error.clone(),
        headers: BTreeMap::<String, String>::new(),
        payload: String::new(),
        created_at: Moment(refused.at),
        updated_at: Moment(refused.at),
    };
    Ok(query.list(page, false, |refused| refused.id).render(row))
}
