//! Sending again: what has died, what is missing, or what a filter says; and how far that has come.

use crate::api::attempt::{self, AttemptOut};
use crate::api::request::body::{BodyText, Pending};
use crate::api::request::ids::{self, Ids};
use crate::api::request::json::{self, ReadField};
use crate::api::request::query::WithContent;
use crate::api::request::variant::Variant;
use crate::api::response::conflict;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::{Access, Organization};
use crate::api::routing::route::{Form, Route, example};
use crate::api::{Api, Error, endpoint};
use crate::token::Caller;
use aldaba_delivery::{ReplayId, Timestamp};
use aldaba_engine::{MAX_REPLAYED_DELIVERIES, ManualAttempt, NewReplay, NewResend};
use aldaba_store::{
    AuditAction, Order, Replay, ReplayEnd, ReplayFilter, ReplayKind, ReplayState, ReplaysQuery,
};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

pub(crate) fn routes() -> Vec<Route> {
    let resend =
        Route::post("/app/{app_id}/msg/{msg_id}/endpoint/{endpoint_id}/resend", Access::Attempt, resend);
    vec![
        started(Route::post("/app/{app_id}/endpoint/{endpoint_id}/recover", Access::Attempt, recover))
            .keyed()
            .named("v1.endpoint.recover", "Sends again what has failed since a moment")
            .takes::<ReplayIn>(),
        started(Route::post(
            "/app/{app_id}/endpoint/{endpoint_id}/replay-missing",
            Access::Attempt,
            replay_missing,
        ))
        .keyed()
        .named("v1.endpoint.replay-missing", "Sends what the endpoint was never sent since a moment")
        .takes::<ReplayIn>(),
        started(Route::post(
            "/app/{app_id}/endpoint/{endpoint_id}/bulk-replay",
            Access::Attempt,
            bulk_replay,
        ))
        .keyed()
        .named("v1.endpoint.bulk-replay", "Sends again what a filter finds")
        .takes::<BulkReplayIn>(),
        Route::get("/background-task", Access::ReadOrganization, list)
            .named("v1.background-task.list", "Lists replays, newest first")
            .ordered()
            .query("status", Form::OneOf(&["running", "finished", "failed"]), "Only those in this state")
            .query(
                "task",
                Form::OneOf(&["endpoint.recover", "endpoint.replay", "endpoint.bulk-replay"]),
                "Only those of this kind",
            )
            .lists::<TaskOut>(),
        Route::get("/background-task/{task_id}", Access::ReadOrganization, show)
            .named("v1.background-task.get", "Tells how far a replay has come")
            .answers::<TaskOut>(StatusCode::OK),
        Route::post("/background-task/{task_id}/cancel", Access::Administer, cancel)
            .named("v1.background-task.cancel", "Ends a replay; what it has opened stays open")
            .answers::<TaskOut>(StatusCode::OK)
            .may_conflict(),
        resend
            .keyed()
            .named("v1.message-attempt.resend", "Makes one attempt by hand")
            .answers::<ResentOut<'_>>(StatusCode::ACCEPTED)
            .may_conflict(),
    ]
}

/// What all replays answer.
fn started(route: Route) -> Route {
    route.answers::<TaskOut>(StatusCode::ACCEPTED).answers::<CountOut>(StatusCode::OK)
}

#[derive(Serialize, ToSchema)]
struct ResentOut<'a> {
    /// The attempt that was made; a repeat of the request shows the one that the first has made. Null where it is still
    /// under way: it is on the list of the message's attempts once it has ended.
    attempt: Option<AttemptOut<'a>>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct ReplayIn {
    /// Messages accepted from then on.
    #[schema(value_type = String, format = DateTime)]
    since: String,
    /// Until then; now, if not given.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<String>,
    event_types: Option<Vec<String>>,
    channel: Option<String>,
    tag: Option<String>,
    /// Deliveries that are opened a second at most.
    #[schema(minimum = 1, maximum = 10000)]
    rate_per_second: Option<u32>,
    /// Only count.
    dry_run: Option<bool>,
}

example!(ReplayIn, {"since": "2025-01-31T12:00:00Z"});

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct BulkReplayFields {
    /// 0 success, 2 fail, 4 cancelled.
    status: Option<u8>,
    /// 0 (no answer), 100, 200, 300, 400 or 500.
    status_code_class: Option<u16>,
    /// Also what the endpoint was never sent.
    missing: Option<bool>,
}

struct BulkReplayIn;

impl ToSchema for BulkReplayIn {}

impl PartialSchema for BulkReplayIn {
    fn schema() -> RefOr<Schema> {
        Variant::of::<ReplayIn>("Which messages are sent again.").with_fields_of::<BulkReplayFields>().into()
    }
}

example!(BulkReplayIn, {"since": "2025-01-31T12:00:00Z", "eventTypes": ["invoice.paid"], "dryRun": true});

