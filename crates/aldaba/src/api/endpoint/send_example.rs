//! Sends an example of an event type to one endpoint.

use crate::api::message::{self, MessageOut};
use crate::api::request::body::Pending;
use crate::api::request::ids::{self, Ids};
use crate::api::request::json::{self, Fields};
use crate::api::request::query::WithContent;
use crate::api::response::code::Code;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Route, example};
use crate::api::{Api, Error};
use crate::questions::Missing;
use crate::token::Caller;
use aldaba_delivery::OrgId;
use aldaba_engine::{NewEvent, Schemas, SendError, SendReceipt};
use aldaba_store::{Content, Message};
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use utoipa::ToSchema;

/// A new endpoint can be tested with it, without an event type.
const PING: &str = "svix.ping";
const PING_PAYLOAD: &[u8] = br#"{"success": true}"#;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/app/{app_id}/endpoint/{endpoint_id}/send-example", Access::Send, send)
            .keyed()
            .named("v1.endpoint.send-example", "Sends an example of an event type to this endpoint only")
            .takes::<EventExampleIn>()
            .answers::<MessageOut<'_>>(StatusCode::ACCEPTED),
    ]
}

/// Which example is to be sent.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct EventExampleIn {
    /// Or `svix.ping`, which needs no event type.
    #[schema(min_length = 1, max_length = 256, pattern = "^[a-zA-Z0-9\\-_.]+$")]
    event_type: String,
    /// Which of the schema's `examples`; the first, if not given.
    example_index: Option<u64>,
}

example!(EventExampleIn, {"eventType": "svix.ping"});

fn read(body: &[u8]) -> Result<(String, usize), Error> {
    let mut fields = Fields::parse(body)?;
    fields.refuse_others(&["eventType", "exampleIndex"]);
    let event_type = fields.required_string("eventType");
    let event_type = fields.checked("eventType", event_type, |name| ids::name(name));
    let index = fields.number("exampleIndex", 0, u32::MAX.into()).unwrap_or(0);
    fields.finish()?;
    Ok((event_type.unwrap_or_default(), usize::try_from(index).unwrap_or(usize::MAX)))
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
    let once = pending.once(org, &[endpoint.id.as_bytes()]);
    let (event_type, index) = read(&pending.read().await?.bytes)?;
    let payload = example(&api, org, &event_type, index)?;
    let event = NewEvent { only_for: Some(endpoint.id), once, ..NewEvent::new(&event_type, payload) };
    let content = Content::new(&event.event_type, event.payload.clone());
    let sent = api.engine.send(&application.by_id(), event).await.map_err(|error| match error {
        SendError::Unfit(_) => no_example(format!(
            "Example {index} of `{event_type}` does not fit its own schema; mend one of the two"
        )),
        error => error.into(),
    })?;
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
