//! Sources: URLs that receive the webhooks of other senders.

use super::body::{may_change, patched, read, read_whole, shown_config, whole};
use crate::api::credentials::portal::Base;
use crate::api::request::body::{BodyText, Pending};
use crate::api::request::ids::{self, Ids};
use crate::api::request::json;
use crate::api::request::replace::{Replace, replace, uid_of_put};
use crate::api::response::conflict::Subject;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::questions::{Missing, SourceDetails, SourceQuestions};
use crate::token::Caller;
use aldaba_api::{
    IngestUrl, IngestUrlView, NewSource as Body, SourceCounters, SourceCountersView, SourcePatch, SourceState,
};
use aldaba_delivery::SourceId;
use aldaba_engine::{
    ChangeError, CreateOutcome, IdempotencyDigest, NewSource, SourceCounts, SourceSecrets, SourceSettings,
};
use aldaba_store::{Order, Source};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::Value;

/// Sources in the document.
type SourceOut = aldaba_api::Source;

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
            .named("v1.ingest.source.create", "Creates a source, and the application that has its endpoints")
            .takes::<Body>()
            .answers::<SourceOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::get(ONE, Access::ReadOrganization, show)
            .named("v1.ingest.source.get", "Shows a source")
            .answers::<SourceOut>(StatusCode::OK),
        Route::put(ONE, Access::Administer, put)
            .keyed()
            .named("v1.ingest.source.upsert", "Replaces a source, or creates it")
            .takes::<Body>()
            .answers::<SourceOut>(StatusCode::OK)
            .answers::<SourceOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::patch(ONE, Access::Administer, patch)
            .named("v1.ingest.source.patch", "Changes the given fields of a source")
            .takes::<SourcePatch>()
            .answers::<SourceOut>(StatusCode::OK)
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
            .answers::<IngestUrl>(StatusCode::OK)
            .may_conflict(),
    ]
}

fn counters(counts: SourceCounts) -> SourceCounters {
    let SourceCounts { since, received, duplicates, reopened, ignored, conflicts, refused, challenges } =
        counts;
    let since = json::moment(since);
    SourceCountersView { since, received, duplicates, reopened, ignored, conflicts, refused, challenges }
        .into()
}

/// A source with all that is shown of it.
fn shown(api: &Api, caller: &Caller, base: &str, source: &Source) -> Result<aldaba_api::Source, Error> {
    let SourceDetails { settings, secrets, token, counts } = api.ask(caller).source_details(source)?;
    let before = before_of(source, settings, secrets);
    let config = shown_config(&before);
    let state = SourceState {
        id: source.id.to_string(),
        verified: before.secrets.verify(&before.kind),
        ingest_url: token.map(|token| ingest_url(base, &token).into()),
        app_id: source.app.to_string(),
        counters: counts.map(counters),
        created_at: json::moment(source.created_at),
        updated_at: json::moment(source.updated_at),
    };
    let config = Some(Value::Object(config).into());
    Ok(aldaba_api::Source::of(Body { config, ..whole(&before) }, state))
}

fn ingest_url(base: &str, token: &str) -> String {
    format!("{base}/in/{token}")
}

async fn list(
    State(api): State<Api>,
    Base(base): Base,
    query: PageQuery<SourceId>,
    caller: Caller,
) -> Result<Response, Error> {
    let (page, order) = query.ask(query.order.unwrap_or(Order::Ascending));
    let found = api.ask(&caller).sources(page, order).await?;
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
    Ok(json::answer(StatusCode::OK, &shown(&api, &caller, &base, &source)?))
}

/// A change of a source, or what makes it.
struct SourceChange<'a> {
    api: &'a Api,
    caller: &'a Caller,
    key: String,
    once: IdempotencyDigest,
    body: BodyText<'a>,
    is_put: bool,
}

fn may_be_made(key: &str) -> Result<(), Error> {
    ids::may_be_made("src_", key, Missing::Source)
}

impl Replace for SourceChange<'_> {
    type Current = Source;
    type New = NewSource;

    fn caller(&self) -> &Caller {
        self.caller
    }

    fn key(&self) -> &str {
        &self.key
    }

    async fn find(&self) -> Result<Option<Source>, Error> {
        let questions = self.api.ask(self.caller);
        match self.is_put {
            true => Ok(questions.find_source(&self.key).await?.map(SourceQuestions::into_source)),
            false => Ok(Some(questions.source(&self.key).await?.into_source())),
        }
    }

    fn may_be_made(&self) -> Result<(), Error> {
        may_be_made(&self.key)
    }

    fn wanted(&self, current: Option<&Source>) -> Result<NewSource, Error> {
        let before = current.map(|current| before(self.api, current)).transpose()?;
        let mut new = match (self.is_put, &before) {
            (true, before) => read_whole(self.caller.org(), self.body, before.as_ref())?,
            (false, before) => patched(self.body, before.as_ref().ok_or_else(Error::server)?)?,
        };
        if let Some(before) = &before {
            may_change(self.body.bytes, before, &new)?;
        }
        if self.is_put {
            new.uid = uid_of_put(new.uid, &self.key, before.as_ref().map(|before| before.uid.as_deref()));
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
        Subject::Source
    }
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
    if api.ask(&caller).find_source(&key).await?.is_none() {
        may_be_made(&key)?;
    }
    let (once, received) = (pending.once(org, &[key.as_bytes()]), pending.read().await?);
    let body = received.text();
    let change = SourceChange { api: &api, caller: &caller, key, once, body, is_put: true };
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
    api.ask(&caller).source(&key).await?;
    let received = pending.read().await?;
    let body = received.text();
    let change = SourceChange { api: &api, caller: &caller, key, once: None, body, is_put: false };
    let (status, source) = replace(&api, &change).await?;
    Ok(json::answer(status, &shown(&api, &caller, &base, &source)?))
}

/// The current values, in the form of a request.
fn before(api: &Api, source: &Source) -> Result<NewSource, Error> {
    let secrets = api.engine.directory().source_secrets(source).map_err(ChangeError::from)?;
    let settings = SourceSettings::read(&source.config.settings).unwrap_or_default();
    Ok(before_of(source, settings, secrets))
}

fn before_of(source: &Source, settings: SourceSettings, secrets: SourceSecrets) -> NewSource {
    let (org, config) = (source.org, source.config.clone());
    NewSource {
        org,
        uid: config.uid,
        name: config.name,
        metadata: config.metadata,
        kind: config.kind,
        settings,
        secrets,
    }
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
                let out = IngestUrlView { ingest_url: ingest_url(&base, &token) };
                return Ok(json::answer(StatusCode::OK, &out));
            }
        }
    }
}
