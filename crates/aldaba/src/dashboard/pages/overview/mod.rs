//! `/dashboard`: what needs a person, and what happened in a day.

mod texts;

use crate::api::Access;
use crate::dashboard::charts::{Bar, Series, stacked_bars};
use crate::dashboard::components::{State, link, moment};
use crate::dashboard::fault::Fault;
use crate::dashboard::live::Block;
use crate::dashboard::route::{Page, PageRoute};
use crate::dashboard::shell::{Place, Shell};
use crate::dashboard::texts::{Format, StateTexts};
use crate::dashboard::visit::Visit;
use crate::questions::{DeliveryQuestions, MOST_COUNTED, Questions};
use aldaba_engine::Scope;
use aldaba_store::{
    Alert, AlertsQuery, CountKind, Hour, ListRange, Order, OrganizationCounts, Page as StorePage,
};
use askama::Template;
use std::time::Duration;
use texts::OverviewTexts;

const WINDOW: Duration = Duration::from_secs(3600);
const DAY: i64 = 24;
/// What is listed of each thing; the rest is behind a link.
const LISTED: usize = 10;

pub(super) fn routes() -> Vec<PageRoute> {
    vec![PageRoute::page::<OverviewPage>("/dashboard", Access::Read)]
}

/// Something that needs a person.
struct Attention {
    state: State,
    /// HTML.
    title: String,
    since: Option<String>,
    what_to_do: String,
}

struct Figure {
    label: String,
    value: String,
    /// What it is of.
    about: String,
    state: Option<State>,
}

#[derive(Template)]
#[template(path = "pages/overview/overview.html", blocks = ["attention", "figures", "day"])]
struct OverviewPage {
    shell: Shell,
    t: &'static dyn OverviewTexts,
    attention: Vec<Attention>,
    figures: Vec<Figure>,
    chart: String,
    /// There is nothing at all yet.
    is_new: bool,
}

impl Page for OverviewPage {
    async fn load(visit: &Visit) -> Result<Self, Fault> {
        let t = <dyn OverviewTexts>::of(visit.view.tongue);
        let shell = Shell::of(visit, Place::Overview, t.title());
        // A key for one application sees that alone.
        if let Some(app) = visit.caller.app() {
            return Err(Fault::Elsewhere(visit.to().app(app)));
        }
        let (attention, figures) = (attention(visit, t).await?, figures(visit, t));
        let hour = Hour::of(visit.now());
        let hours = visit.ask().organization_hours(Hour(hour.0 - DAY + 1), hour).await?;
        let is_new = hours.is_empty() && attention.is_empty() && has_no_application(visit.ask()).await?;
        Ok(Self { shell, t, attention, figures, chart: chart(visit, t, &hours), is_new })
    }

    fn live(&self) -> Result<Vec<Block>, askama::Error> {
        Ok(vec![
            Block::of("attention", self.as_attention())?,
            Block::of("figures", self.as_figures())?,
            Block::of("day", self.as_day())?,
        ])
    }
}

async fn has_no_application(questions: Questions<'_>) -> Result<bool, Fault> {
    Ok(questions.applications(StorePage { after: None, limit: 1 }, Order::Ascending).await?.is_empty())
}

/// Alerts first, then endpoints that are given up without one, then the dead letter.
async fn attention(visit: &Visit, t: &dyn OverviewTexts) -> Result<Vec<Attention>, Fault> {
    let (questions, format) = (visit.ask(), Format(visit.view.tongue));
    let part = ListRange::page(StorePage { after: None, limit: 100 }, Order::Descending);
    let query = AlertsQuery { org: visit.caller.org(), app: None, rule: None, firing: Some(true), part };
    let alerts = questions.alerts(query).await?.items;
    let given_up = questions.given_up_endpoints().await?;
    let of_alerts = alerts.iter().filter_map(|alert| alert.endpoint);
    let ids = of_alerts.chain(given_up.iter().take(100).map(|(_, endpoint)| *endpoint));
    let endpoints = questions.endpoints_by_id(ids).await?;
    let words = <dyn StateTexts>::of(visit.view.tongue);
    let mut found = Vec::new();
    for alert in alerts.iter().filter(|alert| alert.endpoint.is_none()).take(LISTED) {
        found.push(of_alert(visit, alert));
    }
    let mut failing: Vec<_> = endpoints.values().filter(|endpoint| !endpoint.deleted).collect();
    failing.sort_by_key(|endpoint| (State::of_endpoint(endpoint), endpoint.id));
    for endpoint in failing.iter().take(LISTED) {
        let state = endpoint.state();
        let health = state.health();
        let path = visit.to().endpoint(endpoint.app, endpoint.id);
        let name = endpoint.config.name.as_deref().unwrap_or(&endpoint.config.url);
        let condition = words.condition(state.condition(), health.needs_resume(), endpoint.config.disabled);
        found.push(Attention {
            state: State::of_endpoint(endpoint),
            title: format!("{} <span>{}</span>", link(&path, name), aldaba_engine::escaped(&condition)),
            since: health.failing_since.or(health.changed_at).map(moment),
            what_to_do: t.endpoint_to_do(health.needs_resume()),
        });
    }
    let more = failing.len().max(given_up.len()).saturating_sub(LISTED);
    if more > 0 {
        let title =
            link(&visit.to().apps(), &t.more_endpoints(&format.count_up_to(more as u64, MOST_COUNTED)));
        found.push(Attention { state: State::Failed, title, since: None, what_to_do: String::new() });
    }
    let dead = DeliveryQuestions::DeadLetter(questions).dead_letter_groups().await?;
    // What a person has ended needs no other person.
    let counted: u64 =
        dead.groups.iter().filter(|group| !group.reason.is_manual()).map(|group| group.deliveries).sum();
    if counted > 0 {
        let count = format.count_up_to(if dead.more { u64::MAX } else { counted }, MOST_COUNTED);
        found.push(Attention {
            state: State::Dead,
            title: link(&visit.to().dead_letter(), &t.dead(&count, counted == 1)),
            since: None,
            what_to_do: t.dead_to_do(),
        });
    }
    Ok(found)
}

