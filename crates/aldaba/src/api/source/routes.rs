//! Sources: inbound doors for the webhooks of other senders.

use super::body::{may_change, patched, read, read_whole, whole};
use crate::api::credentials::portal::Base;
use crate::api::request::body::{BodyText, Pending};
use crate::api::request::ids::{self, Ids};
use crate::api::request::json::{self, bounded_json};
use crate::api::request::replace::{Replace, replace};
use crate::api::request::variant::Described;
use crate::api::response::conflict::Subject;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::{NewSource as Body, SourceCounters, SourceCountersState, SourcePatch, SourceState};
use aldaba_delivery::SourceId;
use aldaba_engine::{
    ChangeError, CreateOutcome, IdempotencyDigest, NewSource, SourceCounts, SourceSecrets, SourceSettings,
};
use aldaba_store::{Order, Source};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// Sources in the document.
type SourceOut = Described<aldaba_api::Source>;

const ALL: &str = "/ingest/source";
const ONE: &str = "/ingest/source/{source_id}";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get(ALL, Access::ReadOrganization, list)
            .named("v1.ingest.source.list", "Lists the organization's sources")
            .ordered()
            .lists::<SourceOut>(),
        Route::post(ALL, Access::Administer, create)
            .keyed()
            .named("v1.ingest.source.create", "Makes a source, and the application that has its endpoints")
            .takes::<Described<Body>>()
            .answers::<SourceOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::get(ONE, Access::ReadOrganization, show)
            .named("v1.ingest.source.get", "Shows a source")
            .answers::<SourceOut>(StatusCode::OK),
        Route::put(ONE, Access::Administer, put)
            .keyed()
            .named("v1.ingest.source.upsert", "Gives a source other values, or makes it")
            .takes::<Described<Body>>()
            .answers::<SourceOut>(StatusCode::OK)
            .answers::<SourceOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::patch(ONE, Access::Administer, patch)
            .named("v1.ingest.source.patch", "Changes the given fields of a source")
            .takes::<Described<SourcePatch>>()
            .answers::<SourceOut>(StatusCode::OK)
            .may_conflict(),
        Route::delete(ONE, Access::Administer, delete)
            .named("v1.ingest.source.delete", "Removes a source with its application and endpoints")
            .answers_nothing(),
        Route::post("/ingest/source/{source_id}/token/rotate", Access::Administer, rotate)
            .keyed()
            .named(
                "v1.ingest.source.rotate-token",
                "Makes another URL for the sender; the present one counts for 48 hours",
            )
            .answers::<RotateTokenOut>(StatusCode::OK)
            .may_conflict(),
    ]
}

fn counters(counts: SourceCounts) -> SourceCounters {
    let SourceCounts { since, received, duplicates, reopened, ignored, conflicts, refused, challenges } =
        counts;
    let since = json::moment(since);
    SourceCountersState { since, received, duplicates, reopened, ignored, conflicts, refused, challenges }
        .into()
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RotateTokenOut {
    #[schema(format = "uri")]
    ingest_url: String,
}

/// A source with all that is shown of it.
fn shown(api: &Api, caller: &Caller, base: &str, source: &Source) -> Result<aldaba_api::Source, Error> {
    let before = before(api, source)?;
    let config = public_config(&before.kind, &before.settings, &before.secrets);
    let token = || api.engine.directory().source_token(source).map_err(ChangeError::from);
    let ingest_url = match caller.may(Access::ReadSecrets) {
        Ok(()) => Some(ingest_url(base, &token()?).into()),
        Err(_) => None,
    };
    let state = SourceState {
        id: source.id.to_string(),
        verified: before.secrets.verify(&before.kind),
        ingest_url,
        app_id: source.app.to_string(),
        counters: api.engine.source_counters().counts(source.id).map(counters),
        created_at: json::moment(source.created_at),
        updated_at: json::moment(source.updated_at),
    };
    let config = Some(Value::Object(config).into());
    Ok(aldaba_api::Source::of(Body { config, ..whole(&before) }, state))
}

fn ingest_url(base: &str, token: &str) -> String {
    format!("{base}/in/{token}")
}

/// What everybody may know of it.
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

impl Api {
    /// Another organization's source is not there, as far as the caller can tell.
    pub(crate) async fn source(&self, caller: &Caller, key: String) -> Result<Source, Error> {
        let found = self.engine.store().source(caller.org(), key).await?;
        found.ok_or_else(|| Error::not_found("There is no such source; GET /api/v1/ingest/source lists them"))
    }
}

async fn list(
    State(api): State<Api>,
    Base(base): Base,
    query: PageQuery<SourceId>,
    caller: Caller,
) -> Result<Response, Error> {
    let (page, order) = query.ask(query.order.unwrap_or(Order::Ascending));
    let found = api.engine.store().sources(caller.org(), page, order).await?;
    let described = found.into_iter().map(|source| Ok((source.id, shown(&api, &caller, &base, &source)?)));
    let described = described.collect::<Result<Vec<_>, Error>>()?;
    Ok(query.list(described, false, |(id, _)| *id).render(|(_, shown)| shown))
}

async fn create(
    State(api): State<Api>,
    Base(base): Base,
    caller: Caller,
    pending: Pending,
) -> Result<Response, Error> {
    let once = pending.once(caller.org(), &[]);
    let new = read(caller.org(), pending.read().await?.text())?;
    let uid = new.uid.clone();
    match api.directory(&caller).create_source(new, once).await {
        Ok(CreateOutcome::Created(made) | CreateOutcome::Existing(made)) => {
            Ok(json::answer(StatusCode::CREATED, &shown(&api, &caller, &base, &made)?))
        }
        Err(error) => Err(api.refusal(error, Subject::Source(caller.org()), uid).await),
    }
}

async fn show(
    State(api): State<Api>,
    Base(base): Base,
    caller: Caller,
    Ids(key): Ids<String>,
) -> Result<Response, Error> {
    let source = api.source(&caller, key).await?;
    Ok(json::answer(StatusCode::OK, &shown(&api, &caller, &base, &source)?))
}

/// Puts other values in the place of those there are, or makes the source. Its URL stays.
/// A change of a source, or what makes it.
struct SourceChange<'a> {
    api: &'a Api,
    caller: &'a Caller,
    key: String,
    once: IdempotencyDigest,
    body: BodyText<'a>,
    /// What a PUT asks for.
    whole: Option<NewSource>,
}

