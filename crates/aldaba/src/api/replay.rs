//! Replays: what died, what is missing, or what a filter selects; their progress; and resends.

use crate::actions;
use crate::api::application::erase;
use crate::api::attempt;
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Moment, Text};
use crate::api::request::query::WithContent;
use crate::api::response::conflict;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::read::{ApiRequest, Parsed};
use aldaba_api::value::Shows;
use aldaba_api::{
    BackgroundTask, BackgroundTaskView, BulkReplay, Replay, ReplayCount, ReplayCountView, Resent, ResentView,
    Status,
};
use aldaba_delivery::{ErasureId, ReplayId, Timestamp};
use aldaba_engine::{MAX_REPLAYED_DELIVERIES, NewReplay};
use aldaba_store::{
    Erasure, ErasuresQuery, Order, Page, Replay as Stored, ReplayEnd, ReplayFilter, ReplayKind, ReplayState,
    ReplaysQuery,
};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::json;

pub(crate) fn routes() -> Vec<Route> {
    let resend =
        Route::post("/app/{app_id}/msg/{msg_id}/endpoint/{endpoint_id}/resend", Access::Attempt, resend);
    vec![
        started(Route::post("/app/{app_id}/endpoint/{endpoint_id}/recover", Access::Attempt, recover))
            .keyed()
            .named("v1.endpoint.recover", "Replays what has failed since a moment")
            .takes::<Replay>(),
        started(Route::post(
            "/app/{app_id}/endpoint/{endpoint_id}/replay-missing",
            Access::Attempt,
            replay_missing,
        ))
        .keyed()
        .named("v1.endpoint.replay-missing", "Sends what the endpoint was never sent since a moment")
        .takes::<Replay>(),
        started(Route::post(
            "/app/{app_id}/endpoint/{endpoint_id}/bulk-replay",
            Access::Attempt,
            bulk_replay,
        ))
        .keyed()
        .named("v1.endpoint.bulk-replay", "Replays what a filter selects")
        .takes::<BulkReplay>(),
        Route::get("/background-task", Access::ReadOrganization, list)
            .named("v1.background-task.list", "Lists replays and erasures, newest first")
            .ordered()
            .query("status", Form::OneOf(&["running", "finished", "failed"]), "Only those in this state")
            .query("task", Form::OneOf(&KIND_NAMES), "Only those of this kind")
            .lists::<BackgroundTask>(),
        Route::get("/background-task/{task_id}", Access::ReadOrganization, show)
            .named("v1.background-task.get", "Shows a replay or an erasure, and its progress")
            .answers::<BackgroundTask>(StatusCode::OK),
        Route::post("/background-task/{task_id}/cancel", Access::Administer, cancel)
            .named(
                "v1.background-task.cancel",
                "Cancels a replay; deliveries that it has opened are still sent",
            )
            .answers::<BackgroundTask>(StatusCode::OK)
            .may_conflict(),
        resend
            .keyed()
            .named("v1.message-attempt.resend", "Makes one manual attempt")
            .answers::<Resent>(StatusCode::ACCEPTED)
            .may_conflict(),
    ]
}

/// The responses of all replays.
fn started(route: Route) -> Route {
    route.answers::<BackgroundTask>(StatusCode::ACCEPTED).answers::<ReplayCount>(StatusCode::OK)
}

/// Deliveries per second by default.
pub(crate) const DEFAULT_RATE: u32 = 500;

pub(crate) async fn recover(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    start(&api, &caller, keys, pending, ReplayKind::Recover).await
}

pub(crate) async fn replay_missing(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    start(&api, &caller, keys, pending, ReplayKind::Missing).await
}

pub(crate) async fn bulk_replay(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    start(&api, &caller, keys, pending, ReplayKind::Bulk).await
}

async fn start(
    api: &Api,
    caller: &Caller,
    keys: (String, String),
    pending: Pending,
    kind: ReplayKind,
) -> Result<Response, Error> {
    let endpoint = api.ask(caller).endpoint(&keys).await?;
    let once = pending.once(endpoint.org, &[endpoint.id.as_bytes()]);
    pending.trace().concerns_endpoint(endpoint.app, endpoint.id);
    let body = pending.read().await?;
    let now = api.engine.clock().now();
    let asked = match kind {
        ReplayKind::Bulk => ReplayRequest::of(body.text().parse::<BulkReplay>(false)?, kind, now)?,
        _ => ReplayRequest::of(body.text().parse::<Replay>(false)?, kind, now)?,
    };
    let ReplayRequest { filter, rate, dry_run } = asked;
    let new = NewReplay { org: endpoint.org, app: endpoint.app, endpoint: endpoint.id, kind, filter, rate };
    let replays = api.engine.replays();
    if dry_run {
        let counted = replays.count(new).await?;
        let answer = ReplayCountView {
            count: counted.count,
            at_least: counted.at_least,
            most: MAX_REPLAYED_DELIVERIES,
        };
        return Ok(json::answer(StatusCode::OK, &answer));
    }
    let replay = replays.start(caller.actor(), new, once).await?;
    Ok(json::answer(StatusCode::ACCEPTED, &render(&replay)))
}

