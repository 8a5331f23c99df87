//! File descriptors: every connection is one. When there are too few, deliveries come first: clients
//! that merely hold connections to the API open must not keep them from leaving.

use crate::config::Config;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For the listener and the connections at its door, logs, name servers, timers, and whatever the
/// system's libraries open.
const RESERVE: usize = 256;
/// Of one database connection: the file, its log, and the index of that.
const FILES_OF_A_READER: usize = 3;
/// Connections besides those of the readers: the writer's, the checkpoint's, and one to spare.
const OTHER_DATABASE_CONNECTIONS: usize = 3;
/// What the API keeps at least, so that an operator can still reach it.
const LEAST_CONNECTIONS: usize = 64;
const LEAST_IN_FLIGHT: usize = 2;

/// Raises the process's own limit as far as it may; returns what it is then.
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

/// Lowers what does not fit below the limit; returns what the operator should know of that.
pub(crate) fn fit(limit: usize, config: &mut Config) -> Option<String> {
    let database = (config.store.readers + OTHER_DATABASE_CONNECTIONS) * FILES_OF_A_READER;
    let wanted = Shares {
        connections: config.limits.connections,
        in_flight: config.engine.in_flight,
        idle: config.pool.idle_overall,
    };
    let needed = wanted.sum() + database + RESERVE;
    let given = wanted.within(limit.saturating_sub(database + RESERVE));
    if given == wanted {
        return None;
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
    Some(format!(
        "the system lets this process have {limit} files open, and the settings may need {needed}. Lowered: {}. \
         Raise the limit (`ulimit -n`, or LimitNOFILE= of systemd) to {needed}, or lower the settings",
        lowered.join(", ")
    ))
}

/// Who may have how many.
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

    /// The API gives way first, down to a few. Then those that wait, down to an eighth of what is there
    /// for receivers: without any, every delivery would begin with a new connection. Deliveries give
    /// way last.
    fn within(self, available: usize) -> Self {
        let least_connections = self.connections.min(LEAST_CONNECTIONS).min(available / 2).max(1);
        let for_receivers = available.saturating_sub(least_connections);
        let beside_deliveries = for_receivers.saturating_sub(self.in_flight);
        let idle = self.idle.min(beside_deliveries.max(for_receivers / 8));
        let in_flight = self.in_flight.min((for_receivers - idle).max(LEAST_IN_FLIGHT));
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
                assert!(
                    given.connections >= 1 && given.in_flight >= LEAST_IN_FLIGHT,
                    "{available}: {given:?}"
                );
                assert!(given.connections <= wanted.connections);
                assert!(given.in_flight <= wanted.in_flight && given.idle <= wanted.idle);
            }
        }
    }

    #[test]
    fn the_warning_names_what_was_lowered_and_what_would_be_enough() {
        let mut config = Config::default();
        let needed = 4096 + 4096 + 1024 + 21 + 256;
        assert_eq!(fit(needed, &mut config), None);
        let warning = fit(needed - 96, &mut config).unwrap();
        assert!(warning.contains(&format!("have {} files open", needed - 96)), "{warning}");
        assert!(warning.contains("Lowered: max_connections from 4096 to 4000. Raise"), "{warning}");
        assert!(warning.contains(&format!("to {needed}, or")), "{warning}");
        assert_eq!((config.limits.connections, config.engine.in_flight), (4000, 4096));
        let warning = fit(1024, &mut config).unwrap();
        assert!(warning.contains("in_flight from 4096 to "), "{warning}");
        assert_eq!(fit(1024, &mut config), None, "what is left fits");
    }
}
