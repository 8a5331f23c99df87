//! Sources: the webhooks of other senders.

pub(crate) mod answers;
pub(crate) mod challenges;
pub(crate) mod events;
pub(crate) mod resource;
pub(crate) mod stage;
pub(crate) mod tokens;
pub(crate) mod types;
