//! Job webhooks: notify the URL of a job that the job finished.

use super::{Record, STATES};
use crate::api::dispatch;
use crate::api::endpoint::body;
use crate::api::message::schema_violations;
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, ReadField};
use crate::api::response::error::Problem;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route, example};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::{MessageId, OrgId};
use aldaba_engine::{DispatchError, EndpointHeaders, NewDispatch, NewEvent, SendError, SendReceipt};
use aldaba_store::{Dispatch, DispatchKind, DispatchesQuery};
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;
use utoipa::ToSchema;

const PATH: &str = "/app/{app_id}/job";
/// The policy and the wire profile of job webhooks.
const POLICY: &str = "job-status";
const EVENT_TYPE: &str = "job.status";
const FIELDS: &[&str] = &["jobId", "jobType", "status", "result", "error", "webhookUrl", "completedAt"];
const MAX_NAME_LENGTH: usize = 256;
const MAX_ERROR_BYTES: usize = 64 << 10;
/// The moments, in milliseconds, that are sent as they were given: with a four-digit year, and before the last one
/// that can be shown.
const SENDABLE_MILLIS: Range<i64> = -62_167_219_200_000..253_402_207_200_000;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post(PATH, Access::Send, create)
            .keyed()
            .named("v1.job.create", "Notifies a job's URL that the job finished")
            .takes::<JobIn>()
            .answers::<NotDispatched>(StatusCode::OK)
            .answers::<JobDispatched<'_>>(StatusCode::ACCEPTED)
            .may_conflict(),
        Route::get(PATH, Access::Read, list)
            .named("v1.job.list", "Lists the job webhooks, newest first")
            .query("status", Form::OneOf(STATES), "Only those that have come so far")
            .query("jobId", Form::Text, "Only of this job")
            .time_limited()
            .lists::<JobOut<'_>>(),
        Route::get("/app/{app_id}/job/{job_id}", Access::Read, show)
            .named("v1.job.get", "Shows the newest webhook of a job with its status")
            .answers::<JobOut<'_>>(StatusCode::OK),
    ]
}

/// How a job has ended, and whom to tell.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct JobIn {
    /// It is sent as `X-Job-Id`: visible ASCII, with no space at its ends.
    #[schema(min_length = 1, max_length = 256, pattern = "^[!-~]([ -~]*[!-~])?$")]
    job_id: String,
    #[schema(min_length = 1, max_length = 256)]
    job_type: String,
    #[schema(pattern = "^(completed|failed)$")]
    status: String,
    /// Any JSON.
    #[schema(value_type = Option<Value>)]
    result: Option<()>,
    #[schema(max_length = 65536)]
    error: Option<String>,
    /// The URL to tell; nobody is told if it is not given or empty.
    #[schema(max_length = 8192)]
    webhook_url: Option<String>,
    /// When the job ended; now, if not given.
    #[schema(value_type = Option<String>, format = DateTime)]
    completed_at: Option<String>,
}

example!(JobIn, {
    "jobId": "report-7",
    "jobType": "report",
    "status": "completed",
    "result": {"pages": 12},
    "webhookUrl": "https://example.com/jobs",
});

/// The job has no URL: there is nobody to tell.
#[derive(Serialize, ToSchema)]
struct NotDispatched {
    /// Always false.
    dispatched: bool,
}

#[derive(Serialize, ToSchema)]
struct JobDispatched<'a> {
    /// Always true.
    dispatched: bool,
    #[serde(flatten)]
    record: JobOut<'a>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct JobOut<'a> {
    /// The message's.
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    id: MessageId,
    job_id: &'a str,
    /// Null where the payload was deleted.
    job_type: Option<Cow<'a, str>>,
    #[serde(flatten)]
    record: Record<'a>,
}

/// The payload that a receiver gets.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Payload<'a> {
    job_id: &'a str,
    job_type: &'a str,
    status: &'a str,
    result: Option<&'a RawValue>,
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

/// The field whose exact text is sent.
#[derive(Deserialize)]
struct Given<'a> {
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
}

