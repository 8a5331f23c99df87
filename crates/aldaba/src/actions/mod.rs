//! What handlers of the API and pages both do, where it is more than one call of the engine.

mod discard;
mod resend;

pub(crate) use discard::{
    DiscardError, DiscardedSlices, Discarding, SLICE, cancel, discard_many, discard_one, slice,
};
pub(crate) use resend::resend;
