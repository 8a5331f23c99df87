//! What systemd is told of the server (`sd_notify`): when it is ready, reloads and stops, and that it is alive. Without a
//! service manager nothing is sent. docs/monitoring.md has the lines.

mod watchdog;

pub(crate) use watchdog::Liveness;

use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";
const WATCHDOG_VARIABLE: &str = "WATCHDOG_USEC";
const WATCHDOG_PROCESS_VARIABLE: &str = "WATCHDOG_PID";
/// How long a message may wait for room: a service manager that reads nothing must not stop the server.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a start or a stop that takes long asks for more time, and for how much.
const EXTENSION_INTERVAL: Duration = Duration::from_secs(5);
const EXTENSION: Duration = Duration::from_secs(30);

/// The service manager that started the process, if one did. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceManager(Option<Arc<NotifySocket>>);

#[derive(Debug)]
struct NotifySocket {
    socket: UnixDatagram,
    /// How long the process may be silent.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// By the variables of the environment. A socket that cannot be used is logged, and nobody is told anything.
    pub(crate) fn of(variables: &BTreeMap<String, String>) -> Self {
        let Some(name) = variables.get(SOCKET_VARIABLE).filter(|name| !name.is_empty()) else {
            return Self::default();
        };
        let watchdog = watchdog_interval(variables, std::process::id());
        match connect(name) {
            Ok(socket) => Self(Some(Arc::new(NotifySocket { socket, watchdog }))),
            Err(error) => {
                tracing::warn!(%error, "NOTIFY_SOCKET cannot be used; the service manager is told nothing");
                Self(None)
            }
        }
    }

    /// Clients are served.
    pub(crate) fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// Settings are read again; [`ready`](Self::ready) ends it. The time tells this reload from an earlier one.
    pub(crate) fn reloading(&self) {
        if self.0.is_some() {
            self.send(&format!(
                "RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=reading the settings again",
                monotonic_micros()
            ));
        }
    }

    /// Requests in progress end, and nothing new begins.
    pub(crate) fn stopping(&self, status: &str) {
        self.send(&format!("STOPPING=1\nSTATUS={}", one_line(status)));
    }

    fn status(&self, status: &str) {
        self.send(&format!("STATUS={}", one_line(status)));
    }

    /// Does work that may take longer than the service manager waits by itself, and asks for more time meanwhile.
    pub(crate) async fn extending<T>(&self, status: &str, work: impl Future<Output = T>) -> T {
        if self.0.is_none() {
            return work.await;
        }
        let (manager, status) = (self.clone(), one_line(status));
        // A task of its own: the work may keep its thread busy.
        let asking = tokio::spawn(async move {
            loop {
                tokio::time::sleep(EXTENSION_INTERVAL).await;
                manager.send(&format!("EXTEND_TIMEOUT_USEC={}\nSTATUS={status}", EXTENSION.as_micros()));
            }
        });
        let asking = AbortOnDrop(asking.abort_handle());
        let done = work.await;
        drop(asking);
        done
    }

    fn send(&self, message: &str) {
        let Some(manager) = &self.0 else { return };
        if let Err(error) = manager.socket.send(message.as_bytes()) {
            tracing::debug!(%error, "the service manager could not be told something");
        }
    }
}

/// Aborts a task on drop.
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A path, or with `@` a name that no file has.
fn connect(name: &str) -> io::Result<UnixDatagram> {
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_write_timeout(Some(SEND_TIMEOUT))?;
    Ok(socket)
}

/// `None`: nobody waits for signs of life of this process.
fn watchdog_interval(variables: &BTreeMap<String, String>, process: u32) -> Option<Duration> {
    let micros = variables.get(WATCHDOG_VARIABLE)?.parse().ok().filter(|micros| *micros > 0)?;
    let is_meant = match variables.get(WATCHDOG_PROCESS_VARIABLE) {
        None => true,
        Some(meant) => meant.parse() == Ok(process),
    };
    is_meant.then(|| Duration::from_micros(micros))
}

/// The clock that the service manager compares with its own, so it is not the engine's.
fn monotonic_micros() -> u128 {
    let now = clock_gettime(ClockId::Monotonic);
    let since = Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0));
    since.as_micros()
}

/// A message has a line for each of its parts.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_watchdog_waits_only_for_the_process_that_it_names() {
        let interval = |pairs: &[(&str, &str)]| watchdog_interval(&variables(pairs), 42);
        let (second, named) = (("WATCHDOG_USEC", "1000000"), ("WATCHDOG_PID", "42"));
        assert_eq!(interval(&[]), None);
        assert_eq!(interval(&[second]), Some(Duration::from_secs(1)));
        assert_eq!(interval(&[second, named]), Some(Duration::from_secs(1)));
        assert_eq!(interval(&[second, ("WATCHDOG_PID", "43")]), None);
        assert_eq!(interval(&[("WATCHDOG_USEC", "0")]), None);
        assert_eq!(interval(&[("WATCHDOG_USEC", "soon")]), None);
    }

    #[test]
    fn messages_arrive_at_a_path_and_at_an_abstract_name_and_a_status_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("aldaba-test-{}", std::process::id());
        let of_name = SocketAddr::from_abstract_name(&name).unwrap();
        for (socket, named) in [
            (UnixDatagram::bind(&path).unwrap(), path.display().to_string()),
            (UnixDatagram::bind_addr(&of_name).unwrap(), format!("@{name}")),
        ] {
            let manager = ServiceManager::of(&variables(&[(SOCKET_VARIABLE, &named)]));
            manager.ready("two\nlines");
            let mut message = [0; 100];
            let length = socket.recv(&mut message).unwrap();
            assert_eq!(&message[..length], b"READY=1\nSTATUS=two lines");
        }
    }

    #[test]
    fn without_a_service_manager_or_with_one_that_is_away_nothing_happens() {
        for manager in [
            ServiceManager::of(&variables(&[])),
            ServiceManager::of(&variables(&[(SOCKET_VARIABLE, "/no/such/socket")])),
        ] {
            manager.ready("here");
            assert!(manager.0.is_none());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_takes_long_asks_for_time_until_it_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let manager = ServiceManager::of(&variables(&[(SOCKET_VARIABLE, path.to_str().unwrap())]));
        manager
            .extending("opening", tokio::time::sleep(EXTENSION_INTERVAL * 2 + EXTENSION_INTERVAL / 2))
            .await;
        tokio::time::sleep(EXTENSION_INTERVAL * 3).await;
        let mut messages = Vec::new();
        let mut message = [0; 100];
        while let Ok(length) = socket.recv(&mut message) {
            messages.push(String::from_utf8_lossy(&message[..length]).into_owned());
        }
        assert_eq!(messages, ["EXTEND_TIMEOUT_USEC=30000000\nSTATUS=opening"; 2]);
    }
}
