//! Replays: sending again what has ended, in the background.

use crate::api::endpoints::AppEndpoint;
use crate::call::Call;
use crate::listing::{Listing, Order};
use crate::{Client, Error};
use aldaba_api::{BackgroundTask, BulkReplay, Replay, ReplayCount, TaskStatus, input};
use futures_util::Stream;

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
