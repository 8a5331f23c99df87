//! `/dashboard/apps`: the applications, and how each has fared in a day. `/dashboard/apps/new` makes one.

mod new;
mod texts;

use crate::api::Access;
use crate::dashboard::charts::sparkline;
use crate::dashboard::components::{Pager, State, after, link};
use crate::dashboard::fault::Fault;
use crate::dashboard::live::Block;
use crate::dashboard::route::{Page, PageRoute};
use crate::dashboard::shell::{Place, Shell};
use crate::dashboard::texts::{Format, StateTexts};
use crate::dashboard::visit::Visit;
use crate::questions::{Error as QuestionError, Missing};
use aldaba_delivery::AppId;
use aldaba_store::{Application, AttemptCounts, Hour, Order, Page as StorePage};
use askama::Template;
use std::collections::BTreeMap;
use texts::AppsTexts;

const DAY: i64 = 24;
const LISTED: usize = 50;
/// What is counted of the dead of one application.
const MOST_DEAD: usize = 1000;

pub(super) fn routes() -> Vec<PageRoute> {
    let list = PageRoute::page::<AppsPage>("/dashboard/apps", Access::ReadOrganization);
    [list].into_iter().chain(new::routes()).collect()
}

struct ApplicationRow {
    name: String,
    key: String,
    health: String,
    day: String,
    attempts: String,
    dead: String,
    dead_path: Option<String>,
}

#[derive(Template)]
#[template(path = "pages/apps/apps.html", blocks = ["rows"])]
struct AppsPage {
    shell: Shell,
    t: &'static dyn AppsTexts,
    rows: Vec<ApplicationRow>,
    pager: Pager,
    /// What was searched for.
    wanted: String,
    may_create: bool,
}

impl Page for AppsPage {
    async fn load(visit: &Visit) -> Result<Self, Fault> {
        let t = <dyn AppsTexts>::of(visit.view.tongue);
        let wanted = visit.query.get("q").unwrap_or_default().trim().to_owned();
        let (found, next) =
            if wanted.is_empty() { listed(visit).await? } else { (named(visit, &wanted).await?, None) };
        let rows = rows(visit, t, &found).await?;
        let shell = Shell::of(visit, Place::Apps, t.title());
        let (pager, may_create) = (Pager::of(visit, next), visit.may(Access::Administer));
        Ok(Self { shell, t, rows, pager, wanted, may_create })
    }

    fn live(&self) -> Result<Vec<Block>, askama::Error> {
        Ok(vec![Block::of("rows", self.as_rows())?])
    }
}

async fn listed(visit: &Visit) -> Result<(Vec<Application>, Option<String>), Fault> {
    let page = StorePage { after: after::<AppId>(&visit.query)?, limit: LISTED + 1 };
    let mut found = visit.ask().applications(page, Order::Descending).await?;
    let next = Pager::cut(&mut found, LISTED, |application| application.id.to_string());
    Ok((found, next))
}

/// By id or uid.
async fn named(visit: &Visit, wanted: &str) -> Result<Vec<Application>, Fault> {
    match visit.ask().application(wanted).await {
        Ok(found) => Ok(vec![found.into_application()]),
        Err(QuestionError::NotFound(Missing::Application)) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

async fn rows(visit: &Visit, t: &dyn AppsTexts, found: &[Application]) -> Result<Vec<ApplicationRow>, Fault> {
    let (questions, format) = (visit.ask(), Format(visit.view.tongue));
    let states = <dyn StateTexts>::of(visit.view.tongue);
    let ids: Vec<_> = found.iter().map(|application| application.id).collect();
    let last = Hour::of(visit.now());
    let hours = questions.application_hours(ids.clone(), Hour(last.0 - DAY + 1), last).await?;
    let dead = questions.dead_counts(ids, MOST_DEAD + 1).await?;
    let mut given_up: BTreeMap<AppId, u64> = BTreeMap::new();
    for (app, _) in questions.given_up_endpoints().await? {
        *given_up.entry(app).or_default() += 1;
    }
    let row = |application: &Application| {
        let day = hours.get(&application.id).cloned().unwrap_or_default();
        let counts = |hour: i64| day.get(&Hour(hour)).copied().unwrap_or_default();
        let line: Vec<_> =
            (last.0 - DAY + 1..=last.0).map(|hour| (counts(hour).successes, counts(hour).failures)).collect();
        let mut sum = AttemptCounts::default();
        day.values().for_each(|counts| sum += *counts);
        let failed = given_up.get(&application.id).copied().unwrap_or(0);
        let dead = dead.get(&application.id).copied().unwrap_or(0);
        let path = visit.to().app(application.id);
        let all = sum.successes + sum.failures;
        ApplicationRow {
            name: link(&path, shown_name(application)),
            key: application.uid.clone().unwrap_or_else(|| application.id.to_string()),
            health: match failed {
                0 if sum.failures > 0 && sum.failures * 2 > all => State::Retrying.badge_with(&t.many_fail()),
                0 => State::Healthy.badge(states),
                1 => State::Failed.badge_with(&t.one_failed()),
                _ => State::Failed.badge_with(&t.failed(&format.count(failed))),
            },
            day: sparkline(&t.day_of(&format.count(sum.successes), &format.count(sum.failures)), &line),
            attempts: format.count(all),
            dead: format.count_up_to(dead, MOST_DEAD),
            dead_path: (dead > 0).then(|| {
                crate::dashboard::paths::with_query(
                    &visit.to().dead_letter(),
                    &[("app", &application.id.to_string())],
                )
            }),
        }
    };
    Ok(found.iter().map(row).collect())
}

/// What an application is called: its name, or its id where that is empty.
pub(super) fn shown_name(application: &Application) -> &str {
    if application.name.trim().is_empty() {
        application.uid.as_deref().unwrap_or("–")
    } else {
        &application.name
    }
}
