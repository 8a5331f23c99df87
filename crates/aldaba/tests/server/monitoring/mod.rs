//! What an operator sees of the server: logs, traces and health.

pub(crate) mod canaries;
pub(crate) mod logs;
pub(crate) mod readiness;
pub(crate) mod request_spans;
pub(crate) mod traces;
