//! Makes an application.

use super::texts::AppsTexts;
use crate::api::Access;
use crate::dashboard::answer::{html, see_other};
use crate::dashboard::components::Done;
use crate::dashboard::fault::Fault;
use crate::dashboard::forms::{Entered, Entry, FieldFault, FormTexts};
use crate::dashboard::route::{Page, PageRoute};
use crate::dashboard::shell::{Place, Shell};
use crate::dashboard::visit::{Pairs, Visit};
use aldaba_engine::{ChangeError, CreateOutcome, NewApplication};
use aldaba_store::Application;
use askama::Template;
use axum::response::Response;
use http::StatusCode;
use std::collections::BTreeMap;

const PATH: &str = "/dashboard/apps/new";
/// As names of things may be, in the API.
const MAX_UID_BYTES: usize = 256;

pub(super) fn routes() -> Vec<PageRoute> {
    vec![
        PageRoute::page::<NewApplicationPage>(PATH, Access::Administer),
        PageRoute::post(PATH, Access::Administer, create),
    ]
}

#[derive(Template)]
#[template(path = "pages/apps/new.html")]
struct NewApplicationPage {
    shell: Shell,
    t: &'static dyn AppsTexts,
    f: &'static dyn FormTexts,
    entries: [Entry; 2],
    is_refused: bool,
}

impl Page for NewApplicationPage {
    async fn load(visit: &Visit) -> Result<Self, Fault> {
        Ok(Self::of(visit, &Pairs::default(), &BTreeMap::new()))
    }
}

impl NewApplicationPage {
    fn of(visit: &Visit, form: &Pairs, faults: &BTreeMap<&'static str, FieldFault>) -> Self {
        let t = <dyn AppsTexts>::of(visit.view.tongue);
        let f = <dyn FormTexts>::of(visit.view.tongue);
        let entries = [
            Entry::new("name", t.name(), t.name_hint()).required(),
            Entry::new("uid", t.uid(), t.uid_hint()),
        ];
        let entries = entries.map(|entry| {
            let (name, entered) = (entry.name(), form.get(entry.name()).unwrap_or_default());
            entry.value(entered).fault(faults.get(name).copied())
        });
        let shell = Shell::of(visit, Place::Apps, t.create());
        Self { shell, t, f, entries, is_refused: !faults.is_empty() }
    }
}

async fn create(visit: Visit, form: Pairs) -> Result<Response, Fault> {
    let mut entered = Entered::of(&form);
    let name = entered.required("name", Application::MAX_NAME_BYTES).unwrap_or_default();
    let uid = entered.text("uid", MAX_UID_BYTES);
    if uid.as_ref().is_some_and(|uid| aldaba_delivery::names::uid(uid, "app_").is_err()) {
        entered.fault("uid", FieldFault::NotAsExpected);
    }
    if let Err(faults) = entered.finish() {
        return refused(&visit, &form, &faults);
    }
    let new =
        NewApplication { org: visit.caller.org(), uid, name, throttle_rate: None, metadata: "{}".to_owned() };
    match visit.directory().create_application(new, None).await {
        Ok(CreateOutcome::Created(made) | CreateOutcome::Existing(made)) => {
            Ok(see_other(&Done::Created.at(&visit.to().app(made.id))))
        }
        Err(ChangeError::UidTaken) => refused(&visit, &form, &BTreeMap::from([("uid", FieldFault::Taken)])),
        Err(error) => Err(error.into()),
    }
}

fn refused(
    visit: &Visit,
    form: &Pairs,
    faults: &BTreeMap<&'static str, FieldFault>,
) -> Result<Response, Fault> {
    let page = NewApplicationPage::of(visit, form, faults);
    Ok(html(StatusCode::UNPROCESSABLE_ENTITY, page.render()?))
}
