//! Assigns processors. A server that is short of processor time gets its own core: otherwise the load's waits for the
//! processor would count as the server's.

use crate::Result;
use std::num::NonZero;
use std::process::{Command, Stdio};
use std::thread::available_parallelism;

/// The core reserved for the server.
pub(crate) const FIRST: &str = "0";

/// Keeps this process off the first core until it is dropped.
pub(crate) struct Apart {
    cores: usize,
}

impl Apart {
    pub(crate) fn new() -> Result<Self> {
        let cores = available_parallelism().map_or(1, NonZero::get);
        if cores < 2 {
            return Err("this needs two cores: one for the server, one for the load".into());
        }
        keep_to(&format!("1-{}", cores - 1))?;
        Ok(Self { cores })
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = keep_to(&format!("0-{}", self.cores - 1));
    }
}

/// All present and future threads of this process.
fn keep_to(cores: &str) -> Result<()> {
    let own = std::process::id().to_string();
    let status =
        Command::new("taskset").args(["-a", "-c", "-p", cores, &own]).stdout(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("taskset: {status}").into()) }
}
