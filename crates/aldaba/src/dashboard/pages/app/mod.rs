//! `/dashboard/apps/{app}`: the endpoints of an application, the worst first, and its messages.

mod texts;

use crate::api::Access;
use crate::dashboard::components::{Pager, State, after, copyable, link, moment, name};
use crate::dashboard::fault::Fault;
use crate::dashboard::live::Block;
use crate::dashboard::pages::apps::shown_name;
use crate::dashboard::paths::with_query;
use crate::dashboard::route::{Page, PageRoute};
use crate::dashboard::shell::{Place, Shell};
use crate::dashboard::texts::{Format, StateTexts};
use crate::dashboard::visit::Visit;
use crate::questions::{ApplicationQuestions, MOST_COUNTED};
use aldaba_delivery::{EndpointId, MessageId};
use aldaba_store::{
    Application, Endpoint, ListRange, Message, MessageFilter, MessagesQuery, Order, Page as StorePage,
    Payloads, TimeRange,
};
use askama::Template;
use texts::AppTexts;

/// Endpoints that are read, to show the worst ones.
const MOST_SORTED: usize = 500;
const ENDPOINTS_LISTED: usize = 25;
const LISTED: usize = 25;
/// Messages that one page looks at.
const WALK: usize = 5000;
/// The parts of the URL: what is listed, of which type, and which message was the newest when the page was loaded.
const LIST: &str = "list";
const TYPE: &str = "type";

pub(super) fn routes() -> Vec<PageRoute> {
    vec![PageRoute::page::<AppPage>("/dashboard/apps/{app}", Access::Read)]
}

struct EndpointRow {
    state: String,
    name: String,
    types: String,
    waiting: String,
    last_error: String,
}

struct MessageRow {
    at: String,
    id: String,
    event_type: String,
    state: String,
}

#[derive(Template)]
#[template(path = "pages/app/app.html", blocks = ["endpoints", "newer"])]
struct AppPage {
    shell: Shell,
    t: &'static dyn AppTexts,
    name: String,
    id: String,
    uid: Option<String>,
    endpoints: Vec<EndpointRow>,
    /// Others that are not shown. `None`: all are.
    others: Option<String>,
    all_endpoints: String,
    /// All endpoints are listed, in place of messages.
    lists_endpoints: bool,
    messages: Vec<MessageRow>,
    event_type: String,
    /// New messages since the page was loaded.
    newer: Option<String>,
    here: String,
    new_endpoint: Option<String>,
    pager: Pager,
}

impl Page for AppPage {
    async fn load(visit: &Visit) -> Result<Self, Fault> {
        let t = <dyn AppTexts>::of(visit.view.tongue);
        let app = visit.application().await?;
        let application: &Application = &app;
        let path = visit.to().app(application.id);
        let lists_endpoints = visit.query.get(LIST) == Some("endpoints");
        let (endpoints, others, mut next) = match lists_endpoints {
            true => all_endpoints(visit, &app).await?,
            false => worst_endpoints(visit, &app).await?,
        };
        let endpoints = endpoint_rows(visit, t, &app, &endpoints).await?;
        let (mut messages, mut newer) = (Vec::new(), None);
        if !lists_endpoints {
            let found = found_messages(visit, &app).await?;
            next = found.next;
            newer = new_since(visit, t, &app).await?;
            messages = message_rows(visit, &app, &found.messages).await?;
        }
        let shell = Shell::of(visit, Place::Apps, shown_name(application).to_owned());
        Ok(Self {
            t,
            name: name(shown_name(application)),
            id: copyable(shell.t, &application.id.to_string()),
            uid: application.uid.as_deref().map(|uid| copyable(shell.t, uid)),
            endpoints,
            others,
            all_endpoints: with_query(&path, &[(LIST, "endpoints")]),
            lists_endpoints,
            messages,
            event_type: visit.query.get(TYPE).unwrap_or_default().to_owned(),
            newer,
            new_endpoint: visit.may(Access::Manage).then(|| format!("{path}/endpoints/new")),
            here: path,
            pager: Pager::of(visit, next),
            shell,
        })
    }

    fn live(&self) -> Result<Vec<Block>, askama::Error> {
        Ok(vec![Block::of("endpoints", self.as_endpoints())?, Block::of("newer", self.as_newer())?])
    }
}

type Listed = (Vec<Endpoint>, Option<String>, Option<String>);

async fn worst_endpoints(visit: &Visit, app: &ApplicationQuestions<'_>) -> Result<Listed, Fault> {
    let page = StorePage { after: None, limit: MOST_SORTED };
    let mut found = app.endpoints(page, Order::Descending).await?;
    found.sort_by_key(State::of_endpoint);
    let (all, is_whole) = (found.len(), found.len() < MOST_SORTED);
    found.truncate(ENDPOINTS_LISTED);
    let format = Format(visit.view.tongue);
    let others = (all > found.len()).then(|| match is_whole {
        true => format.count(all as u64),
        false => format!("{}+", format.count(all as u64)),
    });
    Ok((found, others, None))
}

