//! What users configure, and the audit log of it.

pub mod applications;
pub mod audit;
pub mod credentials;
pub mod deleting;
pub mod endpoints;
pub mod event_types;
pub mod policies;
pub mod profiles;
pub mod secrets;
pub mod settings;
pub mod sources;