/// What a replay would send.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CountOut {
    count: usize,
    /// Counting was given up there.
    at_least: bool,
    /// What one replay opens at most.
    most: usize,
}

/// Deliveries in a second, when nobody says how many.
pub(crate) const RATE: u32 = 500;
const FASTEST: u64 = 10_000;
const MOST_TYPES: usize = 100;
const FIELDS: &[&str] = &["since", "until", "eventTypes", "channel", "tag", "ratePerSecond", "dryRun"];
/// Of a bulk replay besides.
const BULK_FIELDS: &[&str] = &["status", "statusCodeClass", "missing"];
/// How long a resend is waited for. What is on the wire by then goes on without the caller.
const PATIENCE: Duration = Duration::from_secs(5);

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
    let endpoint = endpoint::find(api, caller, keys).await?;
    let once = pending.once(endpoint.org, &[endpoint.id.as_bytes()]);
    let body = pending.read().await?;
    let asked = Asked::read(body.text(), kind, api.engine.clock().now())?;
    let Asked { filter, rate, dry_run } = asked;
    let new = NewReplay { org: endpoint.org, app: endpoint.app, endpoint: endpoint.id, kind, filter, rate };
    let replays = api.engine.replays();
    if dry_run {
        let counted = replays.count(new).await?;
        let answer =
            json!({"count": counted.count, "atLeast": counted.at_least, "most": MAX_REPLAYED_DELIVERIES});
        return Ok(json::answer(StatusCode::OK, &answer));
    }
    let replay = replays.start(caller.actor(), new, once).await?;
    Ok(json::answer(StatusCode::ACCEPTED, &render(&replay)))
}

/// What a request asks for.
struct Asked {
    filter: ReplayFilter,
    rate: u32,
    dry_run: bool,
}

