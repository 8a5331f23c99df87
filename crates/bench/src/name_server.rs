//! A name server that receives every query and answers none about a host, by UDP or TCP. For the root it answers that
//! nothing exists: so it counts as a working resolver whose upstream servers are silent.

use crate::Result;
use crate::background::{Background, runtime};
use crate::hole::Hole;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::UdpSocket;

/// `/etc/resolv.conf` cannot name another port. No other program uses this address.
const ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(127, 53, 53, 53)), 53);

const NAME_AT: usize = 12;
const ANSWER: u8 = 0x80;

pub(crate) struct SilentNameServer {
    questions: Arc<AtomicUsize>,
    _tcp: Hole,
    _background: Background,
}

impl SilentNameServer {
    pub(crate) fn start() -> Result<Self> {
        let runtime = runtime()?;
        let socket = runtime.block_on(UdpSocket::bind(ADDRESS));
        let socket =
            socket.map_err(|error| format!("cannot listen on {ADDRESS}, which needs root: {error}"))?;
        let questions = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&questions);
        let work = async move {
            let mut question = [0; 512];
            loop {
                let Ok((length, from)) = socket.recv_from(&mut question).await else { continue };
                // The name follows twelve bytes; the name of the root is empty.
                if length > NAME_AT && question[NAME_AT] == 0 {
                    question[2] |= ANSWER;
                    let _ = socket.send_to(&question[..length], from).await;
                } else {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let background = Background::run("name server", runtime, work)?;
        Ok(Self { questions, _tcp: Hole::start(ADDRESS)?, _background: background })
    }

    /// The number of received queries.
    pub(crate) fn questions(&self) -> usize {
        self.questions.load(Ordering::Relaxed)
    }

    /// A `resolv.conf` that names this server.
    pub(crate) fn configuration() -> String {
        format!("nameserver {}\n", ADDRESS.ip())
    }
}
