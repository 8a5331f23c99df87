//! `/dashboard/dead-letter`: what has ended without success, by reason and endpoint, and what a person can do about it.

mod actions;
mod texts;

use crate::api::Access;
use crate::dashboard::components::{AFTER, Pager, State, link, moment_opt};
use crate::dashboard::fault::Fault;
use crate::dashboard::live::Block;
use crate::dashboard::paths::with_query;
use crate::dashboard::route::{Page, PageRoute};
use crate::dashboard::shell::{Place, Shell};
use crate::dashboard::texts::{CauseTexts, Format, StateTexts};
use crate::dashboard::visit::{Pairs, Visit};
use crate::questions::{
    Cursor, DeliveryQuestions, DeliverySelection, ExplainedDelivery, MOST_COUNTED, Questions,
};
use aldaba_delivery::Reason;
use aldaba_store::{DeliveryFilter, Endpoint, Order, Phase};
use askama::Template;
use std::collections::BTreeMap;
use texts::DeadLetterTexts;

const PATH: &str = "/dashboard/dead-letter";
const LISTED: usize = 25;
/// Groups that are shown, the largest first.
const GROUPS_LISTED: usize = 20;

pub(super) fn routes() -> Vec<PageRoute> {
    let page = PageRoute::page::<DeadLetterPage>(PATH, Access::Read);
    [page].into_iter().chain(actions::routes()).collect()
}

struct Group {
    path: String,
    endpoint: String,
    reason: String,
    count: String,
}

struct DeadRow {
    endpoint: String,
    message: String,
    event_type: String,
    cause: String,
    ended: String,
    /// For the forms of one delivery.
    id: String,
    app: String,
    retry: Option<String>,
}

/// What is listed, by the URL.
pub(super) struct Selected {
    pub(super) app: Option<String>,
    pub(super) endpoint: Option<String>,
    pub(super) reason: Option<Reason>,
}

#[derive(Template)]
#[template(path = "pages/dead_letter/dead_letter.html", blocks = ["groups"])]
struct DeadLetterPage {
    shell: Shell,
    t: &'static dyn DeadLetterTexts,
    total: String,
    is_empty: bool,
    groups: Vec<Group>,
    rows: Vec<DeadRow>,
    selected: Selected,
    reasons: Vec<(&'static str, String, bool)>,
    may_manage: bool,
    may_retry: bool,
    /// All of the selection can be sent again or discarded: it is of one endpoint.
    is_of_one_endpoint: bool,
    pager: Pager,
}

impl Page for DeadLetterPage {
    async fn load(visit: &Visit) -> Result<Self, Fault> {
        let t = <dyn DeadLetterTexts>::of(visit.view.tongue);
        let (states, format) = (<dyn StateTexts>::of(visit.view.tongue), Format(visit.view.tongue));
        let selected = Selected::read(&visit.query)?;
        let questions = selected.questions(visit).await?;
        let counted = questions.dead_letter_groups().await?;
        let all: u64 = counted.groups.iter().map(|group| group.deliveries).sum();
        let mut largest = counted.groups;
        largest.sort_by_key(|group| std::cmp::Reverse(group.deliveries));
        largest.truncate(GROUPS_LISTED);
        let (found, next) = listed(visit, &questions, &selected).await?;
        let ids = largest.iter().map(|group| group.endpoint);
        let ids = ids.chain(found.iter().map(|delivery| delivery.view.status.endpoint));
        let endpoints = visit.ask().endpoints_by_id(ids).await?;
        let groups = largest.iter().map(|group| Group {
            path: with_query(
                PATH,
                &[
                    ("app", &group.app.to_string()),
                    ("endpoint", &group.endpoint.to_string()),
                    ("reason", group.reason.name()),
                ],
            ),
            endpoint: shown(endpoints.get(&group.endpoint)),
            reason: states.reason(group.reason),
            count: format.count(group.deliveries),
        });
        let (may_manage, may_retry) = (visit.may(Access::Manage), visit.may(Access::Attempt));
        let rows = found.iter().map(|delivery| row(visit, &endpoints, delivery)).collect();
        let reasons =
            Reason::ALL.map(|reason| (reason.name(), states.reason(reason), selected.reason == Some(reason)));
        Ok(Self {
            shell: Shell::of(visit, Place::DeadLetter, t.title()),
            t,
            total: format.count_up_to(if counted.more { u64::MAX } else { all }, MOST_COUNTED),
            is_empty: all == 0,
            groups: groups.collect(),
            rows,
            is_of_one_endpoint: selected.app.is_some() && selected.endpoint.is_some(),
            selected,
            reasons: reasons.into(),
            may_manage,
            may_retry,
            pager: Pager::of(visit, next),
        })
    }

