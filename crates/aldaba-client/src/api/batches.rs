//! Many messages in one request.

use crate::Error;
use crate::api::messages::Messages;
use crate::call::Call;
use aldaba_api::{NewBatch, NewMessage, answer};
use serde_json::Value;
use std::time::Duration;

impl Messages {
    /// Sends up to 1,000, each with its own result: some may be accepted and others not.
    pub async fn send_batch(&self, messages: &[NewMessage]) -> Result<Batch, Error> {
        let body = NewBatch { messages: messages.to_vec() };
        Call::post(&self.path(&["batch"])).json(&body).answer(&self.app.client).await
    }
}

// Not those of `aldaba-api`: one has a method that gives an error of this crate.
answer! {
    /// What became of messages that were sent together.
    Batch {
        /// How many of them were accepted.
        accepted: usize,
        /// One for each message, in their order.
        results: Vec<BatchResult>,
    }
}

answer! {
    /// What became of one of them.
    BatchResult {
        /// What the answer to this message alone would have: 202 where it was accepted.
        status: u16,
        /// Its id, where it was accepted.
        id: Option<String>,
        /// What that answer would say, where it was not; see [`BatchResult::outcome`].
        error: Option<Value>,
        /// Seconds after which it is worth trying again.
        retry_after: Option<u32>,
    }
}

impl BatchResult {
    /// The message's id, or why it was not accepted.
    pub fn outcome(&self) -> Result<&str, Error> {
        let retry_after = self.retry_after.map(|seconds| Duration::from_secs(seconds.into()));
        let unreadable = || Error::unreadable(self.status, "a result without a reason");
        match (&self.id, &self.error) {
            (Some(id), _) => Ok(id),
            (None, Some(error)) => {
                Err(Error::from_body(self.status, error, retry_after).unwrap_or_else(unreadable))
            }
            (None, None) => Err(unreadable()),
        }
    }
}