/// The replay to start.
struct ReplayRequest {
    filter: ReplayFilter,
    rate: u32,
    dry_run: bool,
}

impl ReplayRequest {
    fn of<T>(parsed: Parsed<T>, kind: ReplayKind, now: Timestamp) -> Result<Self, Error>
    where
        T: ApiRequest + Into<BulkReplay>,
    {
        let Parsed { value, mut fields } = parsed;
        let body: BulkReplay = value.into();
        let (since, until) = (json::read_moment(&body.since), json::given_moment(body.until.as_ref()));
        match (since, until) {
            (Some(since), Some(until)) if since > until => fields.problem("until", "lies before `since`"),
            (Some(since), None) if since > now && !fields.gives("until") => {
                fields.problem("since", "lies in the future: no message has been accepted since");
            }
            _ => {}
        }
        fields.finish_in_order(T::KNOWN)?;
        let (until, is_bulk) = (until.unwrap_or(now), kind == ReplayKind::Bulk);
        let is = |status: Status| is_bulk && body.status.is_none_or(|given| given == status);
        let filter = ReplayFilter {
            since: since.unwrap_or(now),
            event_types: body.event_types.unwrap_or_default(),
            channel: body.channel,
            tag: body.tag,
            dead: kind == ReplayKind::Recover || is(Status::Fail),
            delivered: is(Status::Success),
            cancelled: body.status == Some(Status::Canceled),
            missing: kind == ReplayKind::Missing || body.missing == Some(true),
            status_class: body.status_code_class,
            ..ReplayFilter::nothing(until)
        };
        let (rate, dry_run) = (body.rate_per_second.unwrap_or(DEFAULT_RATE), body.dry_run == Some(true));
        Ok(Self { filter, rate, dry_run })
    }
}

const KINDS: [ReplayKind; 3] = [ReplayKind::Recover, ReplayKind::Missing, ReplayKind::Bulk];
const KIND_NAMES: [&str; 4] = [name(KINDS[0]), name(KINDS[1]), name(KINDS[2]), erase::TASK];

const fn name(kind: ReplayKind) -> &'static str {
    match kind {
        ReplayKind::Recover => "endpoint.recover",
        ReplayKind::Missing => "endpoint.replay",
        ReplayKind::Bulk => "endpoint.bulk-replay",
    }
}

fn status(replay: &Stored) -> &'static str {
    match replay.state {
        ReplayState::Running => "running",
        ReplayState::Finished => "finished",
        ReplayState::Cancelled | ReplayState::EndpointGone | ReplayState::TooMany => "failed",
    }
}

/// Why it ended early.
fn failure(replay: &Stored) -> Option<String> {
    match replay.state {
        ReplayState::Running | ReplayState::Finished => None,
        ReplayState::Cancelled => Some("It was cancelled.".to_owned()),
        ReplayState::EndpointGone => Some("Its endpoint was deleted.".to_owned()),
        ReplayState::TooMany => Some(format!(
            "It has opened {MAX_REPLAYED_DELIVERIES} deliveries, as many as one replay may. To go on, start another with `since` \
             at `reachedAt`."
        )),
    }
}

pub(crate) fn render(replay: &Stored) -> impl Shows<BackgroundTask> + use<> {
    let mut data = json!({
        "appId": replay.app.to_string(),
        "endpointId": replay.endpoint.to_string(),
        "messagesSent": replay.opened,
        "messagesSeen": replay.looked_at,
        "ratePerSecond": replay.rate,
        "since": json::moment(replay.filter.since),
        "until": json::moment(replay.filter.until),
        "reachedAt": replay.reached.map(|id| json::moment(id.created_at())),
        "progress": progress(replay),
        "createdAt": json::moment(replay.created_at),
    });
    if let Some(error) = failure(replay) {
        data["error"] = error.into();
        data["cancelled"] = (replay.state == ReplayState::Cancelled).into();
    }
    BackgroundTaskView {
        id: Text(replay.id),
        status: status(replay),
        task: name(replay.kind),
        updated_at: Moment(replay.updated_at),
        data,
    }
}

