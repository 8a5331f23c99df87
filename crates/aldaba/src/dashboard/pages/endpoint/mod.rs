//! `/dashboard/apps/{app}/endpoints/{endpoint}`: how an endpoint is, what it answered, and what a person can do about it.

mod actions;
mod charts;
mod texts;

use crate::api::Access;
use crate::dashboard::components::{Pager, State, after, copyable, link, moment, name};
use crate::dashboard::fault::Fault;
use crate::dashboard::live::Block;
use crate::dashboard::pages::apps::shown_name;
use crate::dashboard::route::{Page, PageRoute};
use crate::dashboard::shell::{Place, Shell};
use crate::dashboard::texts::{Format, StateTexts};
use crate::dashboard::visit::Visit;
use crate::questions::{ApplicationQuestions, AttemptFields, AttemptSelection, AttemptsOf, MOST_COUNTED};
use aldaba_delivery::AttemptId;
use aldaba_store::{
    Attempt, Endpoint, HealthChange, HealthChangeNumber, Hour, ListRange, Order, Page as StorePage, TimeRange,
};
use askama::Template;
use texts::EndpointTexts;

/// Failures in a row from which the page warns.
const WARNED_FROM: u32 = 3;
const LISTED: usize = 25;
const CHANGES_LISTED: usize = 5;
const DAY: i64 = 24;
/// Attempts that one page looks at.
const WALK: usize = 5000;
/// The part of the URL that says which attempts are listed.
const SHOW: &str = "show";

pub(super) fn routes() -> Vec<PageRoute> {
    let page = PageRoute::page::<EndpointPage>("/dashboard/apps/{app}/endpoints/{endpoint}", Access::Read);
    [page].into_iter().chain(actions::routes()).collect()
}

struct AttemptRow {
    at: String,
    message: String,
    result: String,
    duration: String,
    trigger: String,
}

struct Change {
    at: String,
    words: String,
}

/// A button that posts.
struct Button {
    path: String,
    label: String,
    is_primary: bool,
}

#[derive(Template)]
#[template(path = "pages/endpoint/endpoint.html", blocks = ["state", "charts"])]
struct EndpointPage {
    shell: Shell,
    t: &'static dyn EndpointTexts,
    app: String,
    title: String,
    url: String,
    id: String,
    uid: Option<String>,
    state: State,
    condition: String,
    since: Option<String>,
    last_error: Option<String>,
    next_probe: Option<String>,
    quiet_until: Option<String>,
    waiting: String,
    /// The banner after failures in a row.
    warning: Option<String>,
    buttons: Vec<Button>,
    edit: Option<String>,
    dead_letter: String,
    charts: [String; 2],
    facts: Vec<(String, String)>,
    schedule: String,
    changes: Vec<Change>,
    attempts: Vec<AttemptRow>,
    only_failures: bool,
    all_attempts: String,
    failed_attempts: String,
    pager: Pager,
}

