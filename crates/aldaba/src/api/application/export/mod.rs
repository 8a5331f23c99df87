//! Exports an application: all of it, as lines of JSON. `stream.rs` reads and sends it, `lines.rs` has the form of the lines,
//! `permits.rs` limits how many exports run.

mod lines;
mod permits;
mod stream;

pub(crate) use permits::ExportPermits;

use crate::api::request::ids::Ids;
use crate::api::request::query::Query;
use crate::api::response::answer::Streamed;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::MessageId;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use lines::Secrets;
use stream::{Export, Range};
use tokio::sync::mpsc;

/// Pieces that are read ahead of the client.
const READ_AHEAD: usize = 2;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/export", Access::Read, export)
            .named("v1.application.export", "Exports an application with its messages, as lines of JSON")
            .query("after", Form::Moment, "Only messages that were accepted from this moment on")
            .query("before", Form::Moment, "Only messages that were accepted before this moment")
            .query(
                "secrets",
                Form::Boolean,
                "With signing secrets and the values of headers; false if not given",
            )
            .streams_lines(),
    ]
}

async fn export(
    State(api): State<Api>,
    query: Query,
    caller: Caller,
    Ids(key): Ids<String>,
) -> Result<Response, Error> {
    let secrets = if query.boolean("secrets", false) {
        caller.may(Access::ReadSecrets).map_err(Error::forbidden)?;
        Secrets::Shown
    } else {
        Secrets::Masked
    };
    let application = api.ask(&caller).application(&key).await?;
    let permit = api.export_permits.enter(application.org)?;
    // Everything that was accepted until here is part of the export.
    let newest = application.newest_message().await?;
    api.directory(&caller).note_export(application.id).await?;
    let within = query.within();
    let first = within.after.map_or(MessageId::from_bytes([0; 20]), MessageId::first_at);
    let last = match (newest, within.before) {
        (Some(newest), Some(before)) => newest.min(MessageId::first_at(before)),
        (Some(newest), None) => newest,
        (None, _) => MessageId::from_bytes([0; 20]),
    };
    let id = application.id;
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    let export = Export { api: api.clone(), caller, app: id, secrets, range: Range { first, last }, within };
    tokio::spawn(async move {
        export.run(sender).await;
        drop(permit);
    });
    let pieces = unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver)));
    let mut response = Body::from_stream(Box::pin(pieces)).into_response();
    response.extensions_mut().insert(Streamed);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    if let Ok(name) = HeaderValue::from_str(&format!("attachment; filename=\"{id}.jsonl\"")) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}
