//! Signs and verifies webhooks according to Standard Webhooks: `v1` (HMAC-SHA256) and `v1a` (Ed25519) over
//! `<id>.<timestamp>.<body>`. [`Scheme`] has the schemes of other senders, and [`inbound`] the recipes of senders.
//!
//! No function reads a clock or a random number generator: time and key material are arguments.

#![warn(missing_docs)]

mod decoded;
mod hex;
pub mod inbound;
mod key;
mod scheme;
mod sign;
mod verify;

pub use key::{KeyError, MAX_SECRET, MIN_SECRET, SigningKey};
pub use scheme::{HashKind, Scheme};
pub use sign::signature_header;
pub use verify::{DEFAULT_TOLERANCE, MAX_SIGNATURES, TimeUnit, Verifier, VerifyError, VerifyingKey};
