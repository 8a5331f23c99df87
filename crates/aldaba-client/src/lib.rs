//! A typed client for Aldaba, the webhook delivery server.

mod client;
mod dispatcher;
mod error;
mod job;
mod text;

pub use client::Client;
pub use dispatcher::{Dispatched, Dispatcher, DispatcherBuilder, DispatcherStats, Leftover};
pub use error::{Error, Problem};
pub use job::{DispatchStatus, Job, JobRecord, JobStatus};
