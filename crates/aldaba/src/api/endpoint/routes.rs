use super::body::{Offer, checked, patched, turns_off_again, whole};
use super::health;
use crate::api::application::no_mail_note;
use crate::api::request::body::Pending;
use crate::api::request::ids::{self, Ids};
use crate::api::request::json;
use crate::api::request::replace::{Replace, replace, uid_of_put};
use crate::api::response::conflict::Subject;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::questions::{ApplicationQuestions, Missing};
use crate::token::Caller;
use aldaba_api::read::Parsed;
use aldaba_api::{EndpointPatch, EndpointState, EndpointUpdate, NewEndpoint};
use aldaba_delivery::{EndpointId, HealthStatus};
use aldaba_engine::{ChangeError, CreateOutcome, IdempotencyDigest, NewEndpoint as Checked};
use aldaba_store::{Endpoint, Order};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

/// Endpoints in the document.
pub(crate) type EndpointOut = aldaba_api::Endpoint;
pub(crate) type EndpointIn = NewEndpoint;
pub(crate) type EndpointUpdateIn = EndpointUpdate;

/// User and password.
type Credentials = Option<(String, String)>;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/endpoint", Access::Read, list)
            .named("v1.endpoint.list", "Lists the application's endpoints")
            .ordered()
            .lists::<EndpointOut>(),
        Route::post("/app/{app_id}/endpoint", Access::Manage, create)
            .keyed()
            .named("v1.endpoint.create", "Creates an endpoint")
            .takes::<EndpointIn>()
            .answers::<EndpointOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::get("/app/{app_id}/endpoint/{endpoint_id}", Access::Read, show)
            .named("v1.endpoint.get", "Shows an endpoint")
            .answers::<EndpointOut>(StatusCode::OK),
        Route::put("/app/{app_id}/endpoint/{endpoint_id}", Access::Manage, put)
            .keyed()
            .named("v1.endpoint.update", "Replaces the configuration of an endpoint, or creates it")
            .takes::<EndpointUpdateIn>()
            .answers::<EndpointOut>(StatusCode::OK)
            .answers::<EndpointOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::patch("/app/{app_id}/endpoint/{endpoint_id}", Access::Manage, patch)
            .named("v1.endpoint.patch", "Changes the given fields of an endpoint")
            .takes::<EndpointPatch>()
            .answers::<EndpointOut>(StatusCode::OK)
            .may_conflict(),
        Route::delete("/app/{app_id}/endpoint/{endpoint_id}", Access::Manage, delete)
            .named("v1.endpoint.delete", "Deletes an endpoint")
            .answers_nothing(),
    ]
}

pub(crate) fn render(api: &Api, endpoint: &Endpoint) -> aldaba_api::Endpoint {
    let state = EndpointState {
        id: endpoint.id.to_string(),
        owner_email_note: endpoint
            .config
            .owner_email
            .as_ref()
            .and_then(|_| no_mail_note(api))
            .map(str::to_owned),
        blocked: endpoint.is_blocked(),
        status: if endpoint.health.status == HealthStatus::Failed { "failed" } else { "active" }.into(),
        failure_count: endpoint.health.failure_count,
        health: health::render(endpoint),
        created_at: json::moment(endpoint.created_at),
        updated_at: json::moment(endpoint.updated_at),
    };
    let disabled = Some(reads_disabled(endpoint));
    aldaba_api::Endpoint::of(EndpointUpdate { disabled, ..whole(&endpoint.config) }, state)
}

/// Whether the operator or the receiver has disabled the endpoint: callers look here for both.
pub(crate) fn reads_disabled(endpoint: &Endpoint) -> bool {
    endpoint.config.disabled || endpoint.health.status.is_given_up()
}

/// An empty set is written as null: no filter.
pub(crate) fn some_items(items: &[String]) -> Option<&[String]> {
    (!items.is_empty()).then_some(items)
}

pub(crate) async fn create(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&key).await?;
    let once = pending.once(application.org, &[]);
    let offer = Offer { caller: &caller, asked_before: &[] };
    let new = checked::<NewEndpoint>(&api, &offer, pending.read().await?.text().parse(false)?)?;
    let uid = new.config.uid.clone();
    match api.directory(&caller).create_endpoint(application.by_id(), new, once).await {
        Ok(CreateOutcome::Created(made) | CreateOutcome::Existing(made)) => {
            Ok(json::answer(StatusCode::CREATED, &render(&api, &made)))
        }
        Err(error) => Err(api
            .refusal(&caller, error, Subject::Endpoint { app: application.id, endpoint: None }, uid)
            .await),
    }
}

pub(crate) async fn list(
    State(api): State<Api>,
    query: PageQuery<EndpointId>,
    caller: Caller,
    Ids(key): Ids<String>,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&key).await?;
    let (page, order) = query.ask(query.order.unwrap_or(Order::Descending));
    let found = application.endpoints(page, order).await?;
    Ok(query.list(found, false, |endpoint| endpoint.id).render(|endpoint| render(&api, endpoint)))
}

pub(crate) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<Response, Error> {
    let endpoint = api.ask(&caller).endpoint(&keys).await?;
    Ok(json::answer(StatusCode::OK, &render(&api, &endpoint)))
}

