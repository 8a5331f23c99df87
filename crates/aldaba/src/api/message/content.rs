//! A message's exact payload, and its deletion.

use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::response::code::Code;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::{RawPayload, RawPayloadView};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/msg/{msg_id}/raw", Access::Read, raw)
            .named("v1.message.get-raw-payload", "Shows a message's payload as the exact text that is sent")
            .answers::<RawPayload>(StatusCode::OK),
        Route::delete("/app/{app_id}/msg/{msg_id}/content", Access::Erase, expunge)
            .named(
                "v1.message.expunge-content",
                "Deletes a message's payload for good; its pending deliveries end in the dead letter",
            )
            .answers_nothing(),
    ]
}

async fn raw(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, key)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let message = api.ask(&caller).application(&app).await?.message(&key).await?;
    if message.expunged {
        let detail = "The message's payload was deleted";
        return Err(Error::new(StatusCode::NOT_FOUND, Code::MissingPayload, detail));
    }
    let payload = String::from_utf8_lossy(&message.content.payload);
    Ok(json::sized_answer(StatusCode::OK, &RawPayloadView { payload: &*payload }, payload.len() + 64))
}

async fn expunge(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, key)): Ids<(String, String)>,
) -> Result<StatusCode, Error> {
    let message = api.ask(&caller).application(&app).await?.message(&key).await?;
    api.engine.expunge_message(caller.actor(), message.app, message.id).await?;
    Ok(StatusCode::NO_CONTENT)
}
