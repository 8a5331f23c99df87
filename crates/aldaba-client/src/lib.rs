//! A typed client for Aldaba, the webhook delivery server.

mod api;
mod call;
mod client;
mod clock;
mod dispatcher;
mod error;
mod json;
mod listing;
mod retry;
mod secret;
mod shape;
mod text;
mod transport;

pub use api::*;
pub use client::{Client, ClientBuilder};
pub use dispatcher::{Dispatched, Dispatcher, DispatcherBuilder, DispatcherStats, Leftover};
pub use error::{Error, Problem};
pub use json::Json;
pub use listing::{Everything, Listing, Order, Ordered, Page};
pub use retry::Retries;
pub use secret::Secret;
pub use shape::{Metadata, Set, Timestamp};