fn may_be_made(key: &str) -> Result<(), Error> {
    ids::may_be_made("src_", key, "There is no such source; GET /api/v1/ingest/source lists them")
}

impl Replace for SourceChange<'_> {
    type Current = Source;
    type New = NewSource;

    fn key(&self) -> &str {
        &self.key
    }

    async fn find(&self) -> Result<Option<Source>, Error> {
        match &self.whole {
            Some(_) => Ok(self.api.engine.store().source(self.caller.org(), self.key.clone()).await?),
            None => self.api.source(self.caller, self.key.clone()).await.map(Some),
        }
    }

    fn may_be_made(&self) -> Result<(), Error> {
        may_be_made(&self.key)
    }

    fn wanted(&self, current: Option<&Source>) -> Result<NewSource, Error> {
        let before = current.map(|current| before(self.api, current)).transpose()?;
        let Some(whole) = &self.whole else {
            let before = before.ok_or_else(Error::server)?;
            let new = patched(self.body, &before)?;
            may_change(self.body.bytes, &before, &new)?;
            return Ok(new);
        };
        let mut new = whole.clone();
        match (&before, current) {
            (Some(before), Some(current)) => {
                may_change(self.body.bytes, before, &new)?;
                // Whoever names it so in the path means it to keep that name, or the same request would make another the
                // next time.
                let gives_uid =
                    bounded_json::fields(self.body.bytes).is_ok_and(|fields| fields.contains_key("uid"));
                if !gives_uid && current.config.uid.as_ref() == Some(&self.key) {
                    new.uid.clone_from(&current.config.uid);
                }
            }
            _ => {
                new.uid.get_or_insert_with(|| self.key.clone());
            }
        }
        Ok(new)
    }

    async fn create(&self, new: NewSource) -> Result<Source, ChangeError> {
        let made = self.api.directory(self.caller).create_source(new, self.once).await?;
        let (CreateOutcome::Created(made) | CreateOutcome::Existing(made)) = made;
        Ok(made)
    }

    async fn update(&self, current: &Source, new: NewSource) -> Result<Source, ChangeError> {
        self.api.directory(self.caller).update_source(current, new).await
    }

    fn uid(new: &NewSource) -> Option<String> {
        new.uid.clone()
    }

    fn subject(&self, _current: Option<&Source>) -> Subject {
        Subject::Source(self.caller.org())
    }
}

async fn put(
    State(api): State<Api>,
    Base(base): Base,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let org = caller.org();
    if api.engine.store().source(org, key.clone()).await?.is_none() {
        may_be_made(&key)?;
    }
    let (once, received) = (pending.once(org, &[key.as_bytes()]), pending.read().await?);
    let body = received.text();
    let whole = Some(read_whole(org, body)?);
    let change = SourceChange { api: &api, caller: &caller, key, once, body, whole };
    let (status, source) = replace(&api, &change).await?;
    Ok(json::answer(status, &shown(&api, &caller, &base, &source)?))
}

async fn patch(
    State(api): State<Api>,
    Base(base): Base,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    api.source(&caller, key.clone()).await?;
    let received = pending.read().await?;
    let body = received.text();
    let change = SourceChange { api: &api, caller: &caller, key, once: None, body, whole: None };
    let (status, source) = replace(&api, &change).await?;
    Ok(json::answer(status, &shown(&api, &caller, &base, &source)?))
}

/// A source as one that was given.
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
    let source = api.source(&caller, key).await?;
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
    // Of the id: by then the uid may be another source's.
    let Source { org, id, .. } = api.source(&caller, key).await?;
    let once = pending.once(org, &[id.as_bytes()]);
    let mut retry = api.engine.directory().conflict_retry();
    loop {
        let current = api.source(&caller, id.to_string()).await?;
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
