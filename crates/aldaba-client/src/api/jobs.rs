//! Jobs whose end is told to somebody, and the records of what was told.

use crate::Error;
use crate::api::applications::App;
use crate::call::Call;
use crate::listing::Listing;
use aldaba_api::{DispatchStatus, JobEnd, JobRecord, Json, Timestamp, input};
use futures_util::Stream;
use serde::Deserialize;
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

impl From<&Job> for JobEnd {
    /// It does not say yet how the job ended.
    fn from(job: &Job) -> Self {
        Self {
            job_id: job.id.clone(),
            job_type: job.job_type.clone(),
            webhook_url: job.webhook_url.clone(),
            ..Self::default()
        }
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