    fn live(&self) -> Result<Vec<Block>, askama::Error> {
        Ok(vec![Block::of("groups", self.as_groups())?])
    }
}

impl Selected {
    pub(super) fn read(pairs: &Pairs) -> Result<Self, Fault> {
        let reason = match pairs.get("reason") {
            None => None,
            Some(given) => Some(
                Reason::named(given)
                    .ok_or_else(|| Fault::Unreadable { name: "reason", given: given.to_owned() })?,
            ),
        };
        let text = |name| pairs.get(name).map(str::to_owned);
        Ok(Self { app: text("app"), endpoint: text("endpoint"), reason })
    }

    pub(super) fn app(&self) -> &str {
        self.app.as_deref().unwrap_or_default()
    }

    pub(super) fn endpoint(&self) -> &str {
        self.endpoint.as_deref().unwrap_or_default()
    }

    pub(super) fn reason(&self) -> &'static str {
        self.reason.map_or("", Reason::name)
    }

    /// The dead letter of the application, else of the organization. A caller for one application has that of its own.
    async fn questions<'a>(&self, visit: &'a Visit) -> Result<DeliveryQuestions<'a>, Fault> {
        let questions: Questions<'a> = visit.ask();
        let own = visit.caller.app().map(|app| app.to_string());
        match self.app.as_ref().or(own.as_ref()) {
            Some(app) => Ok(DeliveryQuestions::Application(questions.application(app).await?)),
            None => Ok(DeliveryQuestions::DeadLetter(questions)),
        }
    }

    pub(super) async fn filter(&self, questions: &DeliveryQuestions<'_>) -> Result<DeliveryFilter, Fault> {
        let endpoint = match &self.endpoint {
            Some(key) => Some(questions.endpoint_id(key).await?),
            None => None,
        };
        Ok(DeliveryFilter { endpoint, reason: self.reason, ..DeliveryFilter::default() })
    }

    /// For a form that leads back here.
    pub(super) fn query(&self) -> String {
        self.path().split_once('?').map(|(_, query)| query.to_owned()).unwrap_or_default()
    }

    /// The page that lists it.
    pub(super) fn path(&self) -> String {
        with_query(PATH, &[("app", self.app()), ("endpoint", self.endpoint()), ("reason", self.reason())])
    }
}

async fn listed(
    visit: &Visit,
    questions: &DeliveryQuestions<'_>,
    selected: &Selected,
) -> Result<(Vec<ExplainedDelivery>, Option<String>), Fault> {
    let unreadable = |given: &str| Fault::Unreadable { name: AFTER, given: given.to_owned() };
    let ids = &visit.api.delivery_ids;
    let from = match visit.query.get(AFTER) {
        None => None,
        Some(given) => {
            let cursor: Cursor = given.parse().map_err(|_| unreadable(given))?;
            let position = ids.position(cursor);
            Some(position)
                .filter(|position| questions.has(Phase::Dead, *position))
                .ok_or_else(|| unreadable(given))?
                .into()
        }
    };
    let filter = selected.filter(questions).await?;
    let selection =
        DeliverySelection { phase: Phase::Dead, filter, from, order: Order::Descending, limit: LISTED };
    let page = questions.deliveries(selection).await?;
    let is_full = page.found.len() == LISTED;
    let last = page.found.last().map(|(position, _)| *position).filter(|_| is_full);
    let next = page.stopped.or(last).map(|position| ids.cursor(position).to_string());
    let views = page.found.into_iter().map(|(_, view)| view).collect();
    Ok((questions.explain(views).await?, next))
}

fn row(
    visit: &Visit,
    endpoints: &BTreeMap<aldaba_delivery::EndpointId, Endpoint>,
    delivery: &ExplainedDelivery,
) -> DeadRow {
    let (view, status) = (&delivery.view, &delivery.view.status);
    let endpoint = endpoints.get(&status.endpoint);
    let message = visit.to().message(view.app, status.message);
    let can_retry = endpoint.is_some_and(|endpoint| !endpoint.deleted);
    DeadRow {
        endpoint: match endpoint {
            Some(found) if !found.deleted => {
                link(&visit.to().endpoint(found.app, found.id), &shown(endpoint))
            }
            _ => crate::dashboard::components::name(&shown(endpoint)),
        },
        message: link(&message, &status.message.to_string()),
        event_type: view.event_type.clone().unwrap_or_default(),
        cause: <dyn CauseTexts>::of(visit.view.tongue).cause(&delivery.why.cause),
        ended: moment_opt(status.state.settled_at()),
        id: visit.api.delivery_ids.id(status.seq).to_string(),
        app: view.app.to_string(),
        retry: can_retry.then(|| format!("{message}/endpoints/{}/resend", status.endpoint)),
    }
}

fn shown(endpoint: Option<&Endpoint>) -> String {
    let Some(endpoint) = endpoint else { return "–".to_owned() };
    endpoint.config.name.clone().unwrap_or_else(|| endpoint.config.url.clone())
}
