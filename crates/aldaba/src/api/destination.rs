//! The endpoints that a message goes to, and how far it has come with each.

use super::attempt::Status;
use super::endpoint::{reads_disabled, some_items};
use super::ids::Ids;
use super::json;
use super::page::PageQuery;
use super::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::{EndpointId, Timestamp};
use aldaba_store::{DeliveryState, DeliveryStatus, Endpoint};
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DestinationOut<'a> {
    #[serde(serialize_with = "json::text")]
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
    created_at: Timestamp,
    #[serde(serialize_with = "json::time")]
    updated_at: Timestamp,
    #[serde(flatten)]
    status: Status,
    #[serde(serialize_with = "json::optional_time")]
    next_attempt: Option<Timestamp>,
    /// Why it was not delivered, where that is decided.
    reason: Option<&'static str>,
}

fn render<'a>(delivery: &DeliveryStatus, endpoint: &'a Endpoint) -> DestinationOut<'a> {
    let (status, next_attempt) = match delivery.state {
        DeliveryState::Delivered { .. } => (Status::SUCCESS, None),
        DeliveryState::Dead { .. } | DeliveryState::Skipped { .. } => (Status::FAIL, None),
        DeliveryState::Waiting { due_at } => {
            // While there is an attempt, the newest has failed; the next one is named beside it.
            let goes_by_itself = !endpoint.disabled && !endpoint.health.waits_for_its_owner();
            let status = if delivery.attempts == 0 { Status::PENDING } else { Status::FAIL };
            (status, goes_by_itself.then_some(due_at))
        }
    };
    let event_types = some_items(&endpoint.event_types);
    DestinationOut {
        id: endpoint.id,
        uid: endpoint.uid.as_deref(),
        url: &endpoint.url,
        description: &endpoint.description,
        disabled: reads_disabled(endpoint),
        version: endpoint.version,
        event_types,
        filter_types: event_types,
        channels: some_items(&endpoint.channels),
        throttle_rate: endpoint.throttle_rate,
        rate_limit: endpoint.throttle_rate,
        created_at: endpoint.created_at,
        updated_at: endpoint.updated_at,
        status,
        next_attempt,
        reason: match delivery.state {
            DeliveryState::Dead { reason, .. } => Some(reason.name()),
            DeliveryState::Skipped { reason, .. } => Some(reason.name()),
            DeliveryState::Waiting { .. } | DeliveryState::Delivered { .. } => None,
        },
    }
}

pub(super) async fn list(
    State(api): State<Api>,
    query: PageQuery<EndpointId>,
    caller: Caller,
    Ids((app, message)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let application = api.application(caller, app).await?;
    let message = api.message(application.id, message).await?;
    let mut deliveries = api.engine.store().deliveries(message.id).await?;
    deliveries.sort_by_key(|delivery| delivery.endpoint);
    let deliveries = query.cut(deliveries, |delivery| delivery.endpoint);
    let ids = deliveries.iter().map(|delivery| delivery.endpoint).collect();
    let endpoints = api.engine.store().lane_endpoints(ids).await?;
    let endpoints: BTreeMap<_, _> = endpoints.into_iter().map(|endpoint| (endpoint.id, endpoint)).collect();
    let with_endpoint = |delivery: DeliveryStatus| Some((endpoints.get(&delivery.endpoint)?, delivery));
    let found: Vec<_> = deliveries.into_iter().filter_map(with_endpoint).collect();
    let listed = query.list(found, false, |(endpoint, _)| endpoint.id);
    Ok(listed.render(|(endpoint, delivery)| render(delivery, endpoint)))
}
