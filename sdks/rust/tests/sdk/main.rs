//! The official Rust SDK against a running server, area by area.

mod access;
mod applications;
mod attempts;
mod endpoints;
mod event_types;
mod messages;
