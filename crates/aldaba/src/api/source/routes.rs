//! Sources: URLs that receive the webhooks of other senders.

use super::body::{SourceIn, SourcePatch, may_change, read, read_change};
use crate::api::credentials::portal::Base;
use crate::api::request::body::Pending;
use crate::api::request::ids::{self, Ids};
use crate::api::request::json;
use crate::api::response::conflict::Subject;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::questions::{Missing, SourceDetails};
use crate::token::Caller;
use aldaba_delivery::{AppId, SourceId, Timestamp};
use aldaba_engine::{
    ChangeError, CreateOutcome, NewSource, SourceAnswer, SourceCounts, SourceSecrets, SourceSettings,
};
use aldaba_store::{Order, Source};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

const ALL: &str = "/ingest/source";
const ONE: &str = "/ingest/source/{source_id}";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get(ALL, Access::ReadOrganization, list)
            .named("v1.ingest.source.list", "Lists the organization's sources")
            .ordered()
            .lists::<SourceOut<'_>>(),
        Route::post(ALL, Access::Administer, create)
            .keyed()
            .named("v1.ingest.source.create", "Creates a source, and the application that has its endpoints")
            .takes::<SourceIn>()
            .answers::<SourceOut<'_>>(StatusCode::CREATED)
            .may_conflict(),
        Route::get(ONE, Access::ReadOrganization, show)
            .named("v1.ingest.source.get", "Shows a source")
            .answers::<SourceOut<'_>>(StatusCode::OK),
        Route::put(ONE, Access::Administer, put)
            .keyed()
            .named("v1.ingest.source.upsert", "Replaces a source, or creates it")
            .takes::<SourceIn>()
            .answers::<SourceOut<'_>>(StatusCode::OK)
            .answers::<SourceOut<'_>>(StatusCode::CREATED)
            .may_conflict(),
        Route::patch(ONE, Access::Administer, patch)
            .named("v1.ingest.source.patch", "Changes the given fields of a source")
            .takes::<SourcePatch>()
            .answers::<SourceOut<'_>>(StatusCode::OK)
            .may_conflict(),
        Route::delete(ONE, Access::Administer, delete)
            .named("v1.ingest.source.delete", "Deletes a source with its application and endpoints")
            .answers_nothing(),
        Route::post("/ingest/source/{source_id}/token/rotate", Access::Administer, rotate)
            .keyed()
            .named(
                "v1.ingest.source.rotate-token",
                "Creates a new URL for the sender; the present one works for 48 hours",
            )
            .answers::<RotateTokenOut>(StatusCode::OK)
            .may_conflict(),
    ]
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SourceOut<'a> {
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    id: SourceId,
    uid: Option<&'a str>,
    name: &'a str,
    r#type: &'a str,
    /// Without what is secret.
    #[schema(value_type = Object)]
    config: Map<String, Value>,
    /// Whether requests need a signature or another proof of their sender.
    verified: bool,
    /// Where the sender sends to. Null for callers who may not see secrets.
    #[schema(format = "uri")]
    ingest_url: Option<String>,
    /// The application that has its endpoints, messages and all that belongs to them.
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    app_id: AppId,
    #[schema(value_type = Object)]
    metadata: &'a RawValue,
    event_id_from: Option<&'a [String]>,
    event_type_from: Option<&'a [String]>,
    filter_types: Option<&'a [String]>,
    #[schema(value_type = Option<Vec<Object>>)]
    filter_headers: Option<&'a [aldaba_engine::HeaderCondition]>,
    forward_headers: Option<&'a [String]>,
    #[schema(value_type = Option<Object>)]
    answer: Option<&'a SourceAnswer>,
    tolerance_seconds: Option<u32>,
    duplicate_window_days: u16,
    on_other_body: &'static str,
    /// What has come since the server began to count; null where nothing has. In memory alone: they begin anew with the
    /// server.
    counters: Option<SourceCountersOut>,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

/// Kept in memory: they begin anew with the server.
#[derive(Serialize, ToSchema)]
struct SourceCountersOut {
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    since: Timestamp,
    received: u64,
    duplicates: u64,
    /// Repeats of events that had failed; they are forwarded again.
    reopened: u64,
    ignored: u64,
    conflicts: u64,
    refused: u64,
    challenges: u64,
}

