//! `/dashboard/search`: one box for ids, uids, event ids and URLs. It leads straight to what is found.

mod texts;

use crate::api::Access;
use crate::dashboard::components::link;
use crate::dashboard::fault::Fault;
use crate::dashboard::route::{Page, PageRoute};
use crate::dashboard::shell::{Place, Shell};
use crate::dashboard::visit::Visit;
use crate::questions::{ApplicationQuestions, Error as QuestionError};
use aldaba_delivery::{AttemptId, EndpointId, MessageId};
use aldaba_store::{Order, Page as StorePage};
use askama::Template;
use texts::SearchTexts;

/// Applications in which ids are looked for, the newest first.
const MOST_SEARCHED: usize = 200;
/// Endpoints of one application whose URLs are looked at.
const MOST_ENDPOINTS: usize = 500;
const LISTED: usize = 20;
const MAX_BYTES: usize = 512;

pub(super) fn routes() -> Vec<PageRoute> {
    vec![PageRoute::page::<SearchPage>("/dashboard/search", Access::Read)]
}

#[derive(Template)]
#[template(path = "pages/search/search.html")]
struct SearchPage {
    shell: Shell,
    t: &'static dyn SearchTexts,
    wanted: String,
    found: Vec<String>,
}

impl Page for SearchPage {
    async fn load(visit: &Visit) -> Result<Self, Fault> {
        let t = <dyn SearchTexts>::of(visit.view.tongue);
        let wanted = visit.query.get("q").unwrap_or_default().trim().to_owned();
        let mut found = Vec::new();
        if !wanted.is_empty() && wanted.len() <= MAX_BYTES {
            found = search(visit, &wanted).await?;
        }
        if let [(path, _)] = &found[..] {
            return Err(Fault::Elsewhere(path.clone()));
        }
        let found = found.into_iter().map(|(path, words)| link(&path, &words)).collect();
        Ok(Self { shell: Shell::of(visit, Place::Elsewhere, t.title()), t, wanted, found })
    }
}

type Found = Vec<(String, String)>;

/// What is missing is no error here.
fn optional<T>(result: Result<T, QuestionError>) -> Result<Option<T>, Fault> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(QuestionError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn search(visit: &Visit, wanted: &str) -> Result<Found, Fault> {
    let (questions, to) = (visit.ask(), visit.to());
    if let Some(found) = optional(questions.application(wanted).await)? {
        return Ok(vec![(to.app(found.id), found.name.clone())]);
    }
    // The id of an endpoint is enough to find it.
    if let Ok(id) = wanted.parse::<EndpointId>() {
        let found = questions.endpoints_by_id([id]).await?;
        return Ok(found
            .values()
            .map(|found| (to.endpoint(found.app, id), found.config.url.clone()))
            .collect());
    }
    let apps = match visit.caller.app() {
        Some(app) => vec![questions.application(&app.to_string()).await?],
        None => {
            let page = StorePage { after: None, limit: MOST_SEARCHED };
            let listed = questions.applications(page, Order::Descending).await?;
            let mut apps = Vec::with_capacity(listed.len());
            for application in listed {
                apps.extend(optional(questions.application(&application.id.to_string()).await)?);
            }
            apps
        }
    };
    let is_url = wanted.starts_with("http://") || wanted.starts_with("https://");
    let is_id = wanted.parse::<MessageId>().is_ok() || wanted.parse::<AttemptId>().is_ok();
    let mut found = Vec::new();
    for app in &apps {
        if is_url {
            found.extend(with_url(visit, app, wanted).await?);
        } else {
            found.extend(in_application(visit, app, wanted).await?);
        }
        if found.len() >= LISTED || (is_id && !found.is_empty()) {
            break;
        }
    }
    found.truncate(LISTED);
    Ok(found)
}

/// A message by its id or event id, or an endpoint by its uid.
async fn in_application(visit: &Visit, app: &ApplicationQuestions<'_>, wanted: &str) -> Result<Found, Fault> {
    let (to, mut found) = (visit.to(), Vec::new());
    if let Some(message) = app.find_message(wanted).await? {
        found.push((to.message(app.id, message.id), format!("{} · {}", message.id, app.name)));
    }
    if let Some(endpoint) = app.find_endpoint(wanted).await? {
        found.push((to.endpoint(app.id, endpoint.id), format!("{} · {}", endpoint.config.url, app.name)));
    }
    Ok(found)
}

async fn with_url(visit: &Visit, app: &ApplicationQuestions<'_>, start: &str) -> Result<Found, Fault> {
    let page = StorePage { after: None, limit: MOST_ENDPOINTS };
    let endpoints = app.endpoints(page, Order::Descending).await?;
    let fits = endpoints.into_iter().filter(|endpoint| endpoint.config.url.starts_with(start));
    let to = visit.to();
    Ok(fits
        .map(|endpoint| (to.endpoint(app.id, endpoint.id), format!("{} · {}", endpoint.config.url, app.name)))
        .collect())
}
