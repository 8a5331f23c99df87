use crate::api::request::body::Pending;
use crate::api::request::bounded_json;
use crate::api::request::ids::{self, Ids};
use crate::api::request::json::{self, Fields};
use crate::api::request::query::Query;
use crate::api::request::variant::Variant;
use crate::api::response::conflict::Subject;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route, example};
use crate::api::{Api, Error};
use crate::questions::Missing;
use crate::token::Caller;
use aldaba_delivery::{AppId, OrgId, Timestamp, names};
use aldaba_engine::{ChangeError, CreateOutcome, NewApplication};
use aldaba_store::{Application, ApplicationRef, Order};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Filters of Svix that SDKs may send as false.
const NOT_SERVED: Form =
    Form::OnlyFalse("is not available, because the list has all applications; leave it out");
const NOT_SERVED_ABOUT: &str = "Accepted as false: the list has all applications";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app", Access::ReadOrganization, list)
            .named("v1.application.list", "Lists the organization's applications")
            .ordered()
            .query("exclude_apps_with_no_endpoints", NOT_SERVED, NOT_SERVED_ABOUT)
            .query("exclude_apps_with_disabled_endpoints", NOT_SERVED, NOT_SERVED_ABOUT)
            .query("exclude_apps_with_svix_play_endpoints", NOT_SERVED, NOT_SERVED_ABOUT)
            .lists::<ApplicationOut<'_>>(),
        Route::post("/app", Access::Administer, create)
            .keyed()
            .named("v1.application.create", "Creates an application")
            .query("get_if_exists", Form::Boolean, "An application that has this uid already will do (200)")
            .takes::<ApplicationIn>()
            .answers::<ApplicationOut<'_>>(StatusCode::CREATED)
            .answers::<ApplicationOut<'_>>(StatusCode::OK)
            .may_conflict(),
        Route::get("/app/{app_id}", Access::Read, show)
            .named("v1.application.get", "Shows an application")
            .answers::<ApplicationOut<'_>>(StatusCode::OK),
        Route::put("/app/{app_id}", Access::Administer, put)
            .keyed()
            .named("v1.application.update", "Replaces an application, or creates it")
            .takes::<ApplicationIn>()
            .answers::<ApplicationOut<'_>>(StatusCode::OK)
            .answers::<ApplicationOut<'_>>(StatusCode::CREATED)
            .may_conflict(),
        Route::patch("/app/{app_id}", Access::Administer, patch)
            .named("v1.application.patch", "Changes the given fields of an application")
            .takes::<ApplicationPatch>()
            .answers::<ApplicationOut<'_>>(StatusCode::OK)
            .may_conflict(),
        Route::patch("/app/{app_id}/alert-email", Access::Administer, set_alert_email)
            .named("v1.application.patch-alert-email", "Sets the mail address for alerts of an application")
            .takes::<AlertEmailIn>()
            .answers_nothing()
            .may_conflict(),
        Route::delete("/app/{app_id}", Access::Administer, delete)
            .named("v1.application.delete", "Deletes an application and its endpoints")
            .answers_nothing(),
    ]
}

/// An application: a customer of yours.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
pub(crate) struct ApplicationIn {
    #[schema(min_length = 1, max_length = 4096)]
    name: String,
    /// Your own name for it.
    #[schema(min_length = 1, max_length = 256, pattern = "^(?!app_)[a-zA-Z0-9\\-_.]+$")]
    uid: Option<String>,
    /// Requests a second at most, to all of its endpoints together.
    #[schema(minimum = 1)]
    throttle_rate: Option<u16>,
    metadata: Option<std::collections::BTreeMap<String, String>>,
}

example!(ApplicationIn, {"name": "My first customer", "throttleRate": 100, "metadata": {"plan": "basic"}});

#[derive(ToSchema)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct AlertEmailIn {
    /// Null: nobody.
    #[schema(max_length = 254)]
    email: Option<String>,
}

example!(AlertEmailIn, {"email": "people@example.com"});

struct ApplicationPatch;

impl ToSchema for ApplicationPatch {}

impl PartialSchema for ApplicationPatch {
    fn schema() -> RefOr<Schema> {
        Variant::of::<ApplicationIn>("Fields of an application that change; null clears one.")
            .optional("name")
            .into()
    }
}

