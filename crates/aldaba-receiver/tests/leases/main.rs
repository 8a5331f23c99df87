//! Leases in Redis and in key-value stores: the suite of every ledger, and their own tests.

#![cfg(all(feature = "axum", feature = "redis"))]

mod key_value;
mod key_value_suite;
mod redis_keys;
mod redis_suite;
mod redis_troubles;
mod scene;
mod stores;
#[path = "../suite/mod.rs"]
mod suite;
