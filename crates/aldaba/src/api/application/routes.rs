use crate::api::request::body::Pending;
use crate::api::request::ids::{self, Ids};
use crate::api::request::json;
use crate::api::request::kept::Kept;
use crate::api::request::query::Query;
use crate::api::request::replace::{Replace, replace};
use crate::api::request::variant::Described;
use crate::api::response::conflict::Subject;
use crate::api::response::error::Problem;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::{Access, Organization};
use crate::api::routing::route::{Form, Route, example};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::read::Parsed;
use aldaba_api::{ApplicationPatch, ApplicationState, NewApplication as ApplicationBody};
use aldaba_delivery::{AppId, OrgId, names};
use aldaba_engine::{ChangeError, CreateOutcome, IdempotencyDigest, NewApplication};
use aldaba_store::{Application, ApplicationRef, Order};
use axum::extract::{FromRequestParts, State};
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use utoipa::ToSchema;

/// Applications in the document.
type ApplicationOut = Described<aldaba_api::Application>;
pub(crate) type ApplicationIn = Described<ApplicationBody>;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app", Access::ReadOrganization, list)
            .named("v1.application.list", "Lists the organization's applications")
            .ordered()
            .lists::<ApplicationOut>(),
        Route::post("/app", Access::Administer, create)
            .keyed()
            .named("v1.application.create", "Makes an application")
            .query("get_if_exists", Form::Boolean, "An application that has this uid already will do (200)")
            .takes::<ApplicationIn>()
            .answers::<ApplicationOut>(StatusCode::CREATED)
            .answers::<ApplicationOut>(StatusCode::OK)
            .may_conflict(),
        Route::get("/app/{app_id}", Access::Read, show)
            .named("v1.application.get", "Shows an application")
            .answers::<ApplicationOut>(StatusCode::OK),
        Route::put("/app/{app_id}", Access::Administer, put)
            .keyed()
            .named("v1.application.update", "Gives an application other values, or makes it")
            .takes::<ApplicationIn>()
            .answers::<ApplicationOut>(StatusCode::OK)
            .answers::<ApplicationOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::patch("/app/{app_id}", Access::Administer, patch)
            .named("v1.application.patch", "Changes the given fields of an application")
            .takes::<Described<ApplicationPatch>>()
            .answers::<ApplicationOut>(StatusCode::OK)
            .may_conflict(),
        Route::patch("/app/{app_id}/alert-email", Access::Administer, set_alert_email)
            .named(
                "v1.application.patch-alert-email",
                "Sets where the application's people are told that something is wrong",
            )
            .takes::<AlertEmailIn>()
            .answers_nothing()
            .may_conflict(),
        Route::delete("/app/{app_id}", Access::Administer, delete)
            .named("v1.application.delete", "Removes an application and its endpoints")
            .answers_nothing(),
    ]
}

#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct AlertEmailIn {
    /// Null: nobody.
    #[schema(max_length = 254)]
    email: Option<String>,
}

example!(AlertEmailIn, {"email": "people@example.com"});

/// Keeps a field as it is.
macro_rules! keep {
    ([$($doc:tt)*] stored $mode:ident $field:ident [$type:ty] $new:ident $body:ident) => {
        $new.$field = Kept::keep($body.$field);
    };
}

/// Shows a field as it is kept.
macro_rules! show {
    ([$($doc:tt)*] stored $mode:ident $field:ident [$type:ty] $application:ident $body:ident) => {
        $body.$field = Kept::show(&$application.$field);
    };
}

/// An application as a body that would make it.
fn whole(application: &Application) -> ApplicationBody {
    let mut body = ApplicationBody::default();
    aldaba_api::application_fields!(show application body);
    body
}

fn render(application: &Application) -> aldaba_api::Application {
    let state = ApplicationState {
        id: application.id.to_string(),
        alert_email: application.alert_email.clone(),
        created_at: json::moment(application.created_at),
        updated_at: json::moment(application.updated_at),
    };
    aldaba_api::Application::of(whole(application), state)
}

/// An application that a body describes.
pub(crate) fn checked(org: OrgId, parsed: Parsed<ApplicationBody>) -> Result<NewApplication, Error> {
    let body = parsed.finish()?;
    let mut new =
        NewApplication { org, uid: None, name: String::new(), throttle_rate: None, metadata: String::new() };
    aldaba_api::application_fields!(keep new body);
    Ok(new)
}

/// `get_if_exists`: an application with this uid that is there already will do.
pub(crate) struct GetIfExists(bool);

impl FromRequestParts<Api> for GetIfExists {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Error> {
        Query::of(parts).boolean("get_if_exists", false).map(Self)
    }
}

pub(crate) async fn create(
    State(api): State<Api>,
    GetIfExists(get_if_exists): GetIfExists,
    caller: Caller,
    pending: Pending,
) -> Result<Response, Error> {
    let org = caller.org();
    let once = pending.once(org, &[]);
    let new = checked(org, pending.read().await?.text().parse(false)?)?;
    let uid = new.uid.clone();
    match (api.directory(&caller).create_application(new, once).await, uid) {
        (Ok(CreateOutcome::Created(made) | CreateOutcome::Existing(made)), _) => {
            Ok(json::answer(StatusCode::CREATED, &render(&made)))
        }
        (Err(ChangeError::UidTaken), Some(uid)) if get_if_exists => {
            let there = api.application(&caller, uid).await?;
            Ok(json::answer(StatusCode::OK, &render(&there)))
        }
        (Err(error), uid) => Err(api.refusal(error, Subject::Application(org), uid).await),
    }
}

