//! Sends dead deliveries again, or discards them.

use super::Selected;
use super::texts::DeadLetterTexts;
use crate::actions::{Discarding, discard_many, discard_one};
use crate::api::{Access, DEFAULT_REPLAY_RATE};
use crate::dashboard::answer::{html, see_other};
use crate::dashboard::components::Done;
use crate::dashboard::fault::{Fault, RefusedAction};
use crate::dashboard::route::PageRoute;
use crate::dashboard::shell::{Place, Shell};
use crate::dashboard::texts::Format;
use crate::dashboard::visit::{Pairs, Visit};
use crate::questions::DeliveryQuestions;
use aldaba_delivery::Timestamp;
use aldaba_engine::{MAX_REPLAYED_DELIVERIES, NewReplay};
use aldaba_store::{Endpoint, Phase, ReplayFilter, ReplayKind};
use askama::Template;
use axum::response::Response;
use http::StatusCode;

pub(super) fn routes() -> Vec<PageRoute> {
    vec![
        PageRoute::post("/dashboard/dead-letter/discard", Access::Manage, discard),
        PageRoute::post("/dashboard/dead-letter/discard-all", Access::Manage, discard_all),
        PageRoute::post("/dashboard/dead-letter/replay", Access::Attempt, replay),
    ]
}

/// One delivery, by its public id.
async fn discard(visit: Visit, form: Pairs) -> Result<Response, Fault> {
    let selected = Selected::read(&Pairs::read(form.get("selection").unwrap_or_default().as_bytes()))?;
    let app = visit.ask().application(form.get("app").unwrap_or_default()).await?;
    let id = form.get("delivery").unwrap_or_default();
    let seq = visit.api.delivery_ids.read(id)?;
    match discard_one(&visit.api, &visit.caller, &app, (id, seq)).await? {
        Discarding::Discarded => Ok(see_other(&Done::Discarded.counted(&selected.path(), 1))),
        Discarding::Cancelled => Ok(see_other(&Done::Cancelled.at(&selected.path()))),
        Discarding::InFlight => Err(Fault::Refused(RefusedAction::InFlight)),
        Discarding::NothingToDo => Err(Fault::Refused(RefusedAction::NothingToDo)),
    }
}

/// What is selected, as much of it as one request may. The page shows what is left.
async fn discard_all(visit: Visit, form: Pairs) -> Result<Response, Fault> {
    let selected = Selected::read(&form)?;
    let app = visit.ask().application(selected.app()).await?;
    let questions = DeliveryQuestions::Application(app.clone());
    let filter = selected.filter(&questions).await?;
    let done = discard_many(&visit.api, &visit.caller, app, (Phase::Dead, filter), None).await?;
    Ok(see_other(&Done::Discarded.counted(&selected.path(), done.discarded as u64)))
}

/// How many a replay would send, before anything is sent.
#[derive(Template)]
#[template(path = "pages/dead_letter/replay.html")]
struct ReplayPage {
    shell: Shell,
    t: &'static dyn DeadLetterTexts,
    selected: Selected,
    back: String,
    count: String,
    is_none: bool,
    until: i64,
}

/// All dead deliveries of one endpoint that have ended until the page was shown: what ends later is not among them.
async fn replay(visit: Visit, form: Pairs) -> Result<Response, Fault> {
    let selected = Selected::read(&form)?;
    let app = visit.ask().application(selected.app()).await?;
    let endpoint = app.endpoint(selected.endpoint()).await?;
    let now = visit.now();
    let until = form.get("until").and_then(|until| until.parse().ok()).map(Timestamp::from_millis);
    let new = new_replay(&endpoint, until.unwrap_or(now).min(now));
    let replays = visit.api.engine.replays();
    let counted = replays.count(new.clone()).await?;
    if form.get("confirmed").is_some() && until.is_some() {
        replays.start(visit.caller.actor(), new, None).await?;
        return Ok(see_other(&Done::ReplayStarted.counted(&selected.path(), counted.count)));
    }
    let t = <dyn DeadLetterTexts>::of(visit.view.tongue);
    let count = if counted.at_least { MAX_REPLAYED_DELIVERIES + 1 } else { counted.count };
    let page = ReplayPage {
        shell: Shell::of(&visit, Place::DeadLetter, t.replay_title()),
        t,
        back: selected.path(),
        selected,
        count: Format(visit.view.tongue).count_up_to(count, MAX_REPLAYED_DELIVERIES as usize),
        is_none: counted.count == 0,
        until: now.millis(),
    };
    Ok(html(StatusCode::OK, page.render()?))
}

fn new_replay(endpoint: &Endpoint, until: Timestamp) -> NewReplay {
    let filter =
        ReplayFilter { since: Timestamp::from_millis(0), dead: true, ..ReplayFilter::nothing(until) };
    NewReplay {
        org: endpoint.org,
        app: endpoint.app,
        endpoint: endpoint.id,
        kind: ReplayKind::Recover,
        filter,
        rate: DEFAULT_REPLAY_RATE,
    }
}
