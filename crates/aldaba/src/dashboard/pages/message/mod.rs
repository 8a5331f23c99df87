//! `/dashboard/apps/{app}/messages/{message}`: where a message stands at each endpoint, and what it carries.

mod payload;
mod resend;
mod texts;

use crate::api::Access;
use crate::dashboard::charts::{AttemptMark, attempt_timeline};
use crate::dashboard::components::{State, copyable, link, moment, moment_opt, name};
use crate::dashboard::fault::Fault;
use crate::dashboard::live::Block;
use crate::dashboard::pages::apps::shown_name;
use crate::dashboard::pages::endpoint::result;
use crate::dashboard::route::{Page, PageRoute};
use crate::dashboard::shell::{Place, Shell};
use crate::dashboard::texts::{CauseTexts, Format, StateTexts};
use crate::dashboard::visit::Visit;
use crate::questions::{ApplicationQuestions, AttemptFields, AttemptSelection, AttemptsOf, Destination};
use aldaba_delivery::{EndpointId, Timestamp};
use aldaba_store::{Attempt, ListRange, Message, Order, Page as StorePage};
use askama::Template;
use payload::PayloadView;
use std::collections::BTreeMap;
use texts::MessageTexts;

/// Endpoints of one message that are shown; the others are counted.
const ENDPOINTS_LISTED: usize = 50;
/// Attempts that are read for all of them, the newest first.
const ATTEMPTS_READ: usize = 500;
/// Attempts that are listed at one endpoint.
const ATTEMPTS_LISTED: usize = 50;

pub(super) fn routes() -> Vec<PageRoute> {
    let page = PageRoute::page::<MessagePage>("/dashboard/apps/{app}/messages/{message}", Access::Read);
    [page].into_iter().chain(resend::routes()).chain(payload::routes()).collect()
}

struct AttemptRow {
    at: String,
    result: String,
    duration: String,
    trigger: String,
    /// The beginning of what came back.
    response: String,
}

struct DestinationRow {
    key: String,
    endpoint: String,
    state: String,
    cause: String,
    next_attempt: Option<String>,
    timeline: String,
    attempts: Vec<AttemptRow>,
    /// Where a form sends it again. `None`: the caller may not, or it cannot be.
    resend: Option<String>,
    curl: Option<String>,
}

#[derive(Template)]
#[template(path = "pages/message/message.html", blocks = ["destinations"])]
struct MessagePage {
    shell: Shell,
    t: &'static dyn MessageTexts,
    app: String,
    id: String,
    event_id: Option<String>,
    facts: Vec<(String, String)>,
    destinations: Vec<DestinationRow>,
    more: Option<String>,
    payload: PayloadView,
}

impl Page for MessagePage {
    async fn load(visit: &Visit) -> Result<Self, Fault> {
        let t = <dyn MessageTexts>::of(visit.view.tongue);
        let app = visit.application().await?;
        let message = app.message(visit.parameter("message")).await?;
        let page = StorePage { after: None, limit: ENDPOINTS_LISTED + 1 };
        let mut found = app.destinations(&message, &page, Order::Ascending, false).await?;
        let more = (found.len() > ENDPOINTS_LISTED).then(|| t.more_endpoints());
        found.truncate(ENDPOINTS_LISTED);
        let attempts = attempts(&app, &message).await?;
        let mut destinations = Vec::with_capacity(found.len());
        for destination in &found {
            let made = attempts.get(&destination.endpoint.id).map_or(&[][..], Vec::as_slice);
            destinations.push(row(visit, t, &message, destination, made).await?);
        }
        let shell = Shell::of(visit, Place::Apps, message.id.to_string());
        Ok(Self {
            t,
            app: link(&visit.to().app(message.app), shown_name(&app)),
            id: copyable(shell.t, &message.id.to_string()),
            event_id: message.content.event_id.as_deref().map(|id| copyable(shell.t, id)),
            facts: facts(t, &message),
            destinations,
            more,
            payload: PayloadView::of(visit, &message),
            shell,
        })
    }

    fn live(&self) -> Result<Vec<Block>, askama::Error> {
        Ok(vec![Block::of("destinations", self.as_destinations())?])
    }
}

