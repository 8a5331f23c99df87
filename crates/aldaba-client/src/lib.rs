//! A typed client for [Aldaba](Client), the webhook delivery server. It has every operation of the API, with retries
//! that never repeat an effect.
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
//! **Finding a method.** Methods of one application are at [`Client::app`], all others at the [`Client`]. No request
//! is made before a method is awaited.
//!
//! **Lists** are [`Listing`]s: `.await` returns a [`Page`], [`.all()`](Listing::all) a stream over all items.
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
//! **Retries.** The client retries after broken connections, timeouts, and the answers 429, 502, 503 and 504. Pauses
//! grow, are never shorter than `Retry-After`, and stay within the bounds of [`Retries`]. A POST request carries an
//! idempotency key, so that no retry has a second effect. For a few routes Aldaba keeps no key: these are repeated
//! only if the first request certainly changed nothing.
//!
//! **Errors** are of one type, [`Error`], and say what to do.
//!
//! **Jobs.** A [`Dispatcher`] notifies a job's URL that the job finished, and never fails a job.
//!
//! It runs on tokio, keeps HTTP/1.1 connections open, and uses rustls with the public root certificates. It has no
//! global state and reads no environment variables.

#![warn(missing_docs)]

#[cfg(feature = "apalis")]
pub mod apalis;
mod api;
mod call;
mod client;
mod clock;
mod dispatcher;
mod error;
mod listing;
mod retry;
mod transport;

/// The examples of the documentation compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
struct Documentation;

pub use aldaba_api::{Json, Metadata, Secret, Set, Timestamp};
pub use api::*;
pub use call::PlainAnswer;
pub use client::{Client, ClientBuilder};
pub use dispatcher::{Dispatched, Dispatcher, DispatcherBuilder, DispatcherStats, Leftover};
pub use error::{Error, Problem};
pub use listing::{Everything, Listing, Order, Ordered, Page};
pub use retry::Retries;
