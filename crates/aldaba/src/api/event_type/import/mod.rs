//! Event types from an OpenAPI document.

mod bundle;
#[cfg(test)]
mod tests;
mod webhooks;
mod yaml;

use super::apart;
use crate::api::endpoint::some_items;
use crate::api::request::body::{BodyText, Pending};
use crate::api::request::json;
use crate::api::response::code::Code;
use crate::api::response::error::Problem;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Route, example};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_engine::{IdempotencyDigest, NewEventType};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use utoipa::ToSchema;
use webhooks::{Flaw, Refused};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/event-type/import/openapi", Access::Administer, import)
            .keyed()
            .named(
                "v1.event-type.import-openapi",
                "Makes or changes event types by the webhooks of an OpenAPI document",
            )
            .takes::<EventTypeImportOpenApiIn>()
            .answers::<EventTypeImportOpenApiOut<'_>>(StatusCode::OK)
            .may_conflict(),
    ]
}

/// An OpenAPI document, as `spec` or as `specRaw`.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct EventTypeImportOpenApiIn {
    #[schema(value_type = Option<Object>)]
    spec: Value,
    /// YAML or JSON.
    spec_raw: Option<String>,
    /// Only say what would be done.
    dry_run: Option<bool>,
    /// Archive all event types that are not in the document.
    replace_all: Option<bool>,
}

example!(EventTypeImportOpenApiIn, {
    "spec": {
        "openapi": "3.1.0",
        "info": {"title": "Our events", "version": "1"},
        "webhooks": {"report.ready": {"post": {
            "description": "A report can be fetched",
            "requestBody": {"content": {"application/json": {"schema": {
                "type": "object",
                "required": ["report"],
                "properties": {"report": {"type": "integer"}},
            }}}},
        }}},
    },
    "dryRun": true,
});

#[derive(Serialize, ToSchema)]
struct EventTypeImportOpenApiOut<'a> {
    data: EventTypeImportOpenApiOutData<'a>,
}

#[derive(Serialize, ToSchema)]
struct EventTypeImportOpenApiOutData<'a> {
    /// Those that were made or changed.
    modified: Vec<&'a str>,
    /// What a dry run would make of them.
    to_modify: Option<Vec<EventTypeFromOpenApi<'a>>>,
    /// Those that were archived, or would be.
    archived: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EventTypeFromOpenApi<'a> {
    name: &'a str,
    description: &'a str,
    deprecated: bool,
    #[schema(value_type = Option<Object>)]
    schemas: Option<&'a RawValue>,
    feature_flags: Option<&'a [String]>,
    feature_flag: Option<&'a str>,
    group_name: Option<&'a str>,
}

fn render(new: &NewEventType) -> EventTypeFromOpenApi<'_> {
    EventTypeFromOpenApi {
        name: &new.name,
        description: &new.description,
        deprecated: new.deprecated,
        schemas: new.schemas.as_deref().map(json::raw),
        feature_flags: some_items(&new.feature_flags),
        feature_flag: new.feature_flags.first().map(String::as_str),
        group_name: new.group_name.as_deref(),
    }
}

/// What is asked for.
struct Import {
    event_types: Vec<NewEventType>,
    dry_run: bool,
    replace_all: bool,
}

fn read(body: BodyText<'_>) -> Result<Import, Error> {
    let mut fields = body.fields()?;
    fields.refuse_others(&["spec", "specRaw", "dryRun", "replaceAll"]);
    let dry_run = fields.boolean_or("dryRun", false);
    let replace_all = fields.boolean_or("replaceAll", false);
    let (spec, raw) = (fields.object_value("spec"), fields.string("specRaw"));
    fields.finish()?;
    let (field, document) = match (spec, raw) {
        (Some(spec), None) => ("spec", spec),
        (None, Some(raw)) => {
            let wrong =
                |why: String| Problem::value(&["body", "specRaw"], format!("is no YAML or JSON: {why}"));
            ("specRaw", parse(&raw).map_err(wrong)?)
        }
        _ => {
            let detail =
                "Give the document as `spec` (JSON) or as `specRaw` (a text of YAML or JSON): one of the two";
            return Err(Error::new(StatusCode::BAD_REQUEST, Code::GenericError, detail));
        }
    };
    let problem = |Flaw { place, why }: Flaw| {
        let loc: Vec<_> = ["body", field].into_iter().chain(place.iter().map(String::as_str)).collect();
        Problem::value(&loc, why)
    };
    let event_types = webhooks::read(&document).map_err(|refused| match refused {
        Refused::Flaws(flaws) => Error::problems(flaws.into_iter().map(problem).collect()),
        Refused::Room(error) => error.into(),
    })?;
    Ok(Import { event_types, dry_run, replace_all })
}

/// JSON is YAML, too; read as JSON it is read faster, and errors say what JSON lacks.
fn parse(text: &str) -> Result<Value, String> {
    match text.trim_start().starts_with('{') {
        true => serde_json::from_str(text).or_else(|error| yaml::read(text).map_err(|_| error.to_string())),
        false => yaml::read(text),
    }
}

/// Imports that are worked on at a time; others wait. One may keep a few times [`EventTypes::MAX_SCHEMA_BYTES`] in memory.
///
/// [`EventTypes::MAX_SCHEMA_BYTES`]: aldaba_engine::EventTypes::MAX_SCHEMA_BYTES
const AT_ONCE: usize = 2;

static PLACES: Semaphore = Semaphore::const_new(AT_ONCE);

async fn import(State(api): State<Api>, caller: Caller, pending: Pending) -> Result<Response, Error> {
    let (once, body) = (pending.once(caller.org(), &[]), pending.read().await?);
    let Ok(place) = PLACES.acquire().await else { return Err(Error::server()) };
    // All of it where no other request waits for the thread: what is written out is large.
    let runtime = Handle::current();
    apart(move || {
        let _place = place;
        runtime.block_on(carry_out(&api, &caller, once, body.text()))
    })
    .await
}

async fn carry_out(
    api: &Api,
    caller: &Caller,
    once: IdempotencyDigest,
    body: BodyText<'_>,
) -> Result<Response, Error> {
    let Import { event_types: new, dry_run, replace_all } = read(body)?;
    let (directory, org) = (api.directory(caller), caller.org());
    let data = if dry_run {
        let archived = directory.try_import(org, &new, replace_all)?;
        let to_modify = Some(new.iter().map(render).collect());
        EventTypeImportOpenApiOutData { modified: Vec::new(), to_modify, archived }
    } else {
        let archived = directory.import_event_types(org, &new, replace_all, once).await?;
        let modified = new.iter().map(|new| new.name.as_str()).collect();
        EventTypeImportOpenApiOutData { modified, to_modify: None, archived }
    };
    Ok(json::answer(StatusCode::OK, &EventTypeImportOpenApiOut { data }))
}
