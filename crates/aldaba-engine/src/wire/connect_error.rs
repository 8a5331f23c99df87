//! Classifies network errors: caused by the receiver, or by this server.

use aldaba_delivery::{AttemptFailure, FailureKind};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

pub(super) const NO_LOCAL_RESOURCES: &str = "no free socket, port or memory on this server";

/// The cause of a failed connection to one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectError {
    /// This machine has no route to the address. No packet was sent.
    NoRoute,
    /// This machine may not or cannot send to the address. No packet was sent.
    Local(io::ErrorKind),
    /// The network or the receiver refused.
    Network(io::ErrorKind),
    /// This machine ran out of a resource. No packet was sent.
    Shortage,
}

impl ConnectError {
    pub(super) fn of(error: &io::Error, address: SocketAddr) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            // Means either no free port, or no local address for this route.
            Kind::AddrNotAvailable if !has_route(address) => Self::NoRoute,
            // Reported by a router, or by the local routing table.
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

    /// The more specific of the errors of two addresses. Exhaustion wins, since the other address may work.
    /// A missing route loses: many machines have no route for one address family.
    pub(super) fn more_specific(self, other: Self) -> Self {
        if other.priority() > self.priority() { other } else { self }
    }

    fn priority(self) -> u8 {
        use io::ErrorKind::{HostUnreachable, NetworkUnreachable};
        match self {
            Self::NoRoute => 0,
            Self::Local(_) => 1,
            Self::Network(HostUnreachable | NetworkUnreachable) => 2,
            Self::Network(_) => 3,
            Self::Shortage => 4,
        }
    }

    /// Uses the kind's description, since the error itself can contain an address.
    pub(super) fn failure(self) -> AttemptFailure {
        let (kind, detail) = match self {
            Self::Shortage => (FailureKind::Unsent, NO_LOCAL_RESOURCES.into()),
            Self::NoRoute => {
                (FailureKind::Unsent, "this server has no route to the receiver's address".into())
            }
            // A firewall rule, or an unsupported address family: it is permanent.
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

/// Whether descriptors, ports, buffers or memory ran out. That says nothing about the receiver.
pub(super) fn is_shortage(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrInUse, AddrNotAvailable, OutOfMemory};
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = if cfg!(target_os = "linux") { 105 } else { 55 };
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE | ENOBUFS))
        || matches!(error.kind(), AddrInUse | AddrNotAvailable | OutOfMemory)
}

/// Whether this machine has a route to the address. Connecting a datagram socket consults the routing table
/// and sends no packet.
fn has_route(address: SocketAddr) -> bool {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    match UdpSocket::bind((any, 0)) {
        Ok(socket) => socket.connect(address).is_ok(),
        // The address family is unsupported; an exhausted resource says nothing about routes.
        Err(error) => is_shortage(&error) && error.kind() != io::ErrorKind::AddrNotAvailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9);
    /// No socket may connect to this address without the broadcast option.
    const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::BROADCAST), 9);

    fn raw(code: i32) -> io::Error {
        io::Error::from_raw_os_error(code)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn exhausted_local_resources_are_not_counted_against_the_host() {
        // EAGAIN is not listed: no call that connects here returns it.
        for code in [12, 23, 24, 98, 99, 105] {
            assert_eq!(ConnectError::of(&raw(code), HERE), ConnectError::Shortage, "{}", raw(code));
            assert_eq!(ConnectError::of(&raw(code), HERE).failure().kind, FailureKind::Unsent);
        }
        for code in [1, 13, 97] {
            assert_eq!(
                ConnectError::of(&raw(code), HERE).failure().kind,
                FailureKind::Internal,
                "{}",
                raw(code)
            );
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn errors_from_the_network_are_counted_against_the_host() {
        for (code, kind) in
            [(111, FailureKind::Connect), (104, FailureKind::Connect), (110, FailureKind::ConnectTimeout)]
        {
            assert_eq!(ConnectError::of(&raw(code), HERE).failure().kind, kind, "{}", raw(code));
        }
        // There is a route to this machine, so the error came from the network.
        for code in [101, 113] {
            assert_eq!(
                ConnectError::of(&raw(code), HERE).failure().kind,
                FailureKind::Connect,
                "{}",
                raw(code)
            );
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_missing_route_is_not_counted_against_the_host() {
        for code in [99, 101, 113] {
            assert_eq!(ConnectError::of(&raw(code), NOWHERE), ConnectError::NoRoute, "{}", raw(code));
        }
        assert_eq!(ConnectError::NoRoute.failure().kind, FailureKind::Unsent);
    }

    #[test]
    fn of_several_addresses_exhaustion_counts_most_and_a_missing_route_least() {
        let network = ConnectError::Network;
        let order = [
            ConnectError::NoRoute,
            ConnectError::Local(io::ErrorKind::PermissionDenied),
            network(io::ErrorKind::NetworkUnreachable),
            network(io::ErrorKind::ConnectionRefused),
            ConnectError::Shortage,
        ];
        for pair in order.windows(2) {
            assert_eq!((pair[0].more_specific(pair[1]), pair[1].more_specific(pair[0])), (pair[1], pair[1]));
        }
    }
}