fn of_alert(visit: &Visit, alert: &Alert) -> Attention {
    let texts = alert.rule.texts(visit.view.tongue.language());
    let shared = |text: &str| visit.view.tongue.shared(text);
    let rules = visit.api.engine.alert_settings().rules;
    let limits = rules.limits(alert.rule);
    let value = limits.map(|limits| format!(" ({})", texts.value(Some(alert.value), &limits)));
    let title = format!("{}{}", shared(texts.title()), shared(&value.unwrap_or_default()));
    Attention {
        state: State::Failed,
        title: aldaba_engine::escaped(&title),
        since: Some(moment(alert.fired_at)),
        what_to_do: shared(texts.what_to_do()),
    }
}

fn figures(visit: &Visit, t: &dyn OverviewTexts) -> Vec<Figure> {
    let (statistics, format) = (visit.api.engine.statistics(), Format(visit.view.tongue));
    let scope = Scope::Organization(visit.caller.org());
    let window = statistics.window(scope, WINDOW);
    let none = || "–".to_owned();
    let success = window.success_rate();
    let waited = visit.ask().oldest_wait();
    let deferred = statistics.deferred(scope);
    let figure = |label, value, about, state| Figure { label, value, about, state };
    vec![
        figure(
            t.success_rate(),
            success.map_or_else(none, |share| format.percent(share)),
            t.in_the_last_hour(&format.count(window.settled())),
            success.map(|share| if share < 0.95 { State::Failed } else { State::Delivered }),
        ),
        figure(
            t.latency(),
            window.latency_p95().map_or_else(none, |time| format.duration(time)),
            t.latency_about(),
            None,
        ),
        figure(
            t.queue_age(),
            waited.map_or_else(none, |time| format.duration(Duration::from_secs(time.as_secs()))),
            t.waiting(&format.count(statistics.waiting(scope))),
            None,
        ),
        figure(
            t.held(),
            deferred.map_or_else(none, |count| format.count(count)),
            t.held_about(),
            deferred.filter(|count| *count > 0).map(|_| State::Held),
        ),
    ]
}

/// A bar for each hour: what was delivered, what had to be tried again, what died.
fn chart(visit: &Visit, t: &dyn OverviewTexts, hours: &[(Hour, OrganizationCounts)]) -> String {
    let (format, last) = (Format(visit.view.tongue), Hour::of(visit.now()));
    let series = [
        Series { class: "delivered", label: t.delivered() },
        Series { class: "retrying", label: t.tried_again() },
        Series { class: "failed", label: t.died() },
    ];
    let bars: Vec<_> = (last.0 - DAY + 1..=last.0)
        .map(|hour| {
            let counts = hours.iter().find(|(found, _)| found.0 == hour).map(|(_, counts)| counts);
            let counts = counts.map_or([0; 3], |counts| {
                [counts.get(CountKind::Delivered), counts.get(CountKind::Retry), counts.all_dead()]
            });
            Bar { label: format!("{:02}:00", hour.rem_euclid(24)), counts: counts.into() }
        })
        .collect();
    let shell = <dyn crate::dashboard::texts::ShellTexts>::of(visit.view.tongue);
    stacked_bars(&t.day(), (&shell.as_table(), &shell.hour()), &series, &bars, |count| format.count(count))
}