example!(ApplicationPatch, {"name": "My first customer, renamed"});

const MAX_ADDRESS_BYTES: usize = 254;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ApplicationOut<'a> {
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    id: AppId,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_limit: Option<u16>,
    throttle_rate: Option<u16>,
    /// Where its people are told that something is wrong; absent where nobody is.
    #[serde(skip_serializing_if = "Option::is_none")]
    alert_email: Option<&'a str>,
    #[schema(value_type = Object)]
    metadata: &'a RawValue,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

fn render(application: &Application) -> ApplicationOut<'_> {
    ApplicationOut {
        id: application.id,
        uid: application.uid.as_deref(),
        name: &application.name,
        rate_limit: application.throttle_rate,
        throttle_rate: application.throttle_rate,
        alert_email: application.alert_email.as_deref(),
        metadata: json::raw(&application.metadata),
        created_at: application.created_at,
        updated_at: application.updated_at,
    }
}

const FIELDS: &[&str] = &["name", "uid", "throttleRate", "rateLimit", "metadata"];
/// Fields that responses add. A client may send back everything that it has read.
const READ_ONLY_FIELDS: [&str; 4] = ["id", "alertEmail", "createdAt", "updatedAt"];

/// Reads an application to create.
pub(crate) fn read(org: OrgId, body: &[u8]) -> Result<NewApplication, Error> {
    read_fields(org, Fields::parse(body)?)
}

/// Reads an application that may exist.
fn read_change(org: OrgId, body: &[u8]) -> Result<NewApplication, Error> {
    let mut fields = Fields::parse(body)?;
    fields.forget(&READ_ONLY_FIELDS);
    read_fields(org, fields)
}

fn read_fields(org: OrgId, mut fields: Fields) -> Result<NewApplication, Error> {
    fields.refuse_others(FIELDS);
    let name = fields.required_string("name");
    let name = fields.checked("name", name, |name| match name {
        name if name.is_empty() => Err("must have at least one character".into()),
        name => names::text(name, Application::MAX_NAME_BYTES),
    });
    let uid = fields.string("uid");
    let uid = fields.checked("uid", uid, |uid| ids::uid(uid, "app_"));
    let metadata = fields.metadata();
    let (throttle_rate, rate_limit) = (fields.count("throttleRate"), fields.count("rateLimit"));
    let throttle_rate = throttle_rate.or(rate_limit);
    fields.finish()?;
    Ok(NewApplication { org, uid, name: name.unwrap_or_default(), throttle_rate, metadata })
}

pub(crate) async fn create(
    State(api): State<Api>,
    query: Query,
    caller: Caller,
    pending: Pending,
) -> Result<Response, Error> {
    let org = caller.org();
    let once = pending.once(org, &[]);
    let new = read(org, &pending.read().await?.bytes)?;
    let uid = new.uid.clone();
    match (api.directory(&caller).create_application(new, once).await, uid) {
        (Ok(CreateOutcome::Created(made) | CreateOutcome::Existing(made)), _) => {
            Ok(json::answer(StatusCode::CREATED, &render(&made)))
        }
        (Err(ChangeError::UidTaken), Some(uid)) if query.boolean("get_if_exists", false) => {
            let existing = api.ask(&caller).application(&uid).await?;
            Ok(json::answer(StatusCode::OK, &render(&existing)))
        }
        (Err(error), uid) => Err(api.refusal(&caller, error, Subject::Application, uid).await),
    }
}

pub(crate) async fn list(
    State(api): State<Api>,
    query: PageQuery<AppId>,
    caller: Caller,
) -> Result<Response, Error> {
    let (page, order) = query.ask(query.order.unwrap_or(Order::Ascending));
    let found = api.ask(&caller).applications(page, order).await?;
    Ok(query.list(found, false, |application| application.id).render(render))
}

pub(crate) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&key).await?;
    Ok(json::answer(StatusCode::OK, &render(&application)))
}

