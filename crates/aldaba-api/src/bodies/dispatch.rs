//! Direct dispatches and jobs: webhooks to URLs that are no endpoints, and how far they are.

#[cfg(feature = "server")]
use super::{MAX_HEADERS, MAX_TAGS};
#[cfg(feature = "server")]
use crate::names::tag;
#[cfg(feature = "server")]
use crate::read::{any, choice, moment, name, names, secret, strings, text, uid};
use crate::{Json, Secret, Timestamp, request, response, words};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

request! {
    /// A webhook to a URL: something to send, and where to.
    NewDispatch "DispatchIn" =
        {"url": "https://example.com/hooks", "eventType": "report.ready", "payload": {"report": 7}, "policy": "quick"}
    {
        /// Absolute, http or https; user and password in it become basic authentication.
        required url: String = text().limit(8192).format("uri");
        /// What is sent, byte by byte as it stands here. Any JSON.
        required payload: Json = any();
        /// `dispatch`, if not given.
        nullable event_type: String = name();
        /// Of retries; `standard`, if not given.
        nullable policy: String = text();
        /// Wire profile; the server's default, if not given.
        nullable profile: String = text();
        /// Sent with this request and no other.
        map headers: BTreeMap<String, String> = strings(MAX_HEADERS);
        /// `whsec_…` or `whsk_…`; the application's key for what it dispatches, if not given.
        nullable secret: Secret = secret();
        /// Your own name for it, unique in the application.
        nullable event_id: String = uid("msg_");
        /// Nothing goes out before this moment.
        nullable deliver_at: Timestamp = moment();
        /// To find it by.
        nullable tags: Vec<String> = names(MAX_TAGS, tag);
    }
}

impl NewDispatch {
    /// To a URL.
    pub fn new(url: impl Into<String>, payload: impl Into<Json>) -> Self {
        Self { url: url.into(), payload: payload.into(), ..Self::default() }
    }
}

words! {
    /// How far a webhook to a URL is.
    DispatchStatus {
        /// It has attempts left.
        Pending = "pending",
        /// The receiver has answered with a 2xx.
        Success = "success",
        /// All attempts have failed.
        Failed = "failed",
    }
}

response! {
    ($)
    /// What became of something that was sent to a URL.
    DispatchRecord "Record" of DispatchRecordView {
        /// Where it goes.
        required url: String;
        /// What is sent.
        required payload: Json;
        /// `pending` until it was delivered (`success`) or the last attempt has failed (`failed`).
        required status: DispatchStatus = text().pattern("^(pending|success|failed)$");
        /// That the policy counts: those made by hand are not among them.
        required attempts: u32;
        /// Null where the policy counts time and not attempts.
        nullable max_attempts: u32;
        /// The status of the last answer.
        nullable last_status_code: u16;
        /// Why the last attempt failed.
        nullable last_error: String;
        /// When it was last tried.
        nullable last_attempt_at: Timestamp = moment();
        /// When it was accepted.
        required created_at: Timestamp = moment();
        /// When it was delivered or given up; null while an attempt is to come.
        nullable completed_at: Timestamp = moment();
    }
    each dispatch_record_fields;
}

response! {
    /// A webhook to a URL, and how far it is.
    Dispatch "DispatchOut" of DispatchView with { record: DispatchRecord as dispatch_record_fields; } {
        /// The message's.
        required id: String;
        /// Of the URL, policy and profile: where its attempts, deliveries and replays are found.
        required endpoint_id: String;
        /// Your own name for it.
        nullable event_id: String;
        /// What happened.
        required event_type: String;
        /// Nothing goes out before.
        nullable deliver_at: Timestamp = moment();
    }
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobStatus {
    /// It did what it should.
    Completed,
    /// It failed for good: it is not tried again.
    Failed,
}

impl JobStatus {
    /// As in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

impl TryFrom<String> for JobStatus {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        [Self::Completed, Self::Failed].into_iter().find(|status| status.as_str() == word).ok_or(word)
    }
}

request! {
    /// The end of a job, and whom to tell.
    JobEnd "JobIn" = {
        "jobId": "report-7",
        "jobType": "report",
        "status": "completed",
        "result": {"pages": 12},
        "webhookUrl": "https://example.com/jobs",
    } {
        /// The job's id. It is sent as `X-Job-Id`: visible ASCII, with no space at its ends.
        required job_id: String = text().by(job_id).limits(1, MAX_JOB_NAME).pattern("^[!-~]([ -~]*[!-~])?$");
        /// The job's type.
        required job_type: String = text().by(job_type).limits(1, MAX_JOB_NAME);
        /// How it ended.
        needed status: JobStatus = choice(&["completed", "failed"]).asked();
        /// What it made. Any JSON.
        nullable result: Json = any();
        /// Why it failed.
        nullable error: String = text().length(64 << 10);
        /// The URL to tell; nobody is told if it is not given or empty.
        nullable webhook_url: String = text().limit(8192);
        /// When the job ended; now, if not given.
        nullable completed_at: Timestamp = moment();
    }
}

impl JobEnd {
    /// How a job ended.
    pub fn new(job: impl Into<Self>, status: JobStatus) -> Self {
        Self { status: Some(status), ..job.into() }
    }
}

/// The longest id and type of a job.
#[cfg(feature = "server")]
const MAX_JOB_NAME: usize = 256;

/// Checks that an id can be sent as a header.
#[cfg(feature = "server")]
fn job_id(id: &str) -> Result<(), String> {
    let fits = (1..=MAX_JOB_NAME).contains(&id.len())
        && id.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && id.trim_ascii() == id;
    let why =
        || format!("is sent as a header: 1 to {MAX_JOB_NAME} signs of ASCII, with no space at its ends");
    if fits { Ok(()) } else { Err(why()) }
}

#[cfg(feature = "server")]
fn job_type(name: &str) -> Result<(), String> {
    match name.chars().count() {
        1..=MAX_JOB_NAME if !name.chars().any(char::is_control) => Ok(()),
        _ => Err(format!("must be 1 to {MAX_JOB_NAME} characters, and no control characters")),
    }
}

response! {
    ($)
    /// The record of the webhook that tells of a job's end.
    JobRecord "JobOut" of JobRecordView with { record: DispatchRecord as dispatch_record_fields; } {
        /// The message's.
        required id: String;
        /// The job's.
        required job_id: String;
        /// Null where the payload was deleted.
        nullable job_type: String;
    }
    each job_record_fields;
}

response! {
    /// The job has a URL, which is told.
    JobDispatched "JobDispatched" of JobDispatchedView with { job: JobRecord as job_record_fields; } {
        /// Always true.
        required dispatched: bool;
    }
}

response! {
    /// The job has no URL: there is nobody to tell.
    NotDispatched "NotDispatched" of NotDispatchedView {
        /// Always false.
        required dispatched: bool;
    }
}