impl Page for EndpointPage {
    async fn load(visit: &Visit) -> Result<Self, Fault> {
        let t = <dyn EndpointTexts>::of(visit.view.tongue);
        let (states, format) = (<dyn StateTexts>::of(visit.view.tongue), Format(visit.view.tongue));
        let app = visit.application().await?;
        let endpoint = app.endpoint(visit.parameter("endpoint")).await?;
        let shell = Shell::of(visit, Place::Apps, title(&endpoint).to_owned());
        let here = visit.to().endpoint(endpoint.app, endpoint.id);
        let (config, state) = (&endpoint.config, endpoint.state());
        let health = state.health();
        let waiting = app.waiting_counts(std::slice::from_ref(&endpoint), MOST_COUNTED + 1).await?;
        let waiting = waiting.get(&endpoint.id).copied().unwrap_or(0);
        let last = Hour::of(visit.now());
        let hours = app.endpoint_hours(&endpoint, Hour(last.0 - DAY + 1), last).await?;
        let only_failures = visit.query.get(SHOW) == Some("failures");
        let (attempts, next) = attempts(visit, &app, &endpoint, only_failures).await?;
        let failures = health.failure_count;
        Ok(Self {
            t,
            app: link(&visit.to().app(endpoint.app), shown_name(&app)),
            title: name(title(&endpoint)),
            url: copyable(shell.t, &config.url),
            id: copyable(shell.t, &endpoint.id.to_string()),
            uid: config.uid.as_deref().map(|uid| copyable(shell.t, uid)),
            state: State::of_endpoint(&endpoint),
            condition: states.condition(state.condition(), health.needs_resume(), config.disabled),
            since: health.changed_at.or(health.failing_since).map(moment),
            last_error: last_error(visit, &app, &endpoint, states).await?,
            next_probe: health.next_probe_at.filter(|_| !config.disabled).map(moment),
            quiet_until: health.quiet_until.filter(|until| *until > visit.now()).map(moment),
            waiting: format.count_up_to(waiting, MOST_COUNTED),
            warning: (failures >= WARNED_FROM && !state.holds())
                .then(|| t.warning(&format.count(u64::from(failures)))),
            buttons: buttons(visit, t, &endpoint, &here),
            edit: visit.may(Access::Manage).then(|| format!("{here}/edit")),
            dead_letter: visit.to().dead_letter_at(endpoint.app, endpoint.id),
            charts: charts::of(visit, t, &hours),
            facts: facts(visit, t, &endpoint),
            schedule: charts::schedule_of(visit, t, &visit.ask().policy_of(&endpoint)),
            changes: changes(&app, &endpoint, states).await?,
            attempts,
            only_failures,
            failed_attempts: format!("{here}?{SHOW}=failures"),
            all_attempts: here,
            pager: Pager::of(visit, next),
            shell,
        })
    }

    fn live(&self) -> Result<Vec<Block>, askama::Error> {
        Ok(vec![Block::of("state", self.as_state())?, Block::of("charts", self.as_charts())?])
    }
}

fn title(endpoint: &Endpoint) -> &str {
    endpoint.config.name.as_deref().unwrap_or(&endpoint.config.url)
}

/// The newest failure with its kind, which the endpoint itself does not keep.
async fn last_error(
    visit: &Visit,
    app: &ApplicationQuestions<'_>,
    endpoint: &Endpoint,
    states: &dyn StateTexts,
) -> Result<Option<String>, Fault> {
    let Some(last) = &endpoint.last_error else { return Ok(None) };
    let part = ListRange {
        within: TimeRange::default(),
        page: StorePage { after: None, limit: 1 },
        order: Order::Descending,
        walk: WALK,
    };
    let selection = AttemptSelection { success: Some(false), ..AttemptSelection::default() };
    let fields = AttemptFields { responses: false, messages: false };
    let found = app.attempts(AttemptsOf::Endpoint(endpoint), selection, part, fields).await?;
    let kind = found.list.items.first().and_then(|attempt| attempt.failure);
    let path = found.list.items.first().map(|attempt| visit.to().message(endpoint.app, attempt.message));
    let words = states.failure(last.status_code, kind);
    let words = match path {
        Some(path) => {
            format!("<a href=\"{}\">{}</a>", aldaba_engine::escaped(&path), aldaba_engine::escaped(&words))
        }
        None => aldaba_engine::escaped(&words),
    };
    Ok(Some(format!("{words} · {}", moment(last.at))))
}

fn buttons(visit: &Visit, t: &dyn EndpointTexts, endpoint: &Endpoint, here: &str) -> Vec<Button> {
    if !visit.may(Access::Manage) {
        return Vec::new();
    }
    let button =
        |action: &str, label, is_primary| Button { path: format!("{here}/{action}"), label, is_primary };
    if endpoint.config.disabled {
        return vec![button("enable", t.turn_on(), true)];
    }
    let mut buttons = Vec::new();
    if endpoint.state().holds() {
        buttons.push(button("resume", t.resume(), true));
        buttons.push(button("resume-and-recover", t.resume_and_recover(), false));
    }
    buttons.push(button("disable", t.turn_off(), false));
    buttons
}

