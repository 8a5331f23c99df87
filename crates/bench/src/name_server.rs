//! A name server that hears every question and answers none, neither by UDP nor by TCP.

use crate::Result;
use crate::background::{Background, runtime};
use crate::hole::Hole;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::UdpSocket;

/// `/etc/resolv.conf` can name no other port. The address is one that nobody else uses.
const ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(127, 53, 53, 53)), 53);

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
                let heard = socket.recv_from(&mut question).await.is_ok();
                count.fetch_add(usize::from(heard), Ordering::Relaxed);
            }
        };
        let background = Background::run("name server", runtime, work)?;
        Ok(Self { questions, _tcp: Hole::start(ADDRESS)?, _background: background })
    }

    /// How many questions it has heard.
    pub(crate) fn questions(&self) -> usize {
        self.questions.load(Ordering::Relaxed)
    }

    /// A `resolv.conf` that names it.
    pub(crate) fn configuration() -> String {
        format!("nameserver {}\n", ADDRESS.ip())
    }
}