fn render<'a>(api: &Api, org: OrgId, dispatch: &'a Dispatch) -> JobOut<'a> {
    let told = serde_json::from_slice::<Told<'a>>(&dispatch.message.content.payload);
    JobOut {
        id: dispatch.message.id,
        job_id: dispatch.message.job.as_deref().unwrap_or_default(),
        job_type: told.ok().map(|told| told.job_type),
        record: Record::of(api, org, dispatch),
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
    let (once, trace) = (pending.once(caller.org(), &[]), pending.trace().shared());
    let body = pending.read().await?;
    let mut fields = body.text().fields()?;
    fields.refuse_others(FIELDS);
    let result = match serde_json::from_slice::<Given<'_>>(&body.bytes) {
        Ok(Given { result }) => result,
        Err(error) => return Err(Problem::decode(&["body", "result"], error.to_string()).into()),
    };
    let job_id = fields.required_string("jobId");
    let job_id = fields.checked("jobId", job_id, |id| job_name(id));
    let job_type = fields.required_string("jobType");
    let job_type = fields.checked("jobType", job_type, |name| match name.chars().count() {
        1..=MAX_NAME_LENGTH if !name.chars().any(char::is_control) => Ok(()),
        _ => Err(format!("is 1 to {MAX_NAME_LENGTH} characters, and none that controls")),
    });
    let status = fields.required_string("status");
    let status = fields.checked("status", status, |status| match status.as_str() {
        "completed" | "failed" => Ok(()),
        other => Err(format!("must be `completed` or `failed`, not `{other}`")),
    });
    let error = fields.string("error");
    let error = fields.checked("error", error, |error| match error.len() {
        ..=MAX_ERROR_BYTES => Ok(()),
        length => Err(format!("may be {MAX_ERROR_BYTES} bytes long at most; it is {length}")),
    });
    // An empty URL counts as none, as for workers that check `if (!job.webhookUrl)`.
    let url = fields.string("webhookUrl").filter(|url| !url.is_empty());
    let is_told = url.is_some();
    let target = body::target(&api, &mut fields, "webhookUrl", url);
    let completed_at = fields.moment("completedAt");
    let completed_at =
        fields.checked("completedAt", completed_at, |at| match SENDABLE_MILLIS.contains(&at.millis()) {
            true => Ok(()),
            false => Err("must be a moment from the year 0000 to the 30th of December 9999".to_owned()),
        });
    let payload = serde_json::to_string(&Payload {
        job_id: job_id.as_deref().unwrap_or_default(),
        job_type: job_type.as_deref().unwrap_or_default(),
        status: status.as_deref().unwrap_or_default(),
        result,
        error: error.as_deref(),
        completed_at: json::shown_time(completed_at.unwrap_or_else(|| api.engine.clock().wall())),
    });
    let payload = payload.map_err(|_| Error::server())?;
    dispatch::check_payload(&api, &mut fields, "result", &payload)?;
    fields.finish()?;
    if !is_told {
        return Ok(json::answer(StatusCode::OK, &NotDispatched { dispatched: false }));
    }
    let (url, credentials) = dispatch::parts(target)?;
    let (job_id, job_type) = (job_id.unwrap_or_default(), job_type.unwrap_or_default());
    let new = NewDispatch {
        url: url.clone(),
        credentials,
        policy: POLICY.to_owned(),
        profile: Some(POLICY.to_owned()),
        key: None,
        headers: EndpointHeaders::default(),
        job: Some(job_id.clone()),
        event: NewEvent { once, trace, ..NewEvent::new(EVENT_TYPE, Bytes::from(payload.clone())) },
    };
    let (sent, _) = api.engine.dispatch(&application.by_id(), new).await.map_err(|error| match error {
        // The schema's problems lie in fields of the request, which have the same names.
        DispatchError::Send(SendError::Unfit(unfit)) => {
            Error::problems(schema_violations::problems(&unfit, &["body"]))
        }
        other => other.into(),
    })?;
    if let SendReceipt::Repeated { message } = sent
        && let Some(before) = application.find_dispatch(message).await?
    {
        let record = render(&api, caller.org(), &before);
        return Ok(json::answer(StatusCode::ACCEPTED, &JobDispatched { dispatched: true, record }));
    }
    let (id, at) = dispatch::sent_at(&sent);
    let most = api.engine.policies().of(caller.org(), POLICY).limit.attempts;
    let record = JobOut {
        id,
        job_id: &job_id,
        job_type: Some(job_type.into()),
        record: Record::new(&url, &payload, most, at),
    };
    let size = 512 + payload.len();
    Ok(json::sized_answer(StatusCode::ACCEPTED, &JobDispatched { dispatched: true, record }, size))
}

/// Checks that a name can be sent as a header.
fn job_name(id: &str) -> Result<(), String> {
    let fits = (1..=MAX_NAME_LENGTH).contains(&id.len())
        && id.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && id.trim_ascii() == id;
    let why =
        || format!("is sent as a header: 1 to {MAX_NAME_LENGTH} signs of ASCII, with no space at its ends");
    if fits { Ok(()) } else { Err(why()) }
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
