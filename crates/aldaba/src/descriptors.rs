//! Shares out file descriptors: every connection is one. When there are too few, deliveries come first: clients that
//! only hold connections to the API open must not keep deliveries from leaving.

use crate::config::Config;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are open under any load: standard input and output, the listener, the runtimes, the lock and the
/// address of the data folder, the log, and those of the system's libraries.
const BASE_FILES: usize = 43;
/// Files for pending connections and for name lookups together: a share of the rest, within bounds.
const TRANSIENT_SHARE: usize = 4;
const MIN_TRANSIENT: usize = 16;
const MAX_TRANSIENT: usize = 213;
/// The pending connections' share of them.
const PENDING_EIGHTHS: usize = 5;
/// Files of one database connection: the database, its log, and the log's index.
const FILES_PER_READER: usize = 3;
/// Database connections besides the readers': the writer's, the checkpoint's, and one to spare.
const OTHER_DATABASE_CONNECTIONS: usize = 3;
/// Connections that the API keeps, if there are enough, so that an operator can still reach it.
const MIN_CONNECTIONS: usize = 64;
const MIN_IN_FLIGHT: usize = 2;
/// Connections of all kinds below which a start is useless: 24 for the API and as many for deliveries.
const MIN_FOR_CONNECTIONS: usize = 48;

/// The process may open too few files to be of use.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the system lets this process have {limit} files open, and at least {least} are needed with `readers` as it is. Raise the limit \
     (`ulimit -n {least}`, or LimitNOFILE={least} of systemd; 10,000 or more serve the defaults), or lower `readers`"
)]
pub(crate) struct TooFewFiles {
    limit: usize,
    least: usize,
}

/// Raises the process's own limit as far as possible; returns the limit.
pub(crate) fn raise_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
        if let Err(error) = raised {
            tracing::warn!(%error, "cannot raise the limit on open files");
        }
    }
    let now = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(now).unwrap_or(usize::MAX)
}

/// Lowers the settings that do not fit below the limit; returns warnings for the operator.
pub(crate) fn fit(limit: usize, config: &mut Config) -> Result<Option<String>, TooFewFiles> {
    let database = (config.store.readers + OTHER_DATABASE_CONNECTIONS) * FILES_PER_READER;
    let least = BASE_FILES + database + MIN_TRANSIENT + MIN_FOR_CONNECTIONS;
    if limit < least {
        return Err(TooFewFiles { limit, least });
    }
    let available = limit - BASE_FILES - database;
    let transient = (available / TRANSIENT_SHARE).clamp(MIN_TRANSIENT, MAX_TRANSIENT);
    config.limits.pending_connections =
        config.limits.pending_connections.min(transient * PENDING_EIGHTHS / 8);
    let wanted = Shares {
        connections: config.limits.connections,
        in_flight: config.engine.in_flight,
        idle: config.pool.idle_overall,
    };
    let needed = wanted.sum() + database + BASE_FILES + MAX_TRANSIENT;
    let given = wanted.within(available - transient);
    if given == wanted {
        return Ok(None);
    }
    config.limits.connections = given.connections;
    config.engine.in_flight = given.in_flight;
    config.pool.idle_overall = given.idle;
    let lowered = [
        ("max_connections", wanted.connections, given.connections),
        ("connections kept open to receivers", wanted.idle, given.idle),
        ("in_flight", wanted.in_flight, given.in_flight),
    ];
    let lowered = lowered.iter().filter(|(_, from, to)| from != to);
    let lowered: Vec<_> = lowered.map(|(what, from, to)| format!("{what} from {from} to {to}")).collect();
    Ok(Some(format!(
        "the system lets this process have {limit} files open, and the settings may need {needed}. Lowered: {}. \
         Raise the limit (`ulimit -n`, or LimitNOFILE= of systemd) to {needed}, or lower the settings",
        lowered.join(", ")
    )))
}

/// The connections of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shares {
    /// Clients of the API.
    connections: usize,
    /// Deliveries on the wire.
    in_flight: usize,
    /// Connections to receivers that wait for the next delivery.
    idle: usize,
}

impl Shares {
    fn sum(self) -> usize {
        self.connections + self.in_flight + self.idle
    }

