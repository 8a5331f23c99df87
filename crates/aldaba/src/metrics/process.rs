//! What the system says of this process. Numbers that it does not say are left out.

use super::exposition::Exposition;
use aldaba_delivery::Timestamp;
use rustix::process::{Resource, getrlimit};
use std::fs;

/// Linux counts processor time in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) fn write(out: &mut Exposition, started_at: Timestamp) {
    out.gauge(
        "process_start_time_seconds",
        "When the process began to serve, in Unix time.",
        started_at.millis() as f64 / 1000.0,
    );
    if let Some(seconds) = fs::read_to_string("/proc/self/stat").ok().and_then(|stat| cpu_seconds(&stat)) {
        out.counter("process_cpu_seconds_total", "Processor time that the process has used.", seconds);
    }
    if let Some(bytes) = fs::read_to_string("/proc/self/status").ok().and_then(|text| resident_bytes(&text)) {
        out.gauge("process_resident_memory_bytes", "Memory of the process that is not swapped out.", bytes);
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        out.gauge("process_open_fds", "Open file descriptors.", files.count() as f64);
    }
    if let Some(limit) = getrlimit(Resource::Nofile).current {
        out.gauge("process_max_fds", "How many file descriptors may be open.", limit as f64);
    }
}

/// The fields after the name, which may have spaces: the 12th and 13th of them are the time in user mode and in the kernel.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<_> = fields.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place)?.parse::<u64>().ok();
    Some((ticks(11)? + ticks(12)?) as f64 / TICKS_PER_SECOND)
}

fn resident_bytes(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some((kilobytes * 1024) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_numbers_are_read() {
        let stat = "4242 (al) daba) S 1 2 3 4 5 6 7 8 9 10 250 150 0 0 20 0 9 0 100 0 0";
        assert_eq!(cpu_seconds(stat), Some(4.0));
        assert_eq!(resident_bytes("Name:\taldaba\nVmRSS:\t   2048 kB\n"), Some(2_097_152.0));
        assert_eq!((cpu_seconds("?"), resident_bytes("")), (None, None));
    }
}
