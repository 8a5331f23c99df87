//! The contract, call by call: a write goes to the writer's queue, a read to one of the readers. What either does is in the
//! files beside this folder.

mod accepts;
mod audits;
mod credentials;
mod deliveries;
mod directory;
mod dispatches;
mod history;
mod lanes;
mod records;
mod replays;
mod retention;
mod sources;
mod statistics;