/// A change of an endpoint, or what makes it.
#[derive(Clone)]
enum EndpointRequest {
    Put(Parsed<EndpointUpdate>),
    Patch(Parsed<EndpointPatch>),
}

fn may_be_made(key: &str) -> Result<(), Error> {
    ids::may_be_made("ep_", key, Missing::Endpoint)
}

struct EndpointChange<'a> {
    api: &'a Api,
    caller: &'a Caller,
    app: ApplicationQuestions<'a>,
    key: String,
    once: IdempotencyDigest,
    change: EndpointRequest,
}

impl Replace for EndpointChange<'_> {
    type Current = Endpoint;
    /// With the credentials that go with it, where they change, and whether the endpoint is resumed.
    type New = (Checked, Option<Credentials>, bool);

    fn caller(&self) -> &Caller {
        self.caller
    }

    fn key(&self) -> &str {
        &self.key
    }

    async fn find(&self) -> Result<Option<Endpoint>, Error> {
        if let EndpointRequest::Patch(_) = &self.change {
            return Ok(Some(self.app.endpoint(&self.key).await?));
        }
        Ok(self.app.find_endpoint(&self.key).await?)
    }

    fn may_be_made(&self) -> Result<(), Error> {
        may_be_made(&self.key)
    }

    fn wanted(&self, current: Option<&Endpoint>) -> Result<Self::New, Error> {
        let asked_before = current.map_or(&[][..], |current| &current.config.event_types);
        let offer = Offer { caller: self.caller, asked_before };
        match (self.change.clone(), current) {
            (EndpointRequest::Put(parsed), None) => {
                let mut new = checked(self.api, &offer, parsed)?;
                new.config.uid = uid_of_put(new.config.uid, &self.key, None);
                Ok((new, None, false))
            }
            (EndpointRequest::Put(parsed), Some(current)) => {
                let disabled = parsed.value.disabled;
                let parsed = parsed.against(&whole(&current.config));
                let mut new = checked(self.api, &offer, parsed)?;
                if turns_off_again(current, disabled) {
                    new.config.disabled = current.config.disabled;
                }
                let uid = current.config.uid.as_deref();
                new.config.uid = uid_of_put(new.config.uid, &self.key, Some(uid));
                // Credentials are never shown: a client that sends back the URL it has read does not mean to drop them.
                let same = new.config.url == current.config.url && new.credentials.is_none();
                let credentials = (!same).then(|| new.credentials.clone());
                Ok((new, credentials, disabled == Some(false)))
            }
            (EndpointRequest::Patch(parsed), current) => {
                let current = current.ok_or_else(Error::server)?;
                let (resumes, has_url) = (parsed.value.disabled == Some(false), parsed.fields.gives("url"));
                let new = checked(self.api, &offer, patched(current, parsed))?;
                let credentials = has_url.then(|| new.credentials.clone());
                Ok((new, credentials, resumes))
            }
        }
    }

    async fn create(&self, (new, ..): Self::New) -> Result<Endpoint, ChangeError> {
        let directory = self.api.directory(self.caller);
        let made = directory.create_endpoint(self.app.by_id(), new, self.once).await?;
        let (CreateOutcome::Created(made) | CreateOutcome::Existing(made)) = made;
        Ok(made)
    }

    async fn update(&self, current: &Endpoint, new: Self::New) -> Result<Endpoint, ChangeError> {
        let (new, credentials, resumes) = new;
        self.api.directory(self.caller).update_endpoint(current, new, credentials, resumes).await
    }

    fn uid((new, ..): &Self::New) -> Option<String> {
        new.config.uid.clone()
    }

    fn subject(&self, current: Option<&Endpoint>) -> Subject {
        current.map_or(Subject::Endpoint { app: self.app.id, endpoint: None }, Subject::from)
    }
}

/// Changes the given fields. Pending deliveries use the new configuration from the next attempt on.
pub(crate) async fn patch(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, key)): Ids<(String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    let app = api.ask(&caller).application(&app).await?;
    let change = EndpointRequest::Patch(pending.read().await?.text().parse(true)?);
    let change = EndpointChange { api: &api, caller: &caller, app, key, once: None, change };
    let (status, changed) = replace(&api, &change).await?;
    Ok(json::answer(status, &render(&api, &changed)))
}

/// Replaces the configuration of an endpoint, or creates it. Secret and headers stay.
pub(crate) async fn put(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, key)): Ids<(String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    let app = api.ask(&caller).application(&app).await?;
    let once = pending.once(app.org, &[key.as_bytes()]);
    if app.find_endpoint(&key).await?.is_none() {
        may_be_made(&key)?;
    }
    let change = EndpointRequest::Put(pending.read().await?.text().parse(true)?);
    let change = EndpointChange { api: &api, caller: &caller, app, key, once, change };
    let (status, changed) = replace(&api, &change).await?;
    Ok(json::answer(status, &render(&api, &changed)))
}

pub(crate) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<StatusCode, Error> {
    let endpoint = api.ask(&caller).endpoint(&keys).await?;
    api.directory(&caller).delete_endpoint(&endpoint).await?;
    Ok(StatusCode::NO_CONTENT)
}