/// The covered part of the replay's time range, from 0 to 1.
fn progress(replay: &Stored) -> f64 {
    if replay.state == ReplayState::Finished {
        return 1.0;
    }
    let Some(reached) = replay.reached else { return 0.0 };
    let whole = replay.filter.until.since(replay.filter.since).as_secs_f64().max(0.001);
    let share = reached.created_at().since(replay.filter.since).as_secs_f64() / whole;
    (share.clamp(0.0, 1.0) * 1000.0).round() / 1000.0
}

pub(crate) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(id): Ids<String>,
) -> Result<Response, Error> {
    if let Some(erasure) = api.ask(&caller).erasure(&id).await? {
        return Ok(json::answer(StatusCode::OK, &erase::render(&erasure)));
    }
    let replay = api.ask(&caller).replay(&id).await?;
    Ok(json::answer(StatusCode::OK, &render(&replay)))
}

/// A task of the list.
enum Listed {
    Replay(Stored),
    Erasure(Erasure),
}

impl Listed {
    /// Ids of all tasks are of one kind to callers.
    fn id(&self) -> ReplayId {
        match self {
            Self::Replay(replay) => replay.id,
            Self::Erasure(erasure) => ReplayId::from_bytes(*erasure.id.as_bytes()),
        }
    }
}

pub(crate) async fn list(
    State(api): State<Api>,
    query: PageQuery<ReplayId>,
    caller: Caller,
) -> Result<Response, Error> {
    let ended = query.query.text("status").map(|status| match status {
        "running" => ReplayEnd::NotYet,
        "finished" => ReplayEnd::Well,
        _ => ReplayEnd::Early,
    });
    let task = query.query.text("task");
    let kind = task.and_then(|task| KINDS.into_iter().find(|kind| name(*kind) == task));
    let (page, order) = query.ask(query.order.unwrap_or(Order::Descending));
    let (org, mut found) = (caller.org(), Vec::new());
    if task != Some(erase::TASK) {
        let replays = api.ask(&caller).replays(ReplaysQuery { org, ended, kind, page, order }).await?;
        found.extend(replays.into_iter().map(Listed::Replay));
    }
    if kind.is_none() {
        let after = page.after.map(|after| ErasureId::from_bytes(*after.as_bytes()));
        let page = Page { after, limit: page.limit };
        let erasures = api.ask(&caller).erasures(ErasuresQuery { org, ended, page, order }).await?;
        found.extend(erasures.into_iter().map(Listed::Erasure));
    }
    found.sort_by_key(Listed::id);
    if order == Order::Descending {
        found.reverse();
    }
    found.truncate(page.limit);
    let rendered = |task: &Listed| match task {
        Listed::Replay(replay) => serde_json::to_value(render(replay)),
        Listed::Erasure(erasure) => serde_json::to_value(erase::render(erasure)),
    };
    Ok(query.list(found, false, Listed::id).render(|task| rendered(task).unwrap_or_default()))
}

pub(crate) async fn cancel(
    State(api): State<Api>,
    caller: Caller,
    Ids(id): Ids<String>,
) -> Result<Response, Error> {
    if let Some(erasure) = api.ask(&caller).erasure(&id).await? {
        let id = erasure.id;
        return Err(Error::conflict(format!(
            "The task {id} is an erasure, which cannot be cancelled: part of the application is gone already"
        )));
    }
    let replay = api.ask(&caller).replay(&id).await?;
    if !api.engine.replays().cancel(caller.actor(), &replay).await? {
        let (id, status) = (replay.id, status(&replay));
        return Err(Error::conflict(format!("The task {id} is over already: its status is `{status}`")));
    }
    let replay = api.ask(&caller).replay(&id).await?;
    Ok(json::answer(StatusCode::OK, &render(&replay)))
}

/// Makes one manual attempt. The response follows the attempt, whatever its outcome, or comes after a timeout while
/// the attempt runs.
pub(crate) async fn resend(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, message, endpoint)): Ids<(String, String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&app).await?;
    let message = application.message(&message).await?;
    let endpoint = application.endpoint(&endpoint).await?;
    let once = pending.once(application.org, &[message.id.as_bytes(), endpoint.id.as_bytes()]);
    let trace = pending.trace();
    trace.concerns(message.id);
    trace.concerns_endpoint(endpoint.app, endpoint.id);
    let attempt = actions::resend(&api, &caller, &application, (&message, &endpoint), once)
        .await
        .map_err(|error| conflict::of_resend(error, &message, &endpoint))?;
    let url = &endpoint.config.url;
    let attempt = attempt.as_ref().map(|attempt| attempt::render(attempt, url, WithContent(true)));
    Ok(json::answer(StatusCode::ACCEPTED, &ResentView { attempt }))
}
