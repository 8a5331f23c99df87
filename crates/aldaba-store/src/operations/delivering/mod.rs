//! The hot path: events come in, lanes read what is due, results are recorded, with health and gates.

pub(crate) mod accepting;
pub(crate) mod due_times;
pub(crate) mod gate;
pub(crate) mod health;
pub(crate) mod lanes;
pub(crate) mod recording;
pub(crate) mod stop_dates;
