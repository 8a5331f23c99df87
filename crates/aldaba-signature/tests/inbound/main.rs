//! Receiving from other senders, against what they document and against vectors that Python's `hmac` and
//! `cryptography` made.

mod challenges;
mod hmacs;
mod identity;
mod page;
mod places;
mod presets;
mod properties;
mod request_headers;
mod samples;
mod secrets;
