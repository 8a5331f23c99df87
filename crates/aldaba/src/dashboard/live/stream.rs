//! One stream of server-sent events.

use super::Block;
use super::streams::StreamPermit;
use crate::dashboard::fault::Fault;
use crate::dashboard::paths::is_own;
use crate::dashboard::route::{self, Found};
use crate::dashboard::session::Session;
use crate::dashboard::visit::{Pairs, Visit};
use aldaba_store::CommitWatcher;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::CONTENT_TYPE;
use http::{HeaderName, Method};
use serde::Serialize;
use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Sleep;

/// Pages of one browser that are open at the same time.
const MAX_PAGES: usize = 16;
/// Between two renderings.
const INTERVAL: Duration = Duration::from_secs(1);
/// What only memory knows, such as a hold that is over, commits nothing.
const MAX_INTERVAL: Duration = Duration::from_secs(10);
/// A stream ends after this time, and the browser makes the next one.
const LIFETIME: Duration = Duration::from_secs(5 * 60);
/// What the browser waits before it connects again, in milliseconds.
const RETRY: u32 = 2000;

struct Live {
    pages: Vec<(String, Visit, &'static route::PageRoute)>,
    session: Session,
    commits: CommitWatcher,
    permit: StreamPermit,
    end: Pin<Box<Sleep>>,
    /// Of what was sent.
    sent: HashMap<(usize, &'static str), u64>,
    begun: bool,
}

#[derive(Serialize)]
struct Update<'a> {
    page: &'a str,
    block: &'a str,
    html: &'a str,
}

/// `page`: the paths of the pages, with their query strings.
pub(super) async fn open(visit: Visit) -> Result<Response, Fault> {
    let mut pages = Vec::new();
    let paths: Vec<String> = visit.query.all("page").map(str::to_owned).collect();
    for path in paths.into_iter().filter(|path| is_own(path)).take(MAX_PAGES) {
        let (there, query) = path.split_once('?').unwrap_or((&path, ""));
        let Found::Route(route, parameters) = route::find(&Method::GET, there) else { continue };
        // What a page would refuse is not read here either.
        if visit.caller.may(route.access).is_err() {
            continue;
        }
        let (there, query) = (there.to_owned(), Pairs::read(query.as_bytes()));
        pages.push((path, Visit { path: there, query, parameters, ..visit.clone() }, route));
    }
    let session = Session::read(&visit.api, &visit.headers).map_err(|_| Fault::Forbidden)?;
    let permit = visit.api.dashboard.streams.admit(visit.caller.app()).ok_or(Fault::Busy)?;
    // Before anything is read: what is committed from now on is heard of.
    let commits = visit.api.engine.statistics().watch(visit.caller.org());
    let end = Box::pin(tokio::time::sleep(LIFETIME));
    let live = Live { pages, session, commits, permit, end, sent: HashMap::new(), begun: false };
    let events = stream::unfold(live, async |mut live| {
        let event = live.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(event)), live))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        // A proxy in front passes each event on at once.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(events)).into_response())
}

impl Live {
    /// `None`: it ends here.
    async fn next(&mut self) -> Option<String> {
        if !self.begun {
            self.begun = true;
            let updates = self.render().await?;
            return Some(format!("retry: {RETRY}\n\n{updates}"));
        }
        tokio::select! {
            biased;
            () = self.permit.stopped() => return None,
            () = self.end.as_mut() => return None,
            () = changed(&mut self.commits) => {}
        }
        let updates = self.render().await?;
        // A comment tells whether anybody still listens.
        Some(if updates.is_empty() { ":\n\n".to_owned() } else { updates })
    }

    /// What has changed, as events. The token is checked each time: a person whose key was revoked sees nothing more.
    async fn render(&mut self) -> Option<String> {
        if !self.session.is_valid(&self.pages.first()?.1.api) {
            return None;
        }
        let mut events = String::new();
        for (index, (path, visit, route)) in self.pages.iter().enumerate() {
            // A page that cannot be read now is read again soon.
            let Ok(blocks) = route.update(visit.clone()).await else { continue };
            for Block { name, html } in blocks {
                let mut hasher = DefaultHasher::new();
                html.hash(&mut hasher);
                let hash = hasher.finish();
                if self.sent.insert((index, name), hash) == Some(hash) {
                    continue;
                }
                let update = Update { page: path, block: name, html: &html };
                let json = serde_json::to_string(&update).unwrap_or_default();
                events.push_str(&format!("data: {json}\n\n"));
            }
        }
        Some(events)
    }
}

/// After a commit, but not at once: what is committed meanwhile comes with it.
async fn changed(commits: &mut CommitWatcher) {
    let concerned = tokio::time::timeout(MAX_INTERVAL, commits.changed());
    let _ = tokio::join!(tokio::time::sleep(INTERVAL), concerned);
}
