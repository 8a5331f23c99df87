//! `…/endpoints/new` and `…/endpoints/{endpoint}/edit`: the settings of an endpoint as a form.

mod texts;

use crate::api::Access;
use crate::dashboard::answer::{html, see_other};
use crate::dashboard::components::{Done, link};
use crate::dashboard::fault::Fault;
use crate::dashboard::forms::{Entered, Entry, FieldFault, FormTexts};
use crate::dashboard::pages::apps::shown_name;
use crate::dashboard::route::{Page, PageRoute};
use crate::dashboard::shell::{Place, Shell};
use crate::dashboard::visit::{Pairs, Visit};
use aldaba_engine::wire::BasicCredentials;
use aldaba_engine::{ChangeError, CreateOutcome, EndpointHeaders, NewEndpoint, Policies};
use aldaba_store::{Application, Endpoint, EndpointConfig};
use askama::Template;
use axum::response::Response;
use http::StatusCode;
use std::collections::BTreeMap;
use texts::EndpointFormTexts;

const NEW: &str = "/dashboard/apps/{app}/endpoints/new";
const EDIT: &str = "/dashboard/apps/{app}/endpoints/{endpoint}/edit";
const MAX_NAME_BYTES: usize = 256;
const MAX_RATE: u64 = u16::MAX as u64;

pub(super) fn routes() -> Vec<PageRoute> {
    vec![
        PageRoute::page::<EndpointForm>(NEW, Access::Manage),
        PageRoute::post(NEW, Access::Manage, create),
        PageRoute::page::<EndpointForm>(EDIT, Access::Manage),
        PageRoute::post(EDIT, Access::Manage, save),
    ]
}

type Faults = BTreeMap<&'static str, FieldFault>;

#[derive(Template)]
#[template(path = "pages/endpoint_form/endpoint_form.html")]
struct EndpointForm {
    shell: Shell,
    t: &'static dyn EndpointFormTexts,
    f: &'static dyn FormTexts,
    app: String,
    back: String,
    entries: Vec<Entry>,
    /// `None`: the endpoint is not there yet.
    version: Option<String>,
    is_refused: bool,
    is_stale: bool,
}

impl Page for EndpointForm {
    async fn load(visit: &Visit) -> Result<Self, Fault> {
        let app = visit.application().await?;
        let endpoint = match visit.parameter("endpoint") {
            "" => None,
            key => Some(app.endpoint(key).await?),
        };
        Ok(Self::of(visit, &app, endpoint.as_ref(), None))
    }
}

/// What was entered, and what is wrong with it.
struct Refused<'a> {
    form: &'a Pairs,
    faults: Faults,
    is_stale: bool,
}

impl EndpointForm {
    fn of(
        visit: &Visit,
        app: &Application,
        endpoint: Option<&Endpoint>,
        refused: Option<&Refused<'_>>,
    ) -> Self {
        let t = <dyn EndpointFormTexts>::of(visit.view.tongue);
        let config = endpoint.map(|endpoint| &endpoint.config);
        let policies = visit.ask().policies().into_iter().map(|policy| policy.name.to_string()).collect();
        let stored = |value: fn(&EndpointConfig) -> String| config.map(value).unwrap_or_default();
        let policy = config.map_or_else(|| Policies::DEFAULT.to_owned(), |config| config.policy.clone());
        let entries = [
            (
                Entry::new("url", t.url(), t.url_hint()).required().kind("url"),
                stored(|config| config.url.clone()),
            ),
            (
                Entry::new("name", t.name(), t.name_hint()),
                stored(|config| config.name.clone().unwrap_or_default()),
            ),
            (
                Entry::new("description", t.description(), t.description_hint()).lines(),
                stored(|config| config.description.clone()),
            ),
            (
                Entry::new("event-types", t.event_types(), t.event_types_hint()).lines(),
                stored(|config| config.event_types.join("\n")),
            ),
            (Entry::new("policy", t.policy(), t.policy_hint()).choice(policies).required(), policy),
            (
                Entry::new("rate", t.rate(), t.rate_hint()).kind("number"),
                stored(|config| config.throttle_rate.map(|rate| rate.to_string()).unwrap_or_default()),
            ),
        ];
        let entries = entries.map(|(entry, stored)| match refused {
            None => entry.value(stored),
            Some(Refused { form, faults, is_stale }) => {
                let fault = faults.get(entry.name()).copied();
                let entered = form.get(entry.name()).unwrap_or_default();
                entry.entered(entered, is_stale.then_some(stored)).fault(fault)
            }
        });
        let title = if endpoint.is_some() { t.edit() } else { t.new_endpoint() };
        Self {
            shell: Shell::of(visit, Place::Apps, title),
            t,
            f: <dyn FormTexts>::of(visit.view.tongue),
            app: link(&visit.to().app(app.id), shown_name(app)),
            back: match endpoint {
                Some(endpoint) => visit.to().endpoint(app.id, endpoint.id),
                None => visit.to().app(app.id),
            },
            entries: entries.into(),
            version: endpoint.map(version),
            is_refused: refused.is_some_and(|refused| !refused.faults.is_empty()),
            is_stale: refused.is_some_and(|refused| refused.is_stale),
        }
    }
}