    /// The API gives way first, down to a few. Then idle connections, down to an eighth of those to receivers:
    /// without any, every delivery would begin with a new connection. Deliveries give way last.
    fn within(self, available: usize) -> Self {
        let least_connections = self.connections.min(MIN_CONNECTIONS).min(available / 2).max(1);
        let for_receivers = available.saturating_sub(least_connections);
        let beside_deliveries = for_receivers.saturating_sub(self.in_flight);
        let idle = self.idle.min(beside_deliveries.max(for_receivers / 8));
        let in_flight = self.in_flight.min((for_receivers - idle).max(MIN_IN_FLIGHT));
        let left = available.saturating_sub(in_flight + idle);
        Self { connections: self.connections.min(left.max(least_connections)), in_flight, idle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Shares = Shares { connections: 4096, in_flight: 4096, idle: 1024 };

    #[test]
    fn with_enough_descriptors_everybody_gets_what_they_want() {
        assert_eq!(WANTED.within(WANTED.sum()), WANTED);
        assert_eq!(WANTED.within(usize::MAX), WANTED);
    }

    #[test]
    fn the_api_gives_way_first_then_waiting_connections_then_deliveries() {
        let shares = |connections, in_flight, idle| Shares { connections, in_flight, idle };
        assert_eq!(WANTED.within(9215), shares(4095, 4096, 1024));
        assert_eq!(WANTED.within(6000), shares(880, 4096, 1024));
        assert_eq!(WANTED.within(5184), shares(64, 4096, 1024));
        assert_eq!(WANTED.within(5064), shares(64, 4096, 904));
        assert_eq!(WANTED.within(4064), shares(64, 3500, 500));
        assert_eq!(WANTED.within(864), shares(64, 700, 100));
    }

    #[test]
    fn what_is_given_always_fits_and_is_never_more_than_wanted() {
        for available in 4..12_000 {
            for wanted in [WANTED, Shares { connections: 1, in_flight: 2, idle: 0 }] {
                let given = wanted.within(available);
                assert!(given.sum() <= available, "{available}: {given:?}");
                assert!(given.connections >= 1 && given.in_flight >= MIN_IN_FLIGHT, "{available}: {given:?}");
                assert!(given.connections <= wanted.connections);
                assert!(given.in_flight <= wanted.in_flight && given.idle <= wanted.idle);
            }
        }
    }

    /// The settings that fit within a limit.
    fn fitted(limit: usize) -> Config {
        let mut config = Config::default();
        fit(limit, &mut config).expect("enough to start");
        config
    }

    #[test]
    fn with_few_files_there_are_as_many_connections_as_they_allow() {
        let shares = |limit| {
            let config = fitted(limit);
            (
                config.limits.connections,
                config.engine.in_flight,
                config.pool.idle_overall,
                config.limits.pending_connections,
            )
        };
        assert_eq!(shares(128), (24, 21, 3, 10));
        assert_eq!(shares(256), (64, 70, 10, 30));
        assert_eq!(shares(512), (64, 238, 34, 70));
        assert_eq!(shares(1024), (64, 598, 85, 128));
    }

    #[test]
    fn everything_together_stays_below_the_limit() {
        for limit in 128..20_000 {
            let config = fitted(limit);
            let database = (config.store.readers + OTHER_DATABASE_CONNECTIONS) * FILES_PER_READER;
            let open = config.limits.connections
                + config.limits.pending_connections
                + config.engine.in_flight
                + config.pool.idle_overall;
            assert!(open + database + BASE_FILES <= limit, "{limit}: {open}");
        }
    }

    #[test]
    fn a_start_is_refused_below_the_least_that_is_of_use() {
        let mut config = Config::default();
        assert_eq!(fit(127, &mut config), Err(TooFewFiles { limit: 127, least: 128 }));
        let told = fit(64, &mut config).unwrap_err().to_string();
        assert!(told.contains("64 files open, and at least 128 are needed"), "{told}");
        assert!(told.contains("`ulimit -n 128`"), "{told}");
        config.store.readers = 8;
        assert_eq!(fit(128, &mut config).unwrap_err(), TooFewFiles { limit: 128, least: 140 });
    }

    #[test]
    fn the_warning_names_what_was_lowered_and_what_would_be_enough() {
        let mut config = Config::default();
        let needed = 4096 + 4096 + 1024 + 21 + 256;
        assert_eq!(fit(needed, &mut config), Ok(None));
        let warning = fit(needed - 96, &mut config).unwrap().unwrap();
        assert!(warning.contains(&format!("have {} files open", needed - 96)), "{warning}");
        assert!(warning.contains("Lowered: max_connections from 4096 to 4000. Raise"), "{warning}");
        assert!(warning.contains(&format!("to {needed}, or")), "{warning}");
        assert_eq!((config.limits.connections, config.engine.in_flight), (4000, 4096));
        let warning = fit(1024, &mut config).unwrap().unwrap();
        assert!(warning.contains("in_flight from 4096 to "), "{warning}");
        assert_eq!(fit(1024, &mut config), Ok(None), "what is left fits");
    }
}
