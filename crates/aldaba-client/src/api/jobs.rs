//! Jobs whose end is told to somebody, and the records of what was told.

use crate::api::applications::App;
use crate::call::Call;
use crate::listing::Listing;
use crate::{Error, Json};
use aldaba_api::words;
use aldaba_api::{Timestamp, answer, input};
use futures_util::Stream;
use serde::{Deserialize, Serialize};
use std::fmt;
use url::Url;

/// A job, as the one who runs it knows it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Job {
    /// Its id, the same at every run.
    pub id: String,
    /// What kind of job it is, such as `email.send`.
    pub job_type: String,
    /// Who wants to know how it ended; nobody, if there is none.
    pub webhook_url: Option<String>,
}

/// Of the URL only whose it is: it may have a password or a token in it.
impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = |url: &String| Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        f.debug_struct("Job")
            .field("id", &self.id)
            .field("job_type", &self.job_type)
            .field("webhook_host", &self.webhook_url.as_ref().map(host))
            .finish()
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

answer! {
    /// The record of the webhook that tells of a job's end.
    JobRecord {
        /// The message's id.
        id: String,
        /// The job's id.
        job_id: String,
        /// The job's type; `None` where the payload was deleted.
        job_type: Option<String>,
        /// Where the webhook goes.
        url: String,
        /// What is sent.
        payload: Json,
        /// How far the webhook is; not how the job ended.
        status: DispatchStatus,
        /// How often it was tried.
        attempts: u32,
        /// How often it may be tried; `None` where the policy counts time and not attempts.
        max_attempts: Option<u32>,
        /// The status of the last answer.
        last_status_code: Option<u16>,
        /// Why the last attempt failed.
        last_error: Option<String>,
        /// When it was last tried.
        last_attempt_at: Option<Timestamp>,
        /// When it was accepted.
        created_at: Timestamp,
        /// When the webhook ended.
        completed_at: Option<Timestamp>,
    }
}

input! {
    /// The end of a job.
    JobEnd {
        /// The job's id.
        job_id: String,
        /// The job's type.
        job_type: String,
        /// How it ended.
        status: Option<JobStatus>,
        /// What it made.
        result: Option<Json>,
        /// Why it failed.
        error: Option<String>,
        /// Who wants to know; nobody, if not given.
        webhook_url: Option<String>,
        /// When it ended; now, if not given.
        completed_at: Option<Timestamp>,
    }
}

impl JobEnd {
    /// How a job ended.
    #[must_use]
    pub fn new(job: &Job, status: JobStatus) -> Self {
        Self {
            job_id: job.id.clone(),
            job_type: job.job_type.clone(),
            status: Some(status),
            webhook_url: job.webhook_url.clone(),
            ..Self::default()
        }
    }
}

input! {
    /// Which records.
    JobFilter {
        /// Of webhooks that are so far.
        status: Option<DispatchStatus>,
        /// Of this job.
        job_id: Option<String>,
        /// Accepted before.
        before: Option<Timestamp>,
        /// Accepted after.
        after: Option<Timestamp>,
    }
}

/// The jobs of an application whose end was told.
#[derive(Clone, Debug)]
pub struct Jobs {
    app: App,
}

impl App {
    /// Jobs whose end is told.
    #[must_use]
    pub fn jobs(&self) -> Jobs {
        Jobs { app: self.clone() }
    }
}

/// The answer to the end of a job: with a record, or without.
#[derive(Deserialize)]
struct Told {
    dispatched: bool,
}

impl Jobs {
    /// Tells that a job has ended; `None` where nobody wants to know. [`Dispatcher`](crate::Dispatcher) does the
    /// same without ever failing.
    pub async fn tell(&self, end: &JobEnd) -> Result<Option<JobRecord>, Error> {
        let call = Call::post(&["app", &self.app.id, "job"]).json(end);
        let answer: Json = call.answer(&self.app.client).await?;
        let unreadable = |error| Error::unreadable(202, format!("its record cannot be read ({error})"));
        let told: Told = answer.read().map_err(unreadable)?;
        told.dispatched.then(|| answer.read().map_err(unreadable)).transpose()
    }

    /// The newest record of a job.
    pub async fn get(&self, job_id: &str) -> Result<JobRecord, Error> {
        Call::get(&["app", &self.app.id, "job", job_id]).answer(&self.app.client).await
    }

    /// A page of records.
    pub fn list(&self) -> Listing<JobRecord, JobFilter> {
        Listing::new(&self.app.client, &["app", &self.app.id, "job"])
    }

    /// All of them.
    pub fn list_all(&self) -> impl Stream<Item = Result<JobRecord, Error>> + Send + Unpin + use<> {
        self.list().all()
    }
}
