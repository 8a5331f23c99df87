//! Queries the configured name servers for the root zone. A working server can answer that, whatever other
//! name servers do.

use futures_util::future::join_all;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// The most name servers that are queried.
const MAX_RESOLVERS: usize = 3;

/// One query: the name servers (type 2) of the root in the Internet class (1), recursion desired.
const QUERY: [u8; 17] = [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1];

const SERVFAIL: u8 = 2;
const REFUSED: u8 = 5;

/// What the name servers answered for the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wire) struct RootProbe {
    pub(in crate::wire) silent: bool,
    /// All servers that answered failed.
    pub(in crate::wire) failed: bool,
    /// All servers that answered refused.
    pub(in crate::wire) refused: bool,
}

pub(in crate::wire) async fn probe_root(resolvers: &[SocketAddr], within: Duration) -> RootProbe {
    let asked = resolvers.iter().take(MAX_RESOLVERS).map(|resolver| timeout(within, query(*resolver)));
    let codes: Vec<u8> = join_all(asked).await.into_iter().filter_map(|code| code.ok()?.ok()).collect();
    RootProbe {
        silent: codes.is_empty(),
        failed: codes.iter().all(|code| *code == SERVFAIL),
        refused: codes.iter().all(|code| *code == REFUSED),
    }
}

async fn query(resolver: SocketAddr) -> io::Result<u8> {
    let any: IpAddr = match resolver {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    // From here on the socket receives only this server's packets.
    socket.connect(resolver).await?;
    socket.send(&QUERY).await?;
    let mut answer = [0; 512];
    loop {
        let length = socket.recv(&mut answer).await?;
        // The first two bytes are the query id. The top bit of the third marks a response.
        if let [0, 0, flags, code, ..] = answer[..length]
            && flags & 0x80 != 0
        {
            return Ok(code & 0x0f);
        }
    }
}
