//! The messages of an endpoint, and the progress of each.

use crate::api::attempt::Status;
use crate::api::delivery::retries;
use crate::api::message;
use crate::api::request::history_query::STATUSES;
use crate::api::request::ids::Ids;
use crate::api::request::json::Moment;
use crate::api::request::query::WithContent;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::questions::EndpointMessagesPage;
use crate::token::Caller;
use aldaba_api::value::Shows;
use aldaba_api::{EndpointMessage as Shown, EndpointMessageView};
use aldaba_delivery::{MessageId, Timestamp};
use aldaba_store::{
    DeliveryState, DeliveryView, Endpoint, EndpointMessage, EndpointMessagesQuery, MessageProgress,
};
use axum::extract::State;
use axum::response::Response;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/endpoint/{endpoint_id}/msg", Access::Read, list)
            .named(
                "v1.message-attempt.list-attempted-messages",
                "Lists the messages of an endpoint with the status of each, newest first",
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
            .lists::<Shown>(),
    ]
}

fn render<'a>(
    item: &'a EndpointMessage,
    (endpoint, now): (&Endpoint, Timestamp),
    view: Option<&DeliveryView>,
    content: WithContent,
    expanded: bool,
) -> impl Shows<Shown> + use<'a> {
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
    EndpointMessageView {
        message: message::render(&item.message, content),
        status: status.shown(),
        retries: retries(view, next_attempt),
        next_attempt: next_attempt.map(Moment),
    }
}

/// The progress that a status means; empty: any.
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
    let app = api.ask(&caller).application(&app).await?;
    let endpoint = app.endpoint(&endpoint).await?;
    let expanded = query.query.boolean("expanded_statuses", false);
    let now = api.engine.clock().now();
    let selection = EndpointMessagesQuery {
        app: app.id,
        endpoint: endpoint.id,
        progress: progress(query.query.number("status"), expanded),
        filter: query.query.message_filter(),
        part: query.part(query.query.within(), now),
        payloads: message::payloads(content),
    };
    let _turn = api.page_permits.next_if(content.0).await?;
    let EndpointMessagesPage { list, deliveries } = app.endpoint_messages(selection).await?;
    let listed = query.list_walked(list.items, list.stopped, |item| item.message.id);
    Ok(listed
        .render(|item| render(item, (&endpoint, now), deliveries.get(&item.delivery.seq), content, expanded)))
}
