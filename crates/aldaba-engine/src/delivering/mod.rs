//! Makes one attempt: reads the payload, signs it, and passes the request to the [`Transport`].

mod attempt;
mod content;
mod sent_headers;
mod target;
mod transport;

pub(crate) use attempt::{AttemptEnd, AttemptRequest, AttemptResult, Sender};
pub(crate) use content::{BudgetedContent, ContentBudget};
pub use sent_headers::SentHeaders;
pub(crate) use target::{Target, origin_of};
pub use transport::{MAX_STORED_RESPONSE_BYTES, Sending, Transport, WireRequest, WireResponse};