async fn all_endpoints(visit: &Visit, app: &ApplicationQuestions<'_>) -> Result<Listed, Fault> {
    let page = StorePage { after: after::<EndpointId>(&visit.query)?, limit: LISTED + 1 };
    let mut found = app.endpoints(page, Order::Descending).await?;
    let next = Pager::cut(&mut found, LISTED, |endpoint| endpoint.id.to_string());
    Ok((found, None, next))
}

async fn endpoint_rows(
    visit: &Visit,
    t: &dyn AppTexts,
    app: &ApplicationQuestions<'_>,
    endpoints: &[Endpoint],
) -> Result<Vec<EndpointRow>, Fault> {
    let (states, format) = (<dyn StateTexts>::of(visit.view.tongue), Format(visit.view.tongue));
    let waiting = app.waiting_counts(endpoints, MOST_COUNTED + 1).await?;
    let row = |endpoint: &Endpoint| {
        let config = &endpoint.config;
        let path = visit.to().endpoint(endpoint.app, endpoint.id);
        let words = states.condition(
            endpoint.state().condition(),
            endpoint.state().health().needs_resume(),
            config.disabled,
        );
        EndpointRow {
            state: State::of_endpoint(endpoint).badge_with(&words),
            name: match &config.name {
                Some(given) => {
                    format!("{} <span class=\"muted url\">{}</span>", link(&path, given), name(&config.url))
                }
                None => format!("<span class=\"url\">{}</span>", link(&path, &config.url)),
            },
            types: match &config.event_types[..] {
                [] => t.all_types(),
                [one] => one.clone(),
                [first, rest @ ..] => format!("{first} +{}", rest.len()),
            },
            waiting: format.count_up_to(waiting.get(&endpoint.id).copied().unwrap_or(0), MOST_COUNTED),
            last_error: match &endpoint.last_error {
                Some(last) => {
                    format!(
                        "{} · {}",
                        aldaba_engine::escaped(&states.failure(last.status_code, None)),
                        moment(last.at)
                    )
                }
                None => "–".to_owned(),
            },
        }
    };
    Ok(endpoints.iter().map(row).collect())
}

struct FoundMessages {
    messages: Vec<Message>,
    next: Option<String>,
}

async fn found_messages(visit: &Visit, app: &ApplicationQuestions<'_>) -> Result<FoundMessages, Fault> {
    let page = StorePage { after: after::<MessageId>(&visit.query)?, limit: LISTED + 1 };
    let found = app.messages(query(visit, app, page, Order::Descending)).await?;
    let mut messages = found.items;
    let stopped = found.stopped.map(|id| id.to_string());
    let next = Pager::cut(&mut messages, LISTED, |message| message.id.to_string()).or(stopped);
    Ok(FoundMessages { messages, next })
}

fn query(
    visit: &Visit,
    app: &ApplicationQuestions<'_>,
    page: StorePage<MessageId>,
    order: Order,
) -> MessagesQuery {
    let event_types = visit.query.get(TYPE).map(str::to_owned).into_iter().collect();
    let filter = MessageFilter { event_types, ..MessageFilter::default() };
    let part = ListRange { within: TimeRange::default(), page, order, walk: WALK };
    MessagesQuery { app: app.id, filter, part, payloads: Payloads::Without }
}

/// The list does not move under its reader: what has come since is a link.
async fn new_since(
    visit: &Visit,
    t: &dyn AppTexts,
    app: &ApplicationQuestions<'_>,
) -> Result<Option<String>, Fault> {
    let Some(newest) = visit.query.get("newest").and_then(|newest| newest.parse().ok()) else {
        return Ok(None);
    };
    let page = StorePage { after: Some(newest), limit: LISTED + 1 };
    let found = app.messages(query(visit, app, page, Order::Ascending)).await?.items.len();
    let count = Format(visit.view.tongue).count_up_to(found as u64, LISTED);
    Ok((found > 0).then(|| t.newer(&count, found == 1)))
}

async fn message_rows(
    visit: &Visit,
    app: &ApplicationQuestions<'_>,
    messages: &[Message],
) -> Result<Vec<MessageRow>, Fault> {
    let states = <dyn StateTexts>::of(visit.view.tongue);
    let mut rows = Vec::with_capacity(messages.len());
    for message in messages {
        let deliveries = app.deliveries_of(message).await?;
        // A replay opens another round: the newest one at each endpoint counts.
        let mut newest = std::collections::BTreeMap::new();
        for delivery in &deliveries {
            newest.insert(delivery.endpoint, delivery);
        }
        let worst = newest.values().map(|delivery| State::of(delivery)).min();
        let done = newest.values().filter(|delivery| State::of(delivery) == State::Delivered).count();
        let of = if newest.len() > 1 { format!(" {done}/{}", newest.len()) } else { String::new() };
        rows.push(MessageRow {
            at: moment(message.created_at),
            id: link(&visit.to().message(message.app, message.id), &message.id.to_string()),
            event_type: message.content.event_type.to_string(),
            state: worst.map_or_else(
                || State::Skipped.badge(states),
                |state| state.badge_with(&format!("{}{of}", states.state(state))),
            ),
        });
    }
    Ok(rows)
}
