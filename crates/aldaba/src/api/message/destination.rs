//! The endpoints that a message goes to, its progress at each, and the reasons.

use crate::api::attempt::Status;
use crate::api::delivery::RetriesOut;
use crate::api::endpoint::{reads_disabled, some_items};
use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::questions::{DeliveryId, Destination};
use crate::token::Caller;
use aldaba_delivery::{EndpointId, Timestamp};
use aldaba_store::{DeliveryState, DeliveryView, Order};
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/msg/{msg_id}/endpoint", Access::Read, list)
            .named(
                "v1.message-attempt.list-attempted-destinations",
                "Lists the endpoints that a message goes to, with the status of each",
            )
            .query("all", Form::Boolean, "Also those that it does not go to, and why")
            .lists::<DestinationOut<'_>>(),
    ]
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DestinationOut<'a> {
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    id: EndpointId,
    uid: Option<&'a str>,
    url: &'a str,
    description: &'a str,
    disabled: bool,
    version: u16,
    event_types: Option<&'a [String]>,
    filter_types: Option<&'a [String]>,
    channels: Option<&'a [String]>,
    throttle_rate: Option<u16>,
    rate_limit: Option<u16>,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// Absent where the message does not go to the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_text: Option<&'static str>,
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    next_attempt: Option<Timestamp>,
    /// As of deliveries. Of endpoints that the message does not go to: `event_type_not_subscribed`,
    /// `channel_not_subscribed`, `filtered`, `subscription_changed`, `endpoint_newer` or `for_another_endpoint`.
    reason: &'static str,
    explanation: &'a str,
    #[serde(flatten)]
    retries: RetriesOut,
    #[serde(serialize_with = "json::optional_text")]
    #[schema(value_type = Option<String>)]
    delivery_id: Option<DeliveryId>,
}

fn status(delivery: &DeliveryView) -> Status {
    match delivery.status.state {
        DeliveryState::Delivered { .. } => Status::SUCCESS,
        DeliveryState::Dead { .. } | DeliveryState::Skipped { .. } => Status::FAIL,
        // After an attempt the newest one has failed; the next one is named beside it.
        DeliveryState::Waiting { .. } if delivery.status.attempts > 0 => Status::FAIL,
        DeliveryState::Waiting { .. } => Status::PENDING,
    }
}

fn render<'a>(api: &Api, Destination { endpoint, delivery, why }: &'a Destination) -> DestinationOut<'a> {
    let status = delivery.as_ref().map(status);
    let event_types = some_items(&endpoint.config.event_types);
    DestinationOut {
        id: endpoint.id,
        uid: endpoint.config.uid.as_deref(),
        url: &endpoint.config.url,
        description: &endpoint.config.description,
        disabled: reads_disabled(endpoint),
        version: endpoint.config.version,
        event_types,
        filter_types: event_types,
        channels: some_items(&endpoint.config.channels),
        throttle_rate: endpoint.config.throttle_rate,
        rate_limit: endpoint.config.throttle_rate,
        created_at: endpoint.created_at,
        updated_at: endpoint.updated_at,
        status: status.map(|status| status.status),
        status_text: status.map(|status| status.status_text),
        next_attempt: why.next_attempt,
        reason: why.reason,
        explanation: &why.explanation,
        retries: delivery
            .as_ref()
            .map_or_else(RetriesOut::default, |view| RetriesOut::of(view, why.next_attempt)),
        delivery_id: delivery.as_ref().map(|delivery| api.delivery_ids.id(delivery.status.seq)),
    }
}

/// The endpoints that a message goes to; with `all=true` also the others.
pub(crate) async fn list(
    State(api): State<Api>,
    query: PageQuery<EndpointId>,
    caller: Caller,
    Ids((app, message)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&app).await?;
    let message = application.message(&message).await?;
    let (page, order) = query.ask(Order::Ascending);
    let all = query.query.boolean("all", false);
    let found = application.destinations(&message, &page, order, all).await?;
    let listed = query.list(found, false, |destination| destination.endpoint.id);
    Ok(listed.render(|destination| render(&api, destination)))
}
