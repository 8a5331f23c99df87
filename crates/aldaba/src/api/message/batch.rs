//! Many messages in one request: one commit, and a result for each.

use super::body::MessageIn;
use crate::api::limits::rates;
use crate::api::request::body::{BodyText, Pending};
use crate::api::request::idempotency;
use crate::api::request::ids::Ids;
use crate::api::request::json::bounded_json::{AtMost, First};
use crate::api::request::json::{self, Text};
use crate::api::response::error::{Part, Problem};
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::read::UnknownFields;
use aldaba_api::value::Shows;
use aldaba_api::{Batch, BatchResult, BatchResultView, BatchView, NewBatch};
use aldaba_delivery::MessageId;
use aldaba_engine::{EventTrace, IdempotencyDigest, NewEvent, SendReceipt};
use aldaba_store::ApplicationRef;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The limits of one request.
const MAX_MESSAGES: usize = aldaba_api::MAX_BATCH;
/// Refused messages of which all problems are listed, with the names that were meant: looking for these takes time. Of
/// others one problem is.
const MAX_EXPLAINED: usize = 50;
pub(crate) const MAX_BYTES: usize = 16 << 20;
/// Messages that are parsed before other requests may run.
const MESSAGES_BETWEEN_YIELDS: usize = 16;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/app/{app_id}/msg/batch", Access::Send, create)
            .keyed()
            .named("v1.message.create-batch", "Accepts many messages at once, each with its own result")
            .takes::<NewBatch>()
            .answers::<Batch>(StatusCode::ACCEPTED)
            .may_conflict(),
    ]
}

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

/// What became of one message.
enum MessageResult {
    Accepted(MessageId),
    Refused(Part),
}

fn render(result: MessageResult) -> impl Shows<BatchResult> {
    let (status, id, refused) = match result {
        MessageResult::Accepted(id) => (StatusCode::ACCEPTED.as_u16(), Some(Text(id)), None),
        MessageResult::Refused(Part { status, error, retry_after }) => {
            (status, None, Some((error, retry_after)))
        }
    };
    let (error, retry_after) = refused.unzip();
    BatchResultView { status, id, error, retry_after: retry_after.flatten() }
}

async fn create(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&key).await?;
    let (once, trace) = (pending.once(application.org, &[]), pending.trace());
    let body =
        pending.up_to(MAX_BYTES, "no setting changes it. Send fewer messages in one batch").read().await?;
    let messages = messages(body.text())?;
    rates::charge(&api, application.org, application.id, messages.len() - 1);
    let mut results: Vec<Option<MessageResult>> = Vec::with_capacity(messages.len());
    let (mut events, mut places) = (Vec::with_capacity(messages.len()), Vec::with_capacity(messages.len()));
    let mut refused = 0;
    for (place, message) in messages.into_iter().enumerate() {
        if place % MESSAGES_BETWEEN_YIELDS == 0 {
            tokio::task::yield_now().await;
        }
        let text = body.part(message);
        let text = if refused < MAX_EXPLAINED { text } else { text.briefly() };
        match parse(text, api.limits.payload) {
            Ok(input) => {
                // Each message derives its key from the request's: a repeat finds the accepted messages, and tries
                // the others.
                events.push(event(input, idempotency::of_item(once, place), trace.shared()));
                places.push(place);
                results.push(None);
            }
            Err(error) => {
                refused += 1;
                results.push(Some(MessageResult::Refused(error.into())));
            }
        }
    }
    // Each payload is a copy, so that one pending message does not keep the whole body.
    let memory = body.into_memory();
    let which = ApplicationRef { org: application.org, key: application.id.to_string() };
    for (place, sent) in places.into_iter().zip(api.engine.send_many(&which, events).await?) {
        results[place] = Some(match sent {
            Ok(SendReceipt::New { message, .. } | SendReceipt::Repeated { message }) => {
                trace.concerns(message);
                MessageResult::Accepted(message)
            }
            Err(error) => MessageResult::Refused(Error::from(error).into()),
        });
    }
    let results: Vec<_> = results.into_iter().flatten().collect();
    let accepted = results.iter().filter(|result| matches!(result, MessageResult::Accepted(_))).count();
    let size = 64 * results.len();
    let results: Vec<_> = results.into_iter().map(render).collect();
    let answer = json::sized_answer(StatusCode::ACCEPTED, &BatchView { accepted, results }, size);
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
        body.parse::<NewBatch>(false)?.finish()?;
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
