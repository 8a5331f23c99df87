//! Job webhooks: notify the URL of a job that the job finished.

use super::{STATES, new_record, record};
use crate::api::dispatch;
use crate::api::endpoint::body;
use crate::api::message::schema_violations;
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Text};
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::read::{ApiRequest, Parsed};
use aldaba_api::value::{Shows, WriteFields};
use aldaba_api::{
    JobDispatched, JobDispatchedView, JobEnd, JobRecord, JobRecordView, JobStatus, Json, NotDispatched,
    NotDispatchedView,
};
use aldaba_delivery::{MessageId, OrgId};
use aldaba_engine::{DispatchError, EndpointHeaders, NewDispatch, NewEvent, SendError, SendReceipt};
use aldaba_store::{Dispatch, DispatchKind, DispatchesQuery};
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

const PATH: &str = "/app/{app_id}/job";
/// The policy and the wire profile of job webhooks.
const POLICY: &str = "job-status";
const EVENT_TYPE: &str = "job.status";
/// Later moments, in milliseconds, are not sent as they were given: they count as the last one that can be shown.
const SENDABLE_END_MILLIS: i64 = 253_402_207_200_000;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post(PATH, Access::Send, create)
            .keyed()
            .named("v1.job.create", "Notifies a job's URL that the job finished")
            .takes::<JobEnd>()
            .answers::<NotDispatched>(StatusCode::OK)
            .answers::<JobDispatched>(StatusCode::ACCEPTED)
            .may_conflict(),
        Route::get(PATH, Access::Read, list)
            .named("v1.job.list", "Lists the job webhooks, newest first")
            .query("status", Form::OneOf(STATES), "Only those that have come so far")
            .query("jobId", Form::Text, "Only of this job")
            .time_limited()
            .lists::<JobRecord>(),
        Route::get("/app/{app_id}/job/{job_id}", Access::Read, show)
            .named("v1.job.get", "Shows the newest webhook of a job with its status")
            .answers::<JobRecord>(StatusCode::OK),
    ]
}

/// The payload that a receiver gets.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Payload<'a> {
    job_id: &'a str,
    job_type: &'a str,
    status: &'a str,
    result: Option<&'a Json>,
    error: Option<&'a str>,
    completed_at: String,
}

/// A stored payload.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    #[serde(borrow)]
    job_type: Cow<'a, str>,
}

fn render<'a>(
    api: &Api,
    org: OrgId,
    dispatch: &'a Dispatch,
) -> impl Shows<JobRecord> + WriteFields + use<'a> {
    let told = serde_json::from_slice::<Told<'a>>(&dispatch.message.content.payload);
    JobRecordView {
        id: Text(dispatch.message.id),
        job_id: dispatch.message.job.as_deref().unwrap_or_default(),
        job_type: told.ok().map(|told| told.job_type),
        record: record(api, org, dispatch),
    }
}

async fn create(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    // An unknown application comes before a bad body.
    let application = api.ask(&caller).application(&key).await?;
    let (once, trace) = (pending.once(caller.org(), &[]), pending.trace());
    let body = pending.read().await?;
    let Parsed { value, mut fields } = body.text().parse::<JobEnd>(false)?;
    let JobEnd { job_id, job_type, status, result, error, webhook_url, completed_at } = value;
    // An empty URL counts as none, as for workers that check `if (!job.webhookUrl)`.
    let url = webhook_url.filter(|url| !url.is_empty());
    let is_told = url.is_some();
    let target = body::target(&api, &mut fields, "webhookUrl", url);
    let completed_at = json::given_moment(completed_at.as_ref());
    fields.checked("completedAt", completed_at, |at| match at.millis() < SENDABLE_END_MILLIS {
        true => Ok(()),
        false => Err("must be a moment from the year 0000 to the 30th of December 9999".to_owned()),
    });
    let payload = serde_json::to_string(&Payload {
        job_id: &job_id,
        job_type: &job_type,
        status: status.map_or("", JobStatus::as_str),
        result: result.as_ref(),
        error: error.as_deref(),
        completed_at: json::shown_time(completed_at.unwrap_or_else(|| api.engine.clock().wall())),
    });
    let payload = payload.map_err(|_| Error::server())?;
    dispatch::check_payload(&api, &mut fields, "result", &payload)?;
    fields.finish_in_order(JobEnd::KNOWN)?;
    if !is_told {
        return Ok(json::answer(StatusCode::OK, &NotDispatchedView { dispatched: false }));
    }
    let (url, credentials) = dispatch::parts(target)?;
    let new = NewDispatch {
        url: url.clone(),
        credentials,
        policy: POLICY.to_owned(),
        profile: Some(POLICY.to_owned()),
        key: None,
        headers: EndpointHeaders::default(),
        job: Some(job_id.clone()),
        event: NewEvent {
            once,
            trace: trace.event(),
            ..NewEvent::new(EVENT_TYPE, Bytes::from(payload.clone()))
        },
    };
    let (sent, _) = api.engine.dispatch(&application.by_id(), new).await.map_err(|error| match error {
        // The schema's problems lie in fields of the request, which have the same names.
        DispatchError::Send(SendError::Unfit(unfit)) => {
            Error::problems(schema_violations::problems(&unfit, &["body"]))
        }
        other => other.into(),
    })?;
    trace.sent(&sent);
    if let SendReceipt::Repeated { message } = sent
        && let Some(before) = application.find_dispatch(message).await?
    {
        let job = render(&api, caller.org(), &before);
        return Ok(json::answer(StatusCode::ACCEPTED, &JobDispatchedView { dispatched: true, job }));
    }
    let (id, at) = dispatch::sent_at(&sent);
    let most = api.engine.policies().of(caller.org(), POLICY).limit.attempts;
    let job = JobRecordView {
        id: Text(id),
        job_id: &job_id,
        job_type: Some(&job_type),
        record: new_record(&url, &payload, most, at),
    };
    let size = 512 + payload.len();
    Ok(json::sized_answer(StatusCode::ACCEPTED, &JobDispatchedView { dispatched: true, job }, size))
}

async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, job)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let found = api.ask(&caller).application(&app).await?.job(job).await?;
    Ok(json::answer(StatusCode::OK, &render(&api, caller.org(), &found)))
}

async fn list(
    State(api): State<Api>,
    mut query: PageQuery<MessageId>,
    caller: Caller,
    Ids(app): Ids<String>,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&app).await?;
    let job = query.query.text("jobId").map(str::to_owned);
    let dispatches = dispatch::selection(&api, application.id, &mut query, DispatchKind::AsJob);
    let _turn = api.page_permits.next().await?;
    let found = application.dispatches(DispatchesQuery { job, ..dispatches }).await?;
    let listed = query.list_walked(found.items, found.stopped, |dispatch| dispatch.message.id);
    Ok(listed.render(|dispatch| render(&api, caller.org(), dispatch)))
}
