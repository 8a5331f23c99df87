//! Event types from an OpenAPI document.

mod bundle;
#[cfg(test)]
mod tests;
mod webhooks;
mod yaml;

use super::apart;
use crate::api::endpoint::some_items;
use crate::api::request::body::{BodyText, Pending};
use crate::api::request::json::{self, bounded_json};
use crate::api::response::code::Code;
use crate::api::response::error::Problem;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::value::Shows;
use aldaba_api::{
    ImportOpenApi, ImportedEventType, ImportedEventTypeView, ImportedEventTypesView, ImportedOpenApi,
    ImportedOpenApiView,
};
use aldaba_engine::{IdempotencyDigest, NewEventType};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use webhooks::{Flaw, Refused};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/event-type/import/openapi", Access::Administer, import)
            .keyed()
            .named(
                "v1.event-type.import-openapi",
                "Creates or changes event types from the webhooks of an OpenAPI document",
            )
            .takes::<ImportOpenApi>()
            .answers::<ImportedOpenApi>(StatusCode::OK)
            .may_conflict(),
    ]
}

fn render(new: &NewEventType) -> impl Shows<ImportedEventType> {
    ImportedEventTypeView {
        name: &new.name,
        description: &new.description,
        deprecated: new.deprecated,
        schemas: new.schemas.as_deref().map(json::raw),
        feature_flags: some_items(&new.feature_flags),
        feature_flag: new.feature_flags.first().map(String::as_str),
        group_name: new.group_name.as_deref(),
    }
}

/// The import to make.
struct Import {
    event_types: Vec<NewEventType>,
    dry_run: bool,
    replace_all: bool,
}

fn read(body: BodyText<'_>) -> Result<Import, Error> {
    let ImportOpenApi { spec, spec_raw, dry_run, replace_all } = body.parse(false)?.finish()?;
    let spec = spec.map(|spec| {
        let wrong = |why| Problem::decode(&["body", "spec"], why);
        bounded_json::build::<Value>(spec.text().as_bytes()).map_err(wrong)
    });
    let (dry_run, replace_all) = (dry_run.unwrap_or_default(), replace_all.unwrap_or_default());
    let (field, document) = match (spec.transpose()?, spec_raw) {
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

/// JSON is YAML too, but reading it as JSON is faster and gives better errors.
fn parse(text: &str) -> Result<Value, String> {
    match text.trim_start().starts_with('{') {
        true => serde_json::from_str(text).or_else(|error| yaml::read(text).map_err(|_| error.to_string())),
        false => yaml::read(text),
    }
}

/// Imports at a time; others wait. One may keep a few times [`EventTypes::MAX_SCHEMA_BYTES`] in memory.
///
/// [`EventTypes::MAX_SCHEMA_BYTES`]: aldaba_engine::EventTypes::MAX_SCHEMA_BYTES
const MAX_IMPORTS: usize = 2;

static IMPORT_PERMITS: Semaphore = Semaphore::const_new(MAX_IMPORTS);

async fn import(State(api): State<Api>, caller: Caller, pending: Pending) -> Result<Response, Error> {
    let (once, body) = (pending.once(caller.org(), &[]), pending.read().await?);
    let Ok(place) = IMPORT_PERMITS.acquire().await else { return Err(Error::server()) };
    // On a blocking thread: the expanded schemas are large.
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
    let archived = match dry_run {
        true => directory.try_import(org, &new, replace_all)?,
        false => directory.import_event_types(org, &new, replace_all, once).await?,
    };
    let modified: Vec<_> = new.iter().filter(|_| !dry_run).map(|new| new.name.as_str()).collect();
    let to_modify = dry_run.then(|| new.iter().map(render).collect::<Vec<_>>());
    let data = ImportedEventTypesView { modified, to_modify, archived };
    Ok(json::answer(StatusCode::OK, &ImportedOpenApiView { data }))
}
