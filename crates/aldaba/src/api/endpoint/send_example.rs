//! Sends an example of an event type to one endpoint.

use crate::api::message;
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::request::query::WithContent;
use crate::api::response::code::Code;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::questions::Missing;
use crate::token::Caller;
use aldaba_api::SendExample;
use aldaba_delivery::OrgId;
use aldaba_engine::{NewEvent, Schemas, SendError, SendReceipt};
use aldaba_store::{Content, Message};
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;

/// A new endpoint can be tested with it, without an event type.
const PING: &str = "svix.ping";
const PING_PAYLOAD: &[u8] = br#"{"success": true}"#;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/app/{app_id}/endpoint/{endpoint_id}/send-example", Access::Send, send)
            .keyed()
            .named("v1.endpoint.send-example", "Sends an example of an event type to this endpoint only")
            .takes::<SendExample>()
            .answers::<aldaba_api::Message>(StatusCode::ACCEPTED),
    ]
}

fn no_example(detail: String) -> Error {
    Error::new(StatusCode::BAD_REQUEST, Code::InvalidScheme, detail)
}

/// The payload of an example.
fn example(api: &Api, org: OrgId, name: &str, index: usize) -> Result<Bytes, Error> {
    let described = api.engine.event_types().get(org, name);
    let Some(described) = described else {
        return match name {
            PING => Ok(Bytes::from_static(PING_PAYLOAD)),
            _ => Err(Missing::EventType.into()),
        };
    };
    let schemas = described.schemas.as_deref().and_then(|text| Schemas::read(text).ok());
    let Some(example) = schemas.and_then(|schemas| schemas.example(index)) else {
        return Err(no_example(format!(
            "The newest schema of `{name}` has no example {index}; put one into its list `examples`"
        )));
    };
    match example.get() {
        object if object.starts_with('{') => Ok(Bytes::copy_from_slice(object.as_bytes())),
        _ => Err(no_example(format!(
            "Example {index} of `{name}` is no JSON object, and only those can be sent"
        ))),
    }
}

async fn send(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, key)): Ids<(String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&app).await?;
    let endpoint = application.endpoint(&key).await?;
    if endpoint.direct {
        // An address receives only what is dispatched to it.
        return Err(Missing::Endpoint.into());
    }
    let org = application.org;
    let (once, trace) = (pending.once(org, &[endpoint.id.as_bytes()]), pending.trace());
    let SendExample { event_type, example_index } = pending.read().await?.text().parse(false)?.finish()?;
    let index = example_index.and_then(|index| usize::try_from(index).ok()).unwrap_or(0);
    let payload = example(&api, org, &event_type, index)?;
    let event = NewEvent {
        only_for: Some(endpoint.id),
        once,
        trace: trace.event(),
        ..NewEvent::new(&event_type, payload)
    };
    let content = Content::new(&event.event_type, event.payload.clone());
    let sent = api.engine.send(&application.by_id(), event).await.map_err(|error| match error {
        SendError::Unfit(_) => no_example(format!(
            "Example {index} of `{event_type}` does not fit its own schema; mend one of the two"
        )),
        error => error.into(),
    })?;
    trace.sent(&sent);
    let (id, created_at) = match sent {
        SendReceipt::New { message, at, .. } => (message, at),
        SendReceipt::Repeated { message } => {
            if let Some(before) = application.find_message(&message.to_string()).await? {
                return Ok(answer(&before));
            }
            // Delivered and no longer kept; its key is.
            (message, message.created_at())
        }
    };
    let message = Message {
        expunged: false,
        id,
        app: application.id,
        content,
        channels: Vec::new(),
        tags: Vec::new(),
        headers: Vec::new(),
        created_at,
        deliver_at: None,
        payload_until: None,
        job: None,
        only_for: Some(endpoint.id),
    };
    Ok(answer(&message))
}

fn answer(message: &Message) -> Response {
    json::answer(StatusCode::ACCEPTED, &message::render(message, WithContent(true)))
}
