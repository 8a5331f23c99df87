//! The endpoints that a message goes to, its progress at each, and the reasons.

use crate::api::attempt::Status;
use crate::api::delivery::retries;
use crate::api::endpoint::{reads_disabled, some_items};
use crate::api::request::ids::Ids;
use crate::api::request::json::{Moment, Text};
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::questions::Destination;
use crate::token::Caller;
use aldaba_api::value::Shows;
use aldaba_api::{Destination as Shown, DestinationView};
use aldaba_delivery::EndpointId;
use aldaba_store::{DeliveryState, DeliveryView, Order};
use axum::extract::State;
use axum::response::Response;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/msg/{msg_id}/endpoint", Access::Read, list)
            .named(
                "v1.message-attempt.list-attempted-destinations",
                "Lists the endpoints that a message goes to, with the status of each",
            )
            .query("all", Form::Boolean, "Also those that it does not go to, and why")
            .lists::<Shown>(),
    ]
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

fn render<'a>(
    api: &Api,
    Destination { endpoint, delivery, why }: &'a Destination,
) -> impl Shows<Shown> + use<'a> {
    let status = delivery.as_ref().map(status);
    let event_types = some_items(&endpoint.config.event_types);
    DestinationView {
        id: Text(endpoint.id),
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
        created_at: Moment(endpoint.created_at),
        updated_at: Moment(endpoint.updated_at),
        status: status.map(|status| status.status),
        status_text: status.map(|status| status.status_text),
        next_attempt: why.next_attempt.map(Moment),
        reason: why.reason(),
        explanation: why.explanation(),
        retries: retries(delivery.as_ref(), why.next_attempt),
        delivery_id: delivery.as_ref().map(|delivery| Text(api.delivery_ids.id(delivery.status.seq))),
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