/// Replaces an application, or creates it.
async fn put(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let (org, questions) = (caller.org(), api.ask(&caller));
    let may_be_made = || ids::may_be_made("app_", &key, Missing::Application);
    if questions.find_application(&key).await?.is_none() {
        may_be_made()?;
    }
    let (once, body) = (pending.once(org, &[key.as_bytes()]), pending.read().await?);
    let mut new = read_change(org, &body.bytes)?;
    // The name in the path stays the application's uid: otherwise the same request would create another one next
    // time.
    let names_none = bounded_json::fields(&body.bytes).is_ok_and(|fields| !fields.contains_key("uid"));
    let mut retry = api.engine.directory().conflict_retry();
    loop {
        let Some(current) = questions.find_application(&key).await? else {
            // Checked after each read: another request may just have deleted it.
            may_be_made()?;
            let uid = new.uid.clone().or_else(|| Some(key.clone()));
            let is_named_so = uid.as_ref() == Some(&key);
            let asked = NewApplication { uid: uid.clone(), ..new.clone() };
            match api.directory(&caller).create_application(asked, once).await {
                // Another request has just created it: this one changes it.
                Err(ChangeError::UidTaken) if is_named_so => retry.wait().await?,
                Err(error) => return Err(api.refusal(&caller, error, Subject::Application, uid).await),
                Ok(CreateOutcome::Created(made) | CreateOutcome::Existing(made)) => {
                    return Ok(json::answer(StatusCode::CREATED, &render(&made)));
                }
            }
            continue;
        };
        if names_none && current.uid.as_ref() == Some(&key) {
            new.uid.clone_from(&current.uid);
        }
        match api.directory(&caller).update_application(&current, new.clone()).await {
            Err(ChangeError::Unsettled) => retry.wait().await?,
            Err(error) => return Err(api.refusal(&caller, error, Subject::Application, new.uid).await),
            Ok(changed) => return Ok(json::answer(StatusCode::OK, &render(&changed))),
        }
    }
}

async fn patch(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let body = pending.read().await?;
    let mut retry = api.engine.directory().conflict_retry();
    loop {
        let current = api.ask(&caller).application(&key).await?;
        let given: Map<String, Value> = bounded_json::body(&body.bytes)?;
        let metadata: &RawValue = json::raw(&current.metadata);
        let mut merged = json!({
            "uid": current.uid,
            "name": current.name,
            "throttleRate": current.throttle_rate,
            "metadata": metadata,
        });
        for (name, value) in given {
            if name == "rateLimit" {
                merged["throttleRate"] = Value::Null;
            }
            merged[name] = value;
        }
        let new = read_change(current.org, merged.to_string().as_bytes())?;
        let uid = new.uid.clone();
        match api.directory(&caller).update_application(&current, new).await {
            Err(ChangeError::Unsettled) => retry.wait().await?,
            Err(error) => return Err(api.refusal(&caller, error, Subject::Application, uid).await),
            Ok(changed) => return Ok(json::answer(StatusCode::OK, &render(&changed))),
        }
    }
}

async fn set_alert_email(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<StatusCode, Error> {
    api.ask(&caller).application(&key).await?;
    let mut fields = Fields::parse(&pending.read().await?.bytes)?;
    let email = fields.string("email");
    let email = fields.checked("email", email, |email| is_address(email));
    fields.finish()?;
    let mut retry = api.engine.directory().conflict_retry();
    loop {
        let current = api.ask(&caller).application(&key).await?;
        match api.directory(&caller).set_alert_email(&current, email.clone()).await {
            Err(ChangeError::Unsettled) => retry.wait().await?,
            changed => return changed.map(|_| StatusCode::NO_CONTENT).map_err(Into::into),
        }
    }
}

/// Refuses texts that are no address. Whether mail arrives there is for a mail server to say.
fn is_address(text: &str) -> Result<(), String> {
    let plain = |part: &str| !part.is_empty() && !part.chars().any(|c| c.is_whitespace() || c.is_control());
    let bracket = text.contains(['<', '>', ',', ';', '"', '\\']);
    match text.rsplit_once('@') {
        _ if text.len() > MAX_ADDRESS_BYTES => Err(format!("may be {MAX_ADDRESS_BYTES} bytes long at most")),
        Some((name, host)) if plain(name) && plain(host) && !bracket && !name.contains('@') => Ok(()),
        _ => Err("must be one plain mail address, such as people@example.com".into()),
    }
}

pub(crate) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
) -> Result<StatusCode, Error> {
    let org = caller.org();
    api.directory(&caller).delete_application(ApplicationRef { org, key }).await?;
    Ok(StatusCode::NO_CONTENT)
}
