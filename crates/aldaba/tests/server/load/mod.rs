//! Load, connections, limits and wrong clocks.

pub(crate) mod background;
pub(crate) mod clocks;
pub(crate) mod connections;
pub(crate) mod flood;
mod http2;
pub(crate) mod late;
pub(crate) mod limits;
pub(crate) mod overload;