/// The newest attempts at each endpoint, oldest first.
async fn attempts(
    app: &ApplicationQuestions<'_>,
    message: &Message,
) -> Result<BTreeMap<EndpointId, Vec<Attempt>>, Fault> {
    let part = ListRange::page(StorePage { after: None, limit: ATTEMPTS_READ }, Order::Descending);
    let fields = AttemptFields { responses: true, messages: false };
    let of = AttemptsOf::Message(message, None);
    let found = app.attempts(of, AttemptSelection::default(), part, fields).await?;
    let mut attempts: BTreeMap<EndpointId, Vec<Attempt>> = BTreeMap::new();
    for attempt in found.list.items.into_iter().rev() {
        attempts.entry(attempt.endpoint).or_default().push(attempt);
    }
    Ok(attempts)
}

async fn row(
    visit: &Visit,
    t: &dyn MessageTexts,
    message: &Message,
    destination: &Destination,
    attempts: &[Attempt],
) -> Result<DestinationRow, Fault> {
    let states = <dyn StateTexts>::of(visit.view.tongue);
    let endpoint = &destination.endpoint;
    let status = destination.delivery.as_ref().map(|view| &view.status);
    let state = status.map_or(State::Skipped, |status| State::explained(status, &destination.why));
    let to = visit.to().endpoint(endpoint.app, endpoint.id);
    let shown = endpoint.config.name.as_deref().unwrap_or(&endpoint.config.url);
    let begun = status.map_or(message.created_at, |_| message.created_at);
    let may_resend = visit.may(Access::Attempt) && !endpoint.deleted && !message.expunged;
    Ok(DestinationRow {
        key: endpoint.id.to_string(),
        endpoint: match endpoint.deleted {
            true => name(shown),
            false => link(&to, shown),
        },
        state: state.badge(states),
        cause: <dyn CauseTexts>::of(visit.view.tongue).cause(&destination.why.cause),
        next_attempt: destination.why.next_attempt.map(moment),
        timeline: timeline(visit, t, attempts, begun, destination.why.next_attempt),
        attempts: attempts
            .iter()
            .rev()
            .take(ATTEMPTS_LISTED)
            .map(|attempt| attempt_row(visit, attempt))
            .collect(),
        resend: may_resend.then(|| {
            format!("{}/endpoints/{}/resend", visit.to().message(message.app, message.id), endpoint.id)
        }),
        curl: resend::curl_of(visit, message, endpoint, attempts.last()).await?,
    })
}

fn attempt_row(visit: &Visit, attempt: &Attempt) -> AttemptRow {
    let states = <dyn StateTexts>::of(visit.view.tongue);
    AttemptRow {
        at: moment(attempt.started_at),
        result: result(states, attempt),
        duration: Format(visit.view.tongue).duration(attempt.duration),
        trigger: states.trigger(attempt.trigger),
        response: payload::beginning(&attempt.response),
    }
}

fn timeline(
    visit: &Visit,
    t: &dyn MessageTexts,
    attempts: &[Attempt],
    begun: Timestamp,
    next: Option<Timestamp>,
) -> String {
    let (states, format) = (<dyn StateTexts>::of(visit.view.tongue), Format(visit.view.tongue));
    let mark = |(index, attempt): (usize, &Attempt)| {
        let words = match attempt.status_code {
            Some(code) => format!("HTTP {code}"),
            None => states.failure(None, attempt.failure),
        };
        let after = attempt.started_at.since(begun);
        let words = format!("{} {}: {words} (+{})", t.attempt(), index + 1, format.duration(after));
        AttemptMark { after, success: Some(attempt.success), words }
    };
    let planned = next.map(|next| AttemptMark {
        after: next.since(begun),
        success: None,
        words: t.planned(&format.duration(next.since(begun))),
    });
    let marks: Vec<_> = attempts.iter().enumerate().map(mark).chain(planned).collect();
    match marks.is_empty() {
        true => String::new(),
        false => attempt_timeline(&t.timeline(), &marks),
    }
}

fn facts(t: &dyn MessageTexts, message: &Message) -> Vec<(String, String)> {
    let list = |items: &[String]| -> String {
        items.iter().map(|item| format!("<code>{}</code>", name(item))).collect::<Vec<_>>().join(" ")
    };
    let mut facts = vec![
        (t.event_type(), format!("<code>{}</code>", name(&message.content.event_type))),
        (t.accepted(), moment(message.created_at)),
    ];
    facts.extend(message.deliver_at.map(|at| (t.deliver_at(), moment_opt(Some(at)))));
    facts.extend((!message.channels.is_empty()).then(|| (t.channels(), list(&message.channels))));
    facts.extend((!message.tags.is_empty()).then(|| (t.tags(), list(&message.tags))));
    facts
}
