//! Many messages in one request: one commit, and a result for each.

use super::body::{MessageDocument, MessageIn};
use crate::api::limits::rates;
use crate::api::request::body::{BodyText, Pending};
use crate::api::request::ids::Ids;
use crate::api::request::json::bounded_json::{AtMost, First};
use crate::api::request::{idempotency, json};
use crate::api::response::error::{self, Part, Problem};
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Route, example};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::read::UnknownFields;
use aldaba_delivery::MessageId;
use aldaba_engine::{EventTrace, IdempotencyDigest, NewEvent, SendReceipt};
use aldaba_store::ApplicationRef;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// The limits of one request.
const MAX_MESSAGES: usize = 1000;
pub(crate) const MAX_BYTES: usize = 16 << 20;
/// Messages that are parsed before other requests may run.
const MESSAGES_BETWEEN_YIELDS: usize = 16;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/app/{app_id}/msg/batch", Access::Send, create)
            .keyed()
            .named("v1.message.create-batch", "Accepts many messages at once, each with its own result")
            .takes::<MessageBatchIn>()
            .answers::<MessageBatchOut>(StatusCode::ACCEPTED)
            .may_conflict(),
    ]
}

#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the messages are read one by one")]
struct MessageBatchIn {
    #[schema(min_items = 1, max_items = 1000)]
    messages: Vec<MessageDocument>,
}

example!(MessageBatchIn, {"messages": [
    {"eventType": "invoice.paid", "payload": {"invoice": 43}},
    {"eventType": "invoice.paid", "payload": {"invoice": 44}},
]});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageBatch<'a> {
    #[serde(borrow)]
    messages: AtMost<&'a RawValue, MAX_MESSAGES>,
}

#[derive(Deserialize)]
struct LenientBody<'a> {
    #[serde(borrow)]
    messages: AtMost<&'a RawValue, MAX_MESSAGES>,
}

#[derive(Serialize, ToSchema)]
struct MessageBatchOut {
    /// How many of them were accepted.
    accepted: usize,
    /// One for each message, in their order.
    results: Vec<MessageBatchResult>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MessageBatchResult {
    /// What the answer to this message alone would have: 202 where it was accepted.
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "json::optional_text")]
    #[schema(value_type = Option<String>)]
    id: Option<MessageId>,
    /// What that answer would say, where it was not accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    error: Option<error::ErrorBody>,
    /// Seconds after which it is worth trying again.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u32>,
}

impl MessageBatchResult {
    fn accepted(id: MessageId) -> Self {
        Self { status: StatusCode::ACCEPTED.as_u16(), id: Some(id), error: None, retry_after: None }
    }

    fn refused(error: Error) -> Self {
        let Part { status, error, retry_after } = Part::from(error);
        Self { status, id: None, error: Some(error), retry_after }
    }
}

async fn create(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&key).await?;
    let (once, trace) = (pending.once(application.org, &[]), pending.trace().shared());
    let body =
        pending.up_to(MAX_BYTES, "no setting changes it. Send fewer messages in one batch").read().await?;
    let messages = messages(body.text())?;
    rates::charge(&api, application.org, application.id, messages.len() - 1);
    let mut results: Vec<Option<MessageBatchResult>> = Vec::with_capacity(messages.len());
    let (mut events, mut places) = (Vec::with_capacity(messages.len()), Vec::with_capacity(messages.len()));
    for (place, message) in messages.into_iter().enumerate() {
        if place % MESSAGES_BETWEEN_YIELDS == 0 {
            tokio::task::yield_now().await;
        }
        match parse(body.part(message), api.limits.payload) {
            Ok(input) => {
                // Each message derives its key from the request's: a repeat finds the accepted messages, and tries
                // the others.
                events.push(event(input, idempotency::of_item(once, place), trace));
                places.push(place);
                results.push(None);
            }
            Err(error) => results.push(Some(MessageBatchResult::refused(error))),
        }
    }
    // Each payload is a copy, so that one pending message does not keep the whole body.
    let memory = body.into_memory();
    let which = ApplicationRef { org: application.org, key: application.id.to_string() };
    for (place, sent) in places.into_iter().zip(api.engine.send_many(&which, events).await?) {
        results[place] = Some(match sent {
            Ok(SendReceipt::New { message, .. } | SendReceipt::Repeated { message }) => {
                MessageBatchResult::accepted(message)
            }
            Err(error) => MessageBatchResult::refused(error.into()),
        });
    }
    let results: Vec<_> = results.into_iter().flatten().collect();
    let accepted = results.iter().filter(|result| result.id.is_some()).count();
    let size = 64 * results.len();
    let answer = json::sized_answer(StatusCode::ACCEPTED, &MessageBatchOut { accepted, results }, size);
    // Only now: the errors of many messages take memory too. A large response has its own memory from here on.
    drop(memory);
    Ok(answer)
}

fn messages(body: BodyText<'_>) -> Result<Vec<&RawValue>, Error> {
    let place = ["body", "messages"];
    let read = match body.unknown {
        UnknownFields::Refuse => {
            serde_json::from_slice::<MessageBatch<'_>>(body.bytes).map(|body| body.messages)
        }
        UnknownFields::Ignore => {
            serde_json::from_slice::<LenientBody<'_>>(body.bytes).map(|body| body.messages)
        }
    };
    let Ok(AtMost(First { items, count })) = read else {
        let mut fields = body.fields()?;
        fields.refuse_others(&["messages"]);
        fields.require("messages");
        fields.finish()?;
        return Err(Problem::decode(&place, "expected a list of messages, given once").into());
    };
    if !(1..=MAX_MESSAGES).contains(&count) {
        let message = format!("must have 1 to {MAX_MESSAGES} items; it has {count}");
        return Err(Problem::value(&place, message).into());
    }
    Ok(items)
}

fn parse(message: BodyText<'_>, most_payload: usize) -> Result<MessageIn<'_>, Error> {
    let input = MessageIn::parse(message, most_payload)?;
    if input.application.is_some() {
        let message = "is not taken in a batch: make the application before";
        return Err(Problem::value(&["body", "application"], message).into());
    }
    Ok(input)
}

fn event(input: MessageIn<'_>, once: IdempotencyDigest, trace: EventTrace) -> NewEvent {
    NewEvent {
        event_type: (&*input.event_type).into(),
        payload: Bytes::copy_from_slice(input.body()),
        version: input.version.as_deref().map(Into::into),
        channels: input.channels,
        tags: input.tags,
        headers: input.headers,
        event_id: input.event_id.map(Into::into),
        deliver_at: input.deliver_at,
        payload_kept: input.payload_kept,
        direct: None,
        source: None,
        only_for: None,
        once,
        trace,
    }
}