fn facts(visit: &Visit, t: &dyn EndpointTexts, endpoint: &Endpoint) -> Vec<(String, String)> {
    let (config, format) = (&endpoint.config, Format(visit.view.tongue));
    let list = |items: &[String]| match items.is_empty() {
        true => aldaba_engine::escaped(&t.all()),
        false => {
            items.iter().map(|item| format!("<code>{}</code>", name(item))).collect::<Vec<_>>().join(" ")
        }
    };
    let code = |text: &str| format!("<code>{}</code>", name(text));
    let mut facts = vec![
        (t.event_types(), list(&config.event_types)),
        (t.channels(), list(&config.channels)),
        (t.policy(), code(&config.policy)),
    ];
    facts.extend(config.profile.as_deref().map(|profile| (t.profile(), code(profile))));
    facts.extend(
        config.throttle_rate.map(|rate| (t.rate(), aldaba_engine::escaped(&t.a_second(&format.count(rate))))),
    );
    facts.extend(config.filter.as_ref().map(|filter| (t.filter(), code(filter.as_str()))));
    facts.extend((!config.description.is_empty()).then(|| (t.description(), name(&config.description))));
    facts.push((t.created(), moment(endpoint.created_at)));
    facts
}

async fn changes(
    app: &ApplicationQuestions<'_>,
    endpoint: &Endpoint,
    states: &dyn StateTexts,
) -> Result<Vec<Change>, Fault> {
    let page: StorePage<HealthChangeNumber> = StorePage { after: None, limit: CHANGES_LISTED };
    let found = app.health_changes(endpoint, page, Order::Descending).await?;
    let word = |change: &HealthChange| {
        use aldaba_delivery::Condition;
        let of = |condition| match condition {
            Condition::Active => State::Healthy,
            Condition::Degraded => State::Retrying,
            Condition::Failed | Condition::Blocked => State::Failed,
            Condition::Disabled => State::Off,
        };
        let became = of(change.became).badge(states);
        let cause = aldaba_engine::escaped(&states.condition_cause(change.cause));
        Change { at: moment(change.at), words: format!("{became} {cause}") }
    };
    Ok(found.iter().map(word).collect())
}

async fn attempts(
    visit: &Visit,
    app: &ApplicationQuestions<'_>,
    endpoint: &Endpoint,
    only_failures: bool,
) -> Result<(Vec<AttemptRow>, Option<String>), Fault> {
    let (states, format) = (<dyn StateTexts>::of(visit.view.tongue), Format(visit.view.tongue));
    let page = StorePage { after: after::<AttemptId>(&visit.query)?, limit: LISTED + 1 };
    let part = ListRange { within: TimeRange::default(), page, order: Order::Descending, walk: WALK };
    let selection =
        AttemptSelection { success: only_failures.then_some(false), ..AttemptSelection::default() };
    let fields = AttemptFields { responses: false, messages: true };
    let found = app.attempts(AttemptsOf::Endpoint(endpoint), selection, part, fields).await?;
    let (messages, stopped) = (found.messages, found.list.stopped.map(|id| id.to_string()));
    let mut items = found.list.items;
    let next = Pager::cut(&mut items, LISTED, |attempt| attempt.id.to_string()).or(stopped);
    let row = |attempt: &Attempt| {
        let path = visit.to().message(endpoint.app, attempt.message);
        let event_type = messages.get(&attempt.message).map(|message| message.content.event_type.to_string());
        AttemptRow {
            at: moment(attempt.started_at),
            message: link(&path, event_type.as_deref().unwrap_or(&attempt.message.to_string())),
            result: result(states, attempt),
            duration: format.duration(attempt.duration),
            trigger: states.trigger(attempt.trigger),
        }
    };
    Ok((items.iter().map(row).collect(), next))
}

/// What came of an attempt, as a badge.
pub(in crate::dashboard::pages) fn result(states: &dyn StateTexts, attempt: &Attempt) -> String {
    match (attempt.success, attempt.status_code) {
        (true, Some(code)) => State::Delivered.badge_with(&format!("HTTP {code}")),
        (true, None) => State::Delivered.badge(states),
        (false, code) => State::Failed.badge_with(&states.failure(code, attempt.failure)),
    }
}
