//! Whose an error of the network is: the receiver's, or our own.

use aldaba_delivery::{AttemptFailure, FailureKind};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

pub(super) const NO_SOCKET: &str = "no free socket, port or memory on this server";

/// What the error of one address means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// No packet left: this machine has no way to the address.
    NoRoute,
    /// No packet left: this machine may not send there, or cannot.
    Local(io::ErrorKind),
    /// The network or the receiver has said so.
    Network(io::ErrorKind),
    /// No packet left: this machine has run out of something.
    Shortage,
}

impl Meaning {
    pub(super) fn of(error: &io::Error, address: SocketAddr) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            // Without free ports, and without an address of our own to send from.
            Kind::AddrNotAvailable if !has_route(address) => Self::NoRoute,
            // A router has said so, or our own table of routes.
            Kind::HostUnreachable | Kind::NetworkUnreachable if !has_route(address) => Self::NoRoute,
            Kind::NetworkDown => Self::NoRoute,
            _ if is_shortage(error) => Self::Shortage,
            kind @ (Kind::ConnectionRefused
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::TimedOut) => Self::Network(kind),
            kind => Self::Local(kind),
        }
    }

    /// Of two addresses, the error that says more. One that could not be tried for a shortage may be well; that
    /// there is no way to one family of addresses is normal on many machines.
    pub(super) fn or(self, other: Self) -> Self {
        if other.weight() > self.weight() { other } else { self }
    }

    fn weight(self) -> u8 {
        use io::ErrorKind::{HostUnreachable, NetworkUnreachable};
        match self {
            Self::NoRoute => 0,
            Self::Local(_) => 1,
            Self::Network(HostUnreachable | NetworkUnreachable) => 2,
            Self::Network(_) => 3,
            Self::Shortage => 4,
        }
    }

    /// In the kind's own words: the error itself can hold an address.
    pub(super) fn failure(self) -> AttemptFailure {
        let (kind, detail) = match self {
            Self::Shortage => (FailureKind::Unsent, NO_SOCKET.into()),
            Self::NoRoute => {
                (FailureKind::Unsent, "this server has no route to the receiver's address".into())
            }
            // A firewall's rule, or a family of addresses that the system does not know: it will not pass by itself.
            Self::Local(kind) => {
                (FailureKind::Internal, format!("this server cannot connect to the receiver: {kind}").into())
            }
            Self::Network(io::ErrorKind::TimedOut) => {
                (FailureKind::ConnectTimeout, "connecting took too long".into())
            }
            Self::Network(kind) => (FailureKind::Connect, kind.to_string().into()),
        };
        AttemptFailure { kind, detail }
    }
}

/// Out of descriptors, ports, buffers or memory: it says nothing about the receiver.
pub(super) fn is_shortage(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrInUse, AddrNotAvailable, OutOfMemory};
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = if cfg!(target_os = "linux") { 105 } else { 55 };
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE | ENOBUFS))
        || matches!(error.kind(), AddrInUse | AddrNotAvailable | OutOfMemory)
}

/// Whether this machine knows a way to the address. A datagram socket is told where its packets would go, which
/// asks the table of routes and sends none.
fn has_route(address: SocketAddr) -> bool {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    match UdpSocket::bind((any, 0)) {
        Ok(socket) => socket.connect(address).is_ok(),
        // A family that this machine does not have; a shortage says nothing of routes.
        Err(error) => is_shortage(&error) && error.kind() != io::ErrorKind::AddrNotAvailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9);
    /// The one address that no socket is let go to on any machine, unless it asks for broadcasts.
    const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::BROADCAST), 9);

    fn raw(code: i32) -> io::Error {
        io::Error::from_raw_os_error(code)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_this_machine_lacks_is_no_failure_of_the_host() {
        // EAGAIN is not among them: no call that connects here gives it.
        for code in [12, 23, 24, 98, 99, 105] {
            assert_eq!(Meaning::of(&raw(code), HERE), Meaning::Shortage, "{}", raw(code));
            assert_eq!(Meaning::of(&raw(code), HERE).failure().kind, FailureKind::Unsent);
        }
        for code in [1, 13, 97] {
            assert_eq!(Meaning::of(&raw(code), HERE).failure().kind, FailureKind::Internal, "{}", raw(code));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_the_network_said_is() {
        for (code, kind) in
            [(111, FailureKind::Connect), (104, FailureKind::Connect), (110, FailureKind::ConnectTimeout)]
        {
            assert_eq!(Meaning::of(&raw(code), HERE).failure().kind, kind, "{}", raw(code));
        }
        // There is a way to this machine: somebody on it has said that it ends.
        for code in [101, 113] {
            assert_eq!(Meaning::of(&raw(code), HERE).failure().kind, FailureKind::Connect, "{}", raw(code));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_address_without_a_route_from_here_is_not_the_hosts_fault() {
        for code in [99, 101, 113] {
            assert_eq!(Meaning::of(&raw(code), NOWHERE), Meaning::NoRoute, "{}", raw(code));
        }
        assert_eq!(Meaning::NoRoute.failure().kind, FailureKind::Unsent);
    }

    #[test]
    fn of_several_addresses_a_shortage_counts_most_and_a_missing_route_least() {
        let network = Meaning::Network;
        let order = [
            Meaning::NoRoute,
            Meaning::Local(io::ErrorKind::PermissionDenied),
            network(io::ErrorKind::NetworkUnreachable),
            network(io::ErrorKind::ConnectionRefused),
            Meaning::Shortage,
        ];
        for pair in order.windows(2) {
            assert_eq!((pair[0].or(pair[1]), pair[1].or(pair[0])), (pair[1], pair[1]));
        }
    }
}
