//! The messages that go, or went, to an endpoint, and how far each has come.

use crate::api::attempt::Status;
use crate::api::delivery::RetriesOut;
use crate::api::message::{self, MessageOut};
use crate::api::request::history_query::STATUSES;
use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::request::query::WithContent;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::{MessageId, Timestamp};
use aldaba_store::{
    DeliveryState, DeliveryView, Endpoint, EndpointMessage, EndpointMessagesQuery, MessageProgress, Seq,
};
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/endpoint/{endpoint_id}/msg", Access::Read, list)
            .named(
                "v1.message-attempt.list-attempted-messages",
                "Lists the messages of an endpoint, newest first, and how far each has come",
            )
            .query(
                "status",
                Form::OneNumberOf(&STATUSES),
                "0 delivered, 1 not tried yet, 2 ended without success, 3 to be tried again, 4 canceled",
            )
            .query(
                "expanded_statuses",
                Form::Boolean,
                "Whether what was canceled is shown as such (4) and not as failed (2)",
            )
            .filtered_by_message()
            .time_limited()
            .with_content("Whether payloads are shown; yes, if not given")
            .lists::<EndpointMessageOut<'_>>(),
    ]
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EndpointMessageOut<'a> {
    #[serde(flatten)]
    message: MessageOut<'a>,
    #[serde(flatten)]
    status: Status,
    /// Absent where none is to come.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    next_attempt: Option<Timestamp>,
    #[serde(flatten)]
    retries: RetriesOut,
}

fn render<'a>(
    item: &'a EndpointMessage,
    (endpoint, now): (&Endpoint, Timestamp),
    view: Option<&DeliveryView>,
    content: WithContent,
    expanded: bool,
) -> EndpointMessageOut<'a> {
    let status = match item.delivery.progress() {
        Some(MessageProgress::Delivered) => Status::SUCCESS,
        Some(MessageProgress::Pending) => Status::PENDING,
        Some(MessageProgress::Retrying) => Status::SENDING,
        Some(MessageProgress::Cancelled) if expanded => Status::CANCELED,
        Some(MessageProgress::Failed | MessageProgress::Cancelled) | None => Status::FAIL,
    };
    let next_attempt = match item.delivery.state {
        DeliveryState::Waiting { due_at } => endpoint.state().next_attempt(due_at, now),
        _ => None,
    };
    let retries = view.map_or_else(RetriesOut::default, |view| RetriesOut::of(view, next_attempt));
    EndpointMessageOut { message: message::render(&item.message, content), status, next_attempt, retries }
}

/// What a status stands for; nothing: for everything.
fn progress(status: Option<i64>, expanded: bool) -> Vec<MessageProgress> {
    match status {
        Some(0) => vec![MessageProgress::Delivered],
        Some(1) => vec![MessageProgress::Pending],
        Some(2) if expanded => vec![MessageProgress::Failed],
        Some(2) => vec![MessageProgress::Failed, MessageProgress::Cancelled],
        Some(3) => vec![MessageProgress::Retrying],
        Some(4) => vec![MessageProgress::Cancelled],
        _ => Vec::new(),
    }
}

async fn list(
    State(api): State<Api>,
    content: WithContent,
    mut query: PageQuery<MessageId>,
    caller: Caller,
    Ids((app, endpoint)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let status = query.query.one_of("status", &STATUSES)?;
    let expanded = query.query.boolean("expanded_statuses", false)?;
    let (filter, within) = (query.query.message_filter()?, query.query.within()?);
    let app = api.application(&caller, app).await?.id;
    let endpoint = api.endpoint(app, endpoint).await?;
    let now = api.engine.clock().now();
    let part = query.part(within, now);
    let progress = progress(status, expanded);
    let payloads = message::payloads(content);
    let ask = EndpointMessagesQuery { app, endpoint: endpoint.id, progress, filter, part, payloads };
    let _turn = api.turns.next_if(content.0).await?;
    let found = api.engine.store().endpoint_messages(ask).await?;
    let seqs = found.items.iter().map(|item| item.delivery.seq).collect();
    let views = api.engine.store().delivery_views(app, seqs).await?;
    let views: BTreeMap<Seq, DeliveryView> = views.into_iter().map(|view| (view.status.seq, view)).collect();
    let listed = query.list_walked(found.items, found.stopped, |item| item.message.id);
    Ok(listed.render(|item| render(item, (&endpoint, now), views.get(&item.delivery.seq), content, expanded)))
}