/// Changes with each change of the settings.
fn version(endpoint: &Endpoint) -> String {
    endpoint.updated_at.millis().to_string()
}

/// What was entered, on top of what is stored.
fn read(visit: &Visit, form: &Pairs, before: Option<&EndpointConfig>) -> Result<NewEndpoint, Faults> {
    let mut entered = Entered::of(form);
    let url = entered.required("url", EndpointConfig::MAX_URL_BYTES);
    let target = url.and_then(|url| match visit.api.guard.parse_url(&url) {
        Ok(target) => Some(target),
        Err(_) => {
            entered.fault("url", FieldFault::NotAsExpected);
            None
        }
    });
    let name = entered.text("name", MAX_NAME_BYTES);
    if name.as_deref().is_some_and(|name| aldaba_delivery::names::line(name).is_err()) {
        entered.fault("name", FieldFault::NotAsExpected);
    }
    let description = entered.text("description", EndpointConfig::MAX_DESCRIPTION_BYTES).unwrap_or_default();
    let mut event_types = entered.lines("event-types");
    event_types.sort_unstable();
    event_types.dedup();
    let asked_before = before.map_or(&[][..], |before| &before.event_types);
    if event_types.len() > EndpointConfig::MAX_EVENT_TYPES {
        entered.fault("event-types", FieldFault::NotAsExpected);
    } else if event_types.iter().any(|name| !asked_before.contains(name) && !is_offered(visit, name)) {
        entered.fault("event-types", FieldFault::Unknown);
    }
    let policy = entered.required("policy", MAX_NAME_BYTES).unwrap_or_default();
    if !policy.is_empty() && visit.ask().policy(&policy).is_err() {
        entered.fault("policy", FieldFault::Unknown);
    }
    let rate = entered.number("rate", 1, MAX_RATE).and_then(|rate| u16::try_from(rate).ok());
    entered.finish()?;
    let Some(target) = target else { return Err(Faults::from([("url", FieldFault::Missing)])) };
    let credentials = target.credentials.map(|BasicCredentials { user, password }| (user, password));
    let config = EndpointConfig {
        url: target.url.into(),
        name,
        description,
        event_types,
        policy,
        throttle_rate: rate,
        ..before.cloned().unwrap_or_default()
    };
    Ok(NewEndpoint { config, credentials, headers: EndpointHeaders::default(), key: None })
}

/// Whether an endpoint can newly ask for an event type.
fn is_offered(visit: &Visit, name: &str) -> bool {
    visit.ask().event_type(name).is_ok_and(|found| !found.archived)
}

async fn create(visit: Visit, form: Pairs) -> Result<Response, Fault> {
    let app = visit.application().await?;
    let new = match read(&visit, &form, None) {
        Ok(new) => new,
        Err(faults) => return refused(&visit, &app, None, &Refused { form: &form, faults, is_stale: false }),
    };
    let made = visit.directory().create_endpoint(app.by_id(), new, None).await?;
    let (CreateOutcome::Created(made) | CreateOutcome::Existing(made)) = made;
    Ok(see_other(&Done::Created.at(&visit.to().endpoint(made.app, made.id))))
}

async fn save(visit: Visit, form: Pairs) -> Result<Response, Fault> {
    let app = visit.application().await?;
    let endpoint = app.endpoint(visit.parameter("endpoint")).await?;
    let is_stale = Entered::of(&form).is_stale(&version(&endpoint));
    let read = read(&visit, &form, Some(&endpoint.config));
    let (new, faults) = match read {
        Ok(new) => (Some(new), Faults::new()),
        Err(faults) => (None, faults),
    };
    let (Some(new), false) = (new, is_stale) else {
        return refused(&visit, &app, Some(&endpoint), &Refused { form: &form, faults, is_stale });
    };
    // Credentials are never shown: who sends back the URL does not mean to drop them.
    let keeps_them = new.config.url == endpoint.config.url && new.credentials.is_none();
    let credentials = (!keeps_them).then(|| new.credentials.clone());
    match visit.directory().update_endpoint(&endpoint, new, credentials, false).await {
        Ok(_) => Ok(see_other(&Done::Saved.at(&visit.to().endpoint(endpoint.app, endpoint.id)))),
        // Another change has come between.
        Err(ChangeError::Unsettled) => {
            let endpoint = app.endpoint(visit.parameter("endpoint")).await?;
            let stale = Refused { form: &form, faults: Faults::new(), is_stale: true };
            refused(&visit, &app, Some(&endpoint), &stale)
        }
        Err(error) => Err(error.into()),
    }
}

fn refused(
    visit: &Visit,
    app: &Application,
    endpoint: Option<&Endpoint>,
    refused: &Refused<'_>,
) -> Result<Response, Fault> {
    let status = if refused.is_stale { StatusCode::CONFLICT } else { StatusCode::UNPROCESSABLE_ENTITY };
    Ok(html(status, EndpointForm::of(visit, app, endpoint, Some(refused)).render()?))
}