/// Filters that the API of Svix has besides. SDKs may send them unasked, as false.
const NOT_SERVED: [&str; 3] = [
    "exclude_apps_with_no_endpoints",
    "exclude_apps_with_disabled_endpoints",
    "exclude_apps_with_svix_play_endpoints",
];

pub(crate) async fn list(
    State(api): State<Api>,
    query: PageQuery<AppId>,
    Organization(org): Organization,
) -> Result<Response, Error> {
    for name in NOT_SERVED {
        if query.query.boolean(name, false)? {
            return Err(Problem::value(&["query", name], "is not available; leave it out").into());
        }
    }
    let (page, order) = query.ask(query.order.unwrap_or(Order::Ascending));
    let found = api.engine.store().applications(org, page, order).await?;
    Ok(query.list(found, false, |application| application.id).render(render))
}

pub(crate) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
) -> Result<Response, Error> {
    let application = api.application(&caller, key).await?;
    Ok(json::answer(StatusCode::OK, &render(&application)))
}

/// A change of an application, or what makes it.
enum Change {
    Put { new: NewApplication, has_uid: bool },
    Patch(Parsed<ApplicationPatch>),
}

struct ApplicationChange<'a> {
    api: &'a Api,
    caller: &'a Caller,
    which: ApplicationRef,
    once: IdempotencyDigest,
    change: Change,
}

fn may_be_made(key: &str) -> Result<(), Error> {
    ids::may_be_made("app_", key, "There is no such application; GET /api/v1/app lists them")
}

impl Replace for ApplicationChange<'_> {
    type Current = Application;
    type New = NewApplication;

    fn key(&self) -> &str {
        &self.which.key
    }

    async fn find(&self) -> Result<Option<Application>, Error> {
        match &self.change {
            Change::Put { .. } => Ok(self.api.engine.store().application(self.which.clone()).await?),
            Change::Patch(_) => self.api.application(self.caller, self.which.key.clone()).await.map(Some),
        }
    }

    fn may_be_made(&self) -> Result<(), Error> {
        may_be_made(self.key())
    }

    fn wanted(&self, current: Option<&Application>) -> Result<NewApplication, Error> {
        match (&self.change, current) {
            (Change::Put { new, .. }, None) => {
                let uid = new.uid.clone().or_else(|| Some(self.which.key.clone()));
                Ok(NewApplication { uid, ..new.clone() })
            }
            (Change::Put { new, has_uid }, Some(current)) => {
                // Whoever names it so in the path means it to keep that name, or the same request would make another
                // the next time.
                let keeps_uid = !has_uid && current.uid.as_ref() == Some(&self.which.key);
                let uid = if keeps_uid { current.uid.clone() } else { new.uid.clone() };
                Ok(NewApplication { uid, ..new.clone() })
            }
            (Change::Patch(parsed), current) => {
                let current = current.ok_or_else(Error::server)?;
                let Parsed { value, fields } = parsed.clone();
                checked(current.org, Parsed { value: value.over(whole(current)), fields })
            }
        }
    }

    async fn create(&self, new: NewApplication) -> Result<Application, ChangeError> {
        let made = self.api.directory(self.caller).create_application(new, self.once).await?;
        let (CreateOutcome::Created(made) | CreateOutcome::Existing(made)) = made;
        Ok(made)
    }

    async fn update(&self, current: &Application, new: NewApplication) -> Result<Application, ChangeError> {
        self.api.directory(self.caller).update_application(current, new).await
    }

    fn uid(new: &NewApplication) -> Option<String> {
        new.uid.clone()
    }

    fn subject(&self, _current: Option<&Application>) -> Subject {
        Subject::Application(self.which.org)
    }
}

/// Puts other values in the place of those there are, or makes the application.
async fn put(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let org = caller.org();
    let which = ApplicationRef { org, key };
    if api.engine.store().application(which.clone()).await?.is_none() {
        may_be_made(&which.key)?;
    }
    let once = pending.once(org, &[which.key.as_bytes()]);
    let parsed: Parsed<ApplicationBody> = pending.read().await?.text().parse(true)?;
    let has_uid = parsed.fields.gives("uid");
    let change = Change::Put { new: checked(org, parsed)?, has_uid };
    let change = ApplicationChange { api: &api, caller: &caller, which, once, change };
    let (status, application) = replace(&api, &change).await?;
    Ok(json::answer(status, &render(&application)))
}

async fn patch(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let received = pending.read().await?;
    // An unknown application comes before a bad body.
    api.application(&caller, key.clone()).await?;
    let which = ApplicationRef { org: caller.org(), key };
    let change = Change::Patch(received.text().parse(true)?);
    let change = ApplicationChange { api: &api, caller: &caller, which, once: None, change };
    let (status, application) = replace(&api, &change).await?;
    Ok(json::answer(status, &render(&application)))
}

async fn set_alert_email(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<StatusCode, Error> {
    api.application(&caller, key.clone()).await?;
    let mut fields = pending.read().await?.text().fields()?;
    fields.refuse_others(&["email"]);
    let email = fields.string("email");
    let email = fields.checked("email", email, |email| names::email(email));
    fields.finish()?;
    let mut retry = api.engine.directory().conflict_retry();
    loop {
        let current = api.application(&caller, key.clone()).await?;
        match api.directory(&caller).set_alert_email(&current, email.clone()).await {
            Err(ChangeError::Unsettled) => retry.wait().await?,
            changed => return changed.map(|_| StatusCode::NO_CONTENT).map_err(Into::into),
        }
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
