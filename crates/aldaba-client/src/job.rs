//! Jobs whose end is told to somebody, and the records of what was told.

use crate::text::words;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A job, as the one who runs it knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Its id, the same at every run.
    pub id: String,
    /// What kind of job it is, such as `email.send`.
    pub job_type: String,
    /// Who wants to know how it ended; nobody, if there is none.
    pub webhook_url: Option<String>,
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

/// The record of the webhook that tells of a job's end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JobRecord {
    /// The message's id.
    pub id: String,
    /// The job's id.
    pub job_id: String,
    /// The job's type.
    pub job_type: String,
    /// Where the webhook goes.
    pub url: String,
    /// What is sent.
    pub payload: Value,
    /// How far the webhook is; not how the job ended.
    pub status: DispatchStatus,
    /// How often it was tried.
    pub attempts: u32,
    /// How often it may be tried.
    pub max_attempts: u32,
    /// The status of the last answer.
    pub last_status_code: Option<u16>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    /// When it was last tried (RFC 3339).
    pub last_attempt_at: Option<String>,
    /// When it was accepted (RFC 3339).
    pub created_at: String,
    /// When the webhook ended (RFC 3339).
    pub completed_at: Option<String>,
}
