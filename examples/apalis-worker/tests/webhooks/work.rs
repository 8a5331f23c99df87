//! Jobs that do whatever a test wants, in a worker within the test's process.

use crate::support::World;
use crate::support::queue::{Config, Storage};
use aldaba_client::apalis::{JobWebhooks, WebhookJob};
use aldaba_client::{Client, Dispatcher};
use apalis::prelude::*;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use ulid::Ulid;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) url: String,
}

impl WebhookJob for Work {
    fn webhook_url(&self) -> Option<&str> {
        Some(&self.url)
    }

    fn job_type(&self) -> &str {
        "work"
    }
}

pub(crate) fn queue(world: &World) -> Storage<Work> {
    let config = Config::default().queue("work").batch_size(10).heartbeat_interval(Duration::from_secs(1));
    Storage::new(&world.pool).with_config(config)
}

pub(crate) fn webhooks(world: &World) -> JobWebhooks {
    let client = Client::new(&world.gate.url(), &world.aldaba.token).unwrap();
    let dispatcher = Dispatcher::builder(client, world.aldaba.app.clone()).build();
    JobWebhooks::after_stored(dispatcher, queue(world))
}

pub(crate) async fn enqueue(world: &World, most_attempts: usize) -> String {
    let id = Ulid::generate();
    let work = Work { url: world.receiver.url.clone() };
    let task = TaskBuilder::new(work).task_id(TaskId::from_ulid(id)).max_attempts(most_attempts).build();
    queue(world).push_task(task).await.unwrap();
    id.to_string()
}