impl Asked {
    fn read(body: BodyText<'_>, kind: ReplayKind, now: Timestamp) -> Result<Self, Error> {
        let mut fields = body.fields()?;
        let bulk = if kind == ReplayKind::Bulk { BULK_FIELDS } else { &[] };
        fields.refuse_others(&[FIELDS, bulk].concat());
        let since = fields.moment("since");
        if since.is_none() && !fields.has_problem() {
            fields.problem("since", "this field is required: messages accepted from then on are sent");
        }
        let until = fields.moment("until");
        match (since, until) {
            (Some(since), Some(until)) if since > until => fields.problem("until", "lies before `since`"),
            (Some(since), None) if since > now => {
                fields.problem("since", "lies in the future: no message has been accepted since");
            }
            _ => {}
        }
        let until = until.unwrap_or(now);
        let dry_run = fields.boolean_or("dryRun", false);
        let rate = fields.number("ratePerSecond", 1, FASTEST).map_or(RATE, |rate| rate as u32);
        let mut filter = ReplayFilter {
            since: since.unwrap_or(now),
            event_types: fields.set("eventTypes", MOST_TYPES, ids::name),
            dead: kind == ReplayKind::Recover,
            missing: kind == ReplayKind::Missing,
            ..ReplayFilter::nothing(until)
        };
        let channel = fields.string("channel");
        filter.channel = fields.checked("channel", channel, |channel| ids::channel(channel));
        let tag = fields.string("tag");
        filter.tag = fields.checked("tag", tag, |tag| ids::tag(tag));
        if kind == ReplayKind::Bulk {
            let status = fields.number("status", 0, 4);
            match status {
                None => (filter.dead, filter.delivered) = (true, true),
                Some(0) => filter.delivered = true,
                Some(2) => filter.dead = true,
                Some(4) => filter.cancelled = true,
                Some(_) => {
                    let message =
                        "must be 0 (success), 2 (fail) or 4 (cancelled): others are still on their way";
                    fields.problem("status", message);
                }
            }
            // Ours: also what the endpoint was never sent.
            filter.missing = fields.boolean_or("missing", false);
            filter.status_class = fields.number("statusCodeClass", 0, 500).map(|class| class as u16);
            if filter.status_class.is_some_and(|class| class % 100 != 0) {
                fields.problem("statusCodeClass", "must be 0 (no answer), 100, 200, 300, 400 or 500");
            }
        }
        fields.finish()?;
        Ok(Self { filter, rate, dry_run })
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskOut {
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    id: ReplayId,
    status: &'static str,
    task: &'static str,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    data: Value,
}

fn name(kind: ReplayKind) -> &'static str {
    match kind {
        ReplayKind::Recover => "endpoint.recover",
        ReplayKind::Missing => "endpoint.replay",
        ReplayKind::Bulk => "endpoint.bulk-replay",
    }
}

pub(crate) fn render(replay: &Replay) -> TaskOut {
    let (status, error) = match replay.state {
        ReplayState::Running => ("running", None),
        ReplayState::Finished => ("finished", None),
        ReplayState::Cancelled => ("failed", Some("It was cancelled.".to_owned())),
        ReplayState::EndpointGone => ("failed", Some("Its endpoint was deleted.".to_owned())),
        ReplayState::TooMany => {
            let detail = format!(
                "It has opened {MAX_REPLAYED_DELIVERIES} deliveries, as many as one replay may. To go on, start another with `since` \
                 at `reachedAt`."
            );
            ("failed", Some(detail))
        }
    };
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
    if let Some(error) = error {
        data["error"] = error.into();
        data["cancelled"] = (replay.state == ReplayState::Cancelled).into();
    }
    TaskOut { id: replay.id, status, task: name(replay.kind), updated_at: replay.updated_at, data }
}

/// How much of the time that it is about lies behind it, from 0 to 1.
fn progress(replay: &Replay) -> f64 {
    if replay.state == ReplayState::Finished {
        return 1.0;
    }
    let Some(reached) = replay.reached else { return 0.0 };
    let whole = replay.filter.until.since(replay.filter.since).as_secs_f64().max(0.001);
    let share = reached.created_at().since(replay.filter.since).as_secs_f64() / whole;
    (share.clamp(0.0, 1.0) * 1000.0).round() / 1000.0
}

fn missing() -> Error {
    Error::not_found("There is no such background task; GET /api/v1/background-task lists them")
}

pub(crate) async fn show(
    State(api): State<Api>,
    Organization(org): Organization,
    Ids(id): Ids<String>,
) -> Result<Response, Error> {
    let id = id.parse().map_err(|_| missing())?;
    let replay = api.engine.store().replay(org, id).await?.ok_or_else(missing)?;
    Ok(json::answer(StatusCode::OK, &render(&replay)))
}

pub(crate) async fn list(
    State(api): State<Api>,
    query: PageQuery<ReplayId>,
    Organization(org): Organization,
) -> Result<Response, Error> {
    let ended = match query.query.get("status").as_deref() {
        None => None,
        Some("running") => Some(ReplayEnd::NotYet),
        Some("finished") => Some(ReplayEnd::Well),
        Some("failed") => Some(ReplayEnd::Early),
        Some(other) => return Err(Error::query("status", other, "running, finished or failed")),
    };
    let kinds = [ReplayKind::Recover, ReplayKind::Missing, ReplayKind::Bulk];
    let kind =
        match query.query.get("task").as_deref() {
            None => None,
            Some(task) => Some(kinds.into_iter().find(|kind| name(*kind) == task).ok_or_else(|| {
                Error::query("task", task, format!("one of {}", kinds.map(name).join(", ")))
            })?),
        };
    let (page, order) = query.ask(query.order.unwrap_or(Order::Descending));
    let found = api.engine.store().replays(ReplaysQuery { org, ended, kind, page, order }).await?;
    Ok(query.list(found, false, |replay| replay.id).render(render))
}

pub(crate) async fn cancel(
    State(api): State<Api>,
    caller: Caller,
    Ids(id): Ids<String>,
) -> Result<Response, Error> {
    let org = caller.org();
    let id: ReplayId = id.parse().map_err(|_| missing())?;
    let there = api.engine.store().replay(org, id).await?.ok_or_else(missing)?;
    if !api.engine.replays().cancel(caller.actor(), &there).await? {
        let detail = format!("The task {id} is over already: its status is `{}`", render(&there).status);
        return Err(Error::conflict(detail));
    }
    let replay = api.engine.store().replay(org, id).await?.ok_or_else(missing)?;
    Ok(json::answer(StatusCode::OK, &render(&replay)))
}

/// One attempt by hand. The answer comes when it has been made, whatever came of it; or after a while, while it
/// is still under way.
pub(crate) async fn resend(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, message, endpoint)): Ids<(String, String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    let application = api.application(&caller, app).await?;
    let message = api.message(application.id, message).await?;
    let endpoint = api.endpoint(application.id, endpoint).await?;
    let action =
        AuditAction::new("message.resend", &message.id).of_app(endpoint.app).at_endpoint(endpoint.id);
    let audit = api.engine.entry(caller.actor(), action);
    let once = pending.once(application.org, &[message.id.as_bytes(), endpoint.id.as_bytes()]);
    let asked = NewResend { endpoint: endpoint.clone(), message: message.clone(), audit, once };
    let attempt = match tokio::time::timeout(PATIENCE, api.engine.resend(asked)).await {
        Err(_) => None,
        Ok(ended) => match ended.map_err(|error| conflict::of_resend(error, &message, &endpoint))? {
            ManualAttempt::Made(attempt) => Some(*attempt),
            ManualAttempt::Repeated(attempt) => api.engine.store().attempt(message.id, attempt).await?,
        },
    };
    let url = &endpoint.config.url;
    let attempt = attempt.as_ref().map(|attempt| attempt::render(attempt, url, WithContent(true)));
    Ok(json::answer(StatusCode::ACCEPTED, &ResentOut { attempt }))
}