impl From<SourceCounts> for SourceCountersOut {
    fn from(counts: SourceCounts) -> Self {
        let SourceCounts { since, received, duplicates, reopened, ignored, conflicts, refused, challenges } =
            counts;
        Self { since, received, duplicates, reopened, ignored, conflicts, refused, challenges }
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RotateTokenOut {
    #[schema(format = "uri")]
    ingest_url: String,
}

/// A source and everything that a response shows.
struct Shown {
    source: Source,
    settings: SourceSettings,
    config: Map<String, Value>,
    verified: bool,
    ingest_url: Option<String>,
    counts: Option<SourceCounts>,
}

impl Shown {
    fn new(api: &Api, caller: &Caller, base: &str, source: Source) -> Result<Self, Error> {
        let SourceDetails { settings, secrets, token, counts } = api.ask(caller).source_details(&source)?;
        let config = public_config(&source.config.kind, &settings, &secrets);
        let verified = secrets.verify(&source.config.kind);
        let ingest_url = token.map(|token| ingest_url(base, &token));
        Ok(Self { source, settings, config, verified, ingest_url, counts })
    }

    fn render(&self) -> SourceOut<'_> {
        let Self { source, settings, config, verified, ingest_url, counts } = self;
        SourceOut {
            id: source.id,
            uid: source.config.uid.as_deref(),
            name: &source.config.name,
            r#type: &source.config.kind,
            config: config.clone(),
            verified: *verified,
            ingest_url: ingest_url.clone(),
            app_id: source.app,
            metadata: json::raw(&source.config.metadata),
            event_id_from: some(&settings.event_id_from),
            event_type_from: some(&settings.event_type_from),
            filter_types: some(&settings.filter_types),
            filter_headers: some(&settings.filter_headers),
            forward_headers: settings.forward_headers.as_deref(),
            answer: settings.answer.as_ref(),
            tolerance_seconds: settings.tolerance_seconds,
            duplicate_window_days: settings
                .duplicate_window_days
                .unwrap_or(SourceSettings::DEFAULT_WINDOW_DAYS),
            on_other_body: if settings.other_body_is_duplicate { "duplicate" } else { "conflict" },
            counters: counts.map(SourceCountersOut::from),
            created_at: source.created_at,
            updated_at: source.updated_at,
        }
    }

    fn answer(&self, status: StatusCode) -> Response {
        json::answer(status, &self.render())
    }
}

fn some<T>(items: &[T]) -> Option<&[T]> {
    (!items.is_empty()).then_some(items)
}

fn ingest_url(base: &str, token: &str) -> String {
    format!("{base}/in/{token}")
}

/// The part of `config` that is not secret.
fn public_config(kind: &str, settings: &SourceSettings, secrets: &SourceSecrets) -> Map<String, Value> {
    let mut config = match &settings.hmac {
        Some(hmac) => json!(hmac),
        None => json!({}),
    };
    if let Some(brand) = &settings.brand {
        config["brand"] = json!(brand);
    }
    if kind == "telnyx" {
        config["publicKey"] = json!(secrets.secrets.first().map(|key| key.as_str()));
    }
    let keys = secrets.public_keys();
    if !keys.is_empty() {
        config["publicKeys"] = json!(keys);
    }
    match config {
        Value::Object(config) => config.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}

async fn list(
    State(api): State<Api>,
    Base(base): Base,
    query: PageQuery<SourceId>,
    caller: Caller,
) -> Result<Response, Error> {
    let (page, order) = query.ask(query.order.unwrap_or(Order::Ascending));
    let found = api.ask(&caller).sources(page, order).await?;
    let shown = found.into_iter().map(|source| Shown::new(&api, &caller, &base, source));
    let shown = shown.collect::<Result<Vec<_>, _>>()?;
    Ok(query.list(shown, false, |shown| shown.source.id).render(Shown::render))
}

async fn create(
    State(api): State<Api>,
    Base(base): Base,
    caller: Caller,
    pending: Pending,
) -> Result<Response, Error> {
    let once = pending.once(caller.org(), &[]);
    let new = read(caller.org(), &pending.read().await?.bytes)?;
    let uid = new.uid.clone();
    match api.directory(&caller).create_source(new, once).await {
        Ok(CreateOutcome::Created(made) | CreateOutcome::Existing(made)) => {
            Ok(Shown::new(&api, &caller, &base, made)?.answer(StatusCode::CREATED))
        }
        Err(error) => Err(api.refusal(&caller, error, Subject::Source, uid).await),
    }
}

async fn show(
    State(api): State<Api>,
    Base(base): Base,
    caller: Caller,
    Ids(key): Ids<String>,
) -> Result<Response, Error> {
    let source = api.ask(&caller).source(&key).await?.into_source();
    Ok(Shown::new(&api, &caller, &base, source)?.answer(StatusCode::OK))
}

/// Replaces a source, or creates it. Its URL stays.
async fn put(
    State(api): State<Api>,
    Base(base): Base,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let org = caller.org();
    let may_be_made = || ids::may_be_made("src_", &key, Missing::Source);
    if api.ask(&caller).find_source(&key).await?.is_none() {
        may_be_made()?;
    }
    let (once, body) = (pending.once(org, &[key.as_bytes()]), pending.read().await?);
    let new = read_change(org, &body.bytes, None)?;
    // The name in the path stays the source's uid: otherwise the same request would create another one next time.
    let names_none = crate::api::request::bounded_json::fields(&body.bytes)
        .is_ok_and(|fields| !fields.contains_key("uid"));
    let mut retry = api.engine.directory().conflict_retry();
    loop {
        let Some(current) = api.ask(&caller).find_source(&key).await? else {
            // Checked after each read: another request may just have deleted it.
            may_be_made()?;
            let uid = new.uid.clone().or_else(|| Some(key.clone()));
            let is_named_so = uid.as_ref() == Some(&key);
            let asked = NewSource { uid: uid.clone(), ..new.clone() };
            match api.directory(&caller).create_source(asked, once).await {
                // Another request has just created it: this one changes it.
                Err(ChangeError::UidTaken) if is_named_so => retry.wait().await?,
                Err(error) => return Err(api.refusal(&caller, error, Subject::Source, uid).await),
                Ok(CreateOutcome::Created(made) | CreateOutcome::Existing(made)) => {
                    return Ok(Shown::new(&api, &caller, &base, made)?.answer(StatusCode::CREATED));
                }
            }
            continue;
        };
        may_change(&body.bytes, &before(&api, &current)?, &new)?;
        let mut new = new.clone();
        if names_none && current.config.uid.as_ref() == Some(&key) {
            new.uid.clone_from(&current.config.uid);
        }
        let uid = new.uid.clone();
        match api.directory(&caller).update_source(&current, new).await {
            Err(ChangeError::Unsettled) => retry.wait().await?,
            Err(error) => return Err(api.refusal(&caller, error, Subject::Source, uid).await),
            Ok(changed) => return Ok(Shown::new(&api, &caller, &base, changed)?.answer(StatusCode::OK)),
        }
    }
}

async fn patch(
    State(api): State<Api>,
    Base(base): Base,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    api.ask(&caller).source(&key).await?;
    let body = pending.read().await?;
    let mut retry = api.engine.directory().conflict_retry();
    loop {
        let current = api.ask(&caller).source(&key).await?;
        let before = before(&api, &current)?;
        let new = read_change(caller.org(), &body.bytes, Some(&before))?;
        may_change(&body.bytes, &before, &new)?;
        let uid = new.uid.clone();
        match api.directory(&caller).update_source(&current, new).await {
            Err(ChangeError::Unsettled) => retry.wait().await?,
            Err(error) => return Err(api.refusal(&caller, error, Subject::Source, uid).await),
            Ok(changed) => return Ok(Shown::new(&api, &caller, &base, changed)?.answer(StatusCode::OK)),
        }
    }
}

/// The current values, in the form of a request.
fn before(api: &Api, source: &Source) -> Result<NewSource, Error> {
    let secrets = api.engine.directory().source_secrets(source).map_err(ChangeError::from)?;
    let settings = SourceSettings::read(&source.config.settings).unwrap_or_default();
    let config = source.config.clone();
    Ok(NewSource {
        org: source.org,
        uid: config.uid,
        name: config.name,
        metadata: config.metadata,
        kind: config.kind,
        settings,
        secrets,
    })
}

async fn delete(State(api): State<Api>, caller: Caller, Ids(key): Ids<String>) -> Result<StatusCode, Error> {
    let source = api.ask(&caller).source(&key).await?;
    api.directory(&caller).delete_source(&source).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn rotate(
    State(api): State<Api>,
    Base(base): Base,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    // From here on by its id: the uid may become another source's.
    let id = api.ask(&caller).source(&key).await?.id;
    let once = pending.once(caller.org(), &[id.as_bytes()]);
    let mut retry = api.engine.directory().conflict_retry();
    loop {
        let current = api.ask(&caller).source(&id.to_string()).await?;
        match api.directory(&caller).rotate_source_token(&current, once).await {
            Err(ChangeError::Unsettled) => retry.wait().await?,
            rotated => {
                let token = api.engine.directory().source_token(&rotated?).map_err(ChangeError::from)?;
                let out = RotateTokenOut { ingest_url: ingest_url(&base, &token) };
                return Ok(json::answer(StatusCode::OK, &out));
            }
        }
    }
}
