//! Messages, their deliveries and attempts, and lists of them.

pub(crate) mod attempt;
pub(crate) mod delivery;
pub(crate) mod delivery_list;
pub(crate) mod dispatch;
pub(crate) mod keys;
pub(crate) mod message;
pub(crate) mod source_states;
