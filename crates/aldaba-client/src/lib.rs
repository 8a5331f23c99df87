//! A typed client for [Aldaba](Client), the webhook delivery server: every operation of its API, with retries that
//! never repeat an effect.
//!
//! ```no_run
//! use aldaba_client::{Client, NewApplication, NewEndpoint, NewMessage};
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), aldaba_client::Error> {
//! let client = Client::new("http://localhost:8071", "a token or an API key")?;
//! client.applications().get_or_create(&NewApplication::with_uid("Acme", "acme")).await?;
//!
//! let acme = client.app("acme");
//! acme.endpoints().create(&NewEndpoint::new("https://example.com/hook")).await?;
//! let sent = acme.messages().send(&NewMessage::new("invoice.paid", json!({"invoice": 17}))).await?;
//! assert_eq!(acme.message(&sent.id).get().await?.event_type, "invoice.paid");
//! # Ok(())
//! # }
//! ```
//!
//! **Finding a method.** What belongs to an application is at [`Client::app`], everything else at the [`Client`].
//! Nothing is asked before a method is awaited.
//!
//! **Lists** are [`Listing`]s: `.await` gives a [`Page`], [`.all()`](Listing::all) a stream over all items.
//!
//! ```no_run
//! use futures_util::TryStreamExt;
//!
//! # async fn example(client: aldaba_client::Client) -> Result<(), aldaba_client::Error> {
//! let endpoints: Vec<_> = client.app("acme").endpoints().list_all().try_collect().await?;
//! # Ok(())
//! # }
//! ```
//!
//! **Retries.** A connection that breaks, a timeout, and the answers 429, 502, 503 and 504 are tried again, with growing
//! pauses and never before `Retry-After`, within the bounds of [`Retries`]. A POST carries an idempotency key that is
//! made once for the call, so that no retry has a second effect; the few that Aldaba keeps no key for are not
//! repeated unless they certainly did nothing.
//!
//! **Errors** are of one type, [`Error`], and say what to do.
//!
//! **Jobs.** A [`Dispatcher`] tells the end of jobs to the URLs that want to know, and never fails a job.
//!
//! It runs on tokio, speaks HTTP/1.1 with connections that are kept, and trusts the roots of the web with rustls. It
//! has no global state and reads no variables of the environment.

#![warn(missing_docs)]

#[cfg(feature = "apalis")]
pub mod apalis;
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

/// The examples of the documentation compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
struct Documentation;

pub use api::*;
pub use client::{Client, ClientBuilder};
pub use dispatcher::{Dispatched, Dispatcher, DispatcherBuilder, DispatcherStats, Leftover};
pub use error::{Error, Problem};
pub use json::Json;
pub use listing::{Everything, Listing, Order, Ordered, Page};
pub use retry::Retries;
pub use secret::Secret;
pub use shape::{Metadata, Set, Timestamp};
