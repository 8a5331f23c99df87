//! Durable webhooks inside another program: Aldaba's delivery engine as a library.
//!
//! An event is on disk when [`Application::send`] returns. From then on it is sent to every matching endpoint of the
//! application, with retries by the endpoint's policy, until it is delivered or in the dead letter with its history. This
//! continues after a crash of the program, at its next start.
//!
//! ```no_run
//! use aldaba_embedded::{Aldaba, EndpointSpec, Event};
//! use serde_json::json;
//! use std::time::Duration;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let aldaba = Aldaba::builder().sqlite("./webhooks").start().await?;
//!
//! // An application is a customer of yours; an endpoint is a URL of theirs.
//! let customer = aldaba.application("customer-17").await?;
//! let endpoint = customer
//!     .add_endpoint(EndpointSpec::to("https://example.com/hook").policy("persistent").events(["invoice.paid"]))
//!     .await?;
//! println!("to verify with: {}", customer.secret(endpoint.id).await?);
//!
//! let invoice = json!({"invoice": 42});
//! let sent = customer.send(Event::new("invoice.paid", &invoice)?.id("invoice-42")).await?;
//!
//! // Later: what became of it?
//! if let Some(message) = customer.message(sent.id).await? {
//!     for delivery in &message.deliveries {
//!         println!("{}: {:?} after {} attempts", delivery.endpoint, delivery.state, delivery.attempts);
//!     }
//! }
//!
//! aldaba.shutdown(Duration::from_secs(30)).await;
//! # Ok(())
//! # }
//! ```
//!
//! # Isolation
//!
//! An [`Aldaba`] has its own data folder and threads, and no global state. Several may run in one process, each with its
//! own folder. It reads no environment variables, handles no signals, and logs through `tracing` if the program
//! subscribes. Its methods may be called from any runtime.
//!
//! The folder is the same as a server's: `aldaba serve --data` on it shows and delivers the same messages, while no
//! program uses it.
//!
//! # Addresses
//!
//! Deliveries go to public addresses only, whatever a URL, a name server or a redirect says. [`Builder::allow`] and
//! [`Builder::allow_private_networks`] allow others.

#![warn(missing_docs)]

mod aldaba;
mod application;
mod builder;
mod dead_letter;
mod dispatch;
mod endpoint;
mod error;
mod event;
mod message;
mod running;

/// Compiles the examples of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
struct Documentation;

pub use aldaba::Aldaba;
pub use application::Application;
pub use builder::Builder;
#[expect(deprecated, reason = "the former name keeps working")]
pub use dead_letter::Place;
pub use dead_letter::{DeadLetterPage, DeadLetterPosition, Recovery};
pub use dispatch::Dispatch;
pub use endpoint::{Endpoint, EndpointSpec};
pub use error::{Error, StartError};
pub use event::{Event, Sent};
pub use message::{Attempt, Delivery, Message};
pub use running::Leftover;

pub use aldaba_delivery::policy::Overrides;
pub use aldaba_delivery::{
    AppId, AttemptId, Condition, EndpointId, FailureKind, MessageId, OnExhausted, Ordering, Policy,
    PolicyError, PolicySpec, Reason, ReplayId, SkipReason, Timestamp, WhenDisabled, policy,
};
pub use aldaba_signature::{Verifier, VerifyError, VerifyingKey};
pub use aldaba_store::{DeliveryState, ReplayState};
