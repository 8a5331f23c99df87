//! Replays: sending again what has ended, in the background.

use crate::api::endpoints::AppEndpoint;
use crate::call::Call;
use crate::listing::{Listing, Order};
use crate::{Client, Error};
use aldaba_api::words;
use aldaba_api::{Timestamp, answer, input};
use futures_util::Stream;
use serde_json::Value;

input! {
    /// What is sent again.
    Replay {
        /// Messages accepted from then on.
        since: Timestamp,
        /// Until then; now, if not given.
        until: Option<Timestamp>,
        /// Of one of these types.
        event_types: Option<Vec<String>>,
        /// With this channel.
        channel: Option<String>,
        /// With this tag.
        tag: Option<String>,
        /// Deliveries that are opened a second at most.
        rate_per_second: Option<u32>,
        /// Only count; the methods set it.
        dry_run: Option<bool>,
    }
}

impl Replay {
    /// Everything since a moment.
    pub fn since(since: impl Into<Timestamp>) -> Self {
        Self { since: since.into(), ..Self::default() }
    }
}

input! {
    /// What is sent again, with more to choose by.
    BulkReplay {
        /// Messages accepted from then on.
        since: Timestamp,
        /// Until then; now, if not given.
        until: Option<Timestamp>,
        /// Of one of these types.
        event_types: Option<Vec<String>>,
        /// With this channel.
        channel: Option<String>,
        /// With this tag.
        tag: Option<String>,
        /// Deliveries that are opened a second at most.
        rate_per_second: Option<u32>,
        /// Only count; the methods set it.
        dry_run: Option<bool>,
        /// That ended so: success, fail or canceled.
        status: Option<crate::Status>,
        /// With an answer of this class: 100, 200, 300, 400, 500; 0 for none.
        status_code_class: Option<u16>,
        /// Also what the endpoint was never sent.
        missing: Option<bool>,
    }
}

impl BulkReplay {
    /// Everything since a moment.
    pub fn since(since: impl Into<Timestamp>) -> Self {
        Self { since: since.into(), ..Self::default() }
    }
}

words! {
    /// How far a background task is.
    TaskStatus {
        /// It goes on.
        Running = "running",
        /// It did all it should.
        Finished = "finished",
        /// It ended early.
        Failed = "failed",
    }
}

answer! {
    /// Work that goes on in the background.
    BackgroundTask {
        /// Such as `qtask_…`.
        id: String,
        /// How far it is.
        status: TaskStatus,
        /// What it is: `endpoint.recover`, `endpoint.replay` or `endpoint.bulk-replay`.
        task: String,
        /// What came of it so far.
        data: Value,
        /// When that was.
        updated_at: Timestamp,
    }
}

answer! {
    /// What a replay would send.
    ReplayCount {
        /// So many.
        count: u64,
        /// Counting was given up there.
        at_least: bool,
        /// What one replay opens at most.
        most: u64,
    }
}

impl AppEndpoint {
    /// Sends again what ended without success.
    pub async fn recover(&self, replay: &Replay) -> Result<BackgroundTask, Error> {
        let body = Replay { dry_run: None, ..replay.clone() };
        Call::post(&self.path(&["recover"])).json(&body).answer(&self.client).await
    }

    /// How much that would be.
    pub async fn count_recover(&self, replay: &Replay) -> Result<ReplayCount, Error> {
        let body = Replay { dry_run: Some(true), ..replay.clone() };
        Call::post(&self.path(&["recover"])).json(&body).answer(&self.client).await
    }

    /// Sends what it never got.
    pub async fn replay_missing(&self, replay: &Replay) -> Result<BackgroundTask, Error> {
        let body = Replay { dry_run: None, ..replay.clone() };
        Call::post(&self.path(&["replay-missing"])).json(&body).answer(&self.client).await
    }

    /// How much that would be.
    pub async fn count_replay_missing(&self, replay: &Replay) -> Result<ReplayCount, Error> {
        let body = Replay { dry_run: Some(true), ..replay.clone() };
        Call::post(&self.path(&["replay-missing"])).json(&body).answer(&self.client).await
    }

    /// Sends again whatever is asked for.
    pub async fn bulk_replay(&self, replay: &BulkReplay) -> Result<BackgroundTask, Error> {
        let body = BulkReplay { dry_run: None, ..replay.clone() };
        Call::post(&self.path(&["bulk-replay"])).json(&body).answer(&self.client).await
    }

    /// How much that would be.
    pub async fn count_bulk_replay(&self, replay: &BulkReplay) -> Result<ReplayCount, Error> {
        let body = BulkReplay { dry_run: Some(true), ..replay.clone() };
        Call::post(&self.path(&["bulk-replay"])).json(&body).answer(&self.client).await
    }
}

/// What goes on in the background.
#[derive(Clone, Debug)]
pub struct BackgroundTasks {
    client: Client,
}

input! {
    /// Which tasks.
    TaskFilter {
        /// That are so far.
        status: Option<TaskStatus>,
        /// Of this kind.
        task: Option<String>,
        /// Which come first.
        order: Option<Order>,
    }
}

impl Client {
    /// What goes on in the background.
    #[must_use]
    pub fn background_tasks(&self) -> BackgroundTasks {
        BackgroundTasks { client: self.clone() }
    }
}

impl BackgroundTasks {
    /// A page of them.
    pub fn list(&self) -> Listing<BackgroundTask, TaskFilter> {
        Listing::new(&self.client, &["background-task"])
    }

    /// All of them.
    pub fn list_all(&self) -> impl Stream<Item = Result<BackgroundTask, Error>> + Send + Unpin + use<> {
        self.list().all()
    }

    /// Shows one.
    pub async fn get(&self, id: &str) -> Result<BackgroundTask, Error> {
        Call::get(&["background-task", id]).answer(&self.client).await
    }

    /// Ends one. What it has opened already goes on.
    pub async fn cancel(&self, id: &str) -> Result<BackgroundTask, Error> {
        Call::post(&["background-task", id, "cancel"]).answer(&self.client).await
    }
}
