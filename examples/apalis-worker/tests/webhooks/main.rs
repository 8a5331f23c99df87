//! What becomes of the webhooks of a worker's jobs: a real server, a real queue, and processes that are killed.

mod hung;
mod layers;
mod meddling;
mod support;
mod work;
mod worker;
