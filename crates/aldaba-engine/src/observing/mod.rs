//! What happens, in numbers: for alerts, pages and metrics. Nothing here reads the store when it is asked: the store counts in
//! memory what it commits, and a background task looks at the rest now and then.

mod certificate_dates;
mod certificates;
mod statistics;
mod store_watch;
mod window;

pub use certificates::{CertificateExpiries, CertificateKind};
pub use statistics::{Scope, Statistics};
pub use store_watch::SchedulerLoad;
pub(crate) use store_watch::{StoreWatch, probe_store};
pub use window::WindowCounts;
