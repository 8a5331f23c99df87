//! Sign and verify webhooks as Standard Webhooks describes them: `v1` (HMAC-SHA256) and `v1a`
//! (Ed25519) over `<id>.<timestamp>.<body>`. [`Scheme`] has those of other senders too, and [`inbound`] what a
//! receiver must know of each sender.
//!
//! Nothing here reads a clock or draws a random number: time and key material are arguments.

#![warn(missing_docs)]

mod given;
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
