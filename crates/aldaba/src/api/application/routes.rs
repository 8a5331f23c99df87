use crate::api::request::body::Pending;
use crate::api::request::ids::{self, Ids};
use crate::api::request::json;
use crate::api::request::kept::Kept;
use crate::api::request::query::Query;
use crate::api::request::replace::{Replace, replace, uid_of_put};
use crate::api::response::conflict::Subject;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::questions::{ApplicationQuestions, Missing};
use crate::token::Caller;
use aldaba_api::read::Parsed;
use aldaba_api::{
    AlertEmail, AlertEmailState, AlertEmailStateView, ApplicationPatch, ApplicationState,
    NewApplication as ApplicationBody,
};
use aldaba_delivery::{AppId, OrgId};
use aldaba_engine::{ChangeError, CreateOutcome, IdempotencyDigest, NewApplication};
use aldaba_store::{Application, ApplicationRef, Order};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

/// Applications in the document.
type ApplicationOut = aldaba_api::Application;
type ApplicationIn = ApplicationBody;

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
            .lists::<ApplicationOut>(),
        Route::post("/app", Access::Administer, create)
            .keyed()
            .named("v1.application.create", "Creates an application")
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
            .named("v1.application.update", "Replaces an application, or creates it")
            .takes::<ApplicationIn>()
            .answers::<ApplicationOut>(StatusCode::OK)
            .answers::<ApplicationOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::patch("/app/{app_id}", Access::Administer, patch)
            .named("v1.application.patch", "Changes the given fields of an application")
            .takes::<ApplicationPatch>()
            .answers::<ApplicationOut>(StatusCode::OK)
            .may_conflict(),
        Route::patch("/app/{app_id}/alert-email", Access::Administer, set_alert_email)
            .named("v1.application.patch-alert-email", "Sets the mail address for alerts of an application")
            .takes::<AlertEmail>()
            .answers::<AlertEmailState>(StatusCode::OK)
            .may_conflict(),
        Route::delete("/app/{app_id}", Access::Administer, delete)
            .named("v1.application.delete", "Deletes an application and its endpoints")
            .answers_nothing(),
    ]
}

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

pub(crate) fn render(application: &Application) -> aldaba_api::Application {
    let state = ApplicationState {
        id: application.id.to_string(),
        alert_email: application.alert_email.clone(),
        created_at: json::moment(application.created_at),
        updated_at: json::moment(application.updated_at),
    };
    aldaba_api::Application::of(whole(application), state)
}

/// An application that a body describes.
pub(crate) fn new_application(org: OrgId, body: ApplicationBody) -> NewApplication {
    let mut new =
        NewApplication { org, uid: None, name: String::new(), throttle_rate: None, metadata: String::new() };
    aldaba_api::application_fields!(keep new body);
    new
}

pub(crate) async fn create(
    State(api): State<Api>,
    query: Query,
    caller: Caller,
    pending: Pending,
) -> Result<Response, Error> {
    let org = caller.org();
    let once = pending.once(org, &[]);
    let new = new_application(org, pending.read().await?.text().parse(false)?.finish()?);
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

/// A change of an application, or what makes it.
#[derive(Clone)]
enum ApplicationRequest {
    Put(Parsed<ApplicationBody>),
    Patch(Parsed<ApplicationPatch>),
}

struct ApplicationChange<'a> {
    api: &'a Api,
    caller: &'a Caller,
    key: String,
    once: IdempotencyDigest,
    change: ApplicationRequest,
}

fn may_be_made(key: &str) -> Result<(), Error> {
    ids::may_be_made("app_", key, Missing::Application)
}

impl Replace for ApplicationChange<'_> {
    type Current = Application;
    type New = NewApplication;

    fn caller(&self) -> &Caller {
        self.caller
    }

    fn key(&self) -> &str {
        &self.key
    }

    async fn find(&self) -> Result<Option<Application>, Error> {
        let questions = self.api.ask(self.caller);
        match &self.change {
            ApplicationRequest::Put(_) => {
                let found = questions.find_application(&self.key).await?;
                Ok(found.map(ApplicationQuestions::into_application))
            }
            ApplicationRequest::Patch(_) => {
                Ok(Some(questions.application(&self.key).await?.into_application()))
            }
        }
    }

    fn may_be_made(&self) -> Result<(), Error> {
        may_be_made(self.key())
    }

    fn wanted(&self, current: Option<&Application>) -> Result<NewApplication, Error> {
        let org = self.caller.org();
        let body = match (self.change.clone(), current) {
            (ApplicationRequest::Put(parsed), current) => {
                let parsed = match current {
                    Some(current) => parsed.against(&whole(current)),
                    None => parsed,
                };
                let mut body = parsed.finish()?;
                body.uid = uid_of_put(body.uid, &self.key, current.map(|current| current.uid.as_deref()));
                body
            }
            (ApplicationRequest::Patch(parsed), current) => {
                let current = whole(current.ok_or_else(Error::server)?);
                parsed.against(&current).finish()?.over(current)
            }
        };
        Ok(new_application(org, body))
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
        Subject::Application
    }
}

/// Replaces an application, or creates it.
async fn put(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let org = caller.org();
    if api.ask(&caller).find_application(&key).await?.is_none() {
        may_be_made(&key)?;
    }
    let once = pending.once(org, &[key.as_bytes()]);
    let change = ApplicationRequest::Put(pending.read().await?.text().parse(true)?);
    let change = ApplicationChange { api: &api, caller: &caller, key, once, change };
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
    api.ask(&caller).application(&key).await?;
    let change = ApplicationRequest::Patch(received.text().parse(true)?);
    let change = ApplicationChange { api: &api, caller: &caller, key, once: None, change };
    let (status, application) = replace(&api, &change).await?;
    Ok(json::answer(status, &render(&application)))
}

/// Says that the server sends no mails, if it does not.
pub(crate) fn no_mail_note(api: &Api) -> Option<&'static str> {
    let note =
        "The address is stored, and nothing is sent to it: no mail server is configured (ALDABA_SMTP_URL)";
    (!api.engine.sends_mails()).then_some(note)
}

async fn set_alert_email(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    api.ask(&caller).application(&key).await?;
    let AlertEmail { email } = pending.read().await?.text().parse(false)?.finish()?;
    let email = email.into_option();
    let mut retry = api.engine.directory().conflict_retry();
    loop {
        let current = api.ask(&caller).application(&key).await?;
        match api.directory(&caller).set_alert_email(&current, email.clone()).await {
            Err(ChangeError::Unsettled) => retry.wait().await?,
            changed => {
                changed?;
                let note = no_mail_note(&api);
                let answer = AlertEmailStateView { email, mail_configured: note.is_none(), note };
                return Ok(json::answer(StatusCode::OK, &answer));
            }
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
