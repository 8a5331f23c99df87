//! A black hole: accepts every connection and every byte, and never answers.

use crate::background::{Background, listen, runtime, serve_each};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinSet;

pub(crate) struct Hole {
    open: Arc<AtomicUsize>,
    _background: Background,
}

impl Hole {
    pub(crate) fn start(address: SocketAddr) -> io::Result<Self> {
        Self::at_all(&[address])
    }

    pub(crate) fn at_all(addresses: &[SocketAddr]) -> io::Result<Self> {
        let runtime = runtime()?;
        let open = Arc::<AtomicUsize>::default();
        let mut holes = JoinSet::new();
        for address in addresses {
            let listener = runtime.block_on(listen(*address))?;
            let count = Arc::clone(&open);
            let serve = serve_each(listener, move |mut stream| {
                count.fetch_add(1, Ordering::Relaxed);
                let count = Arc::clone(&count);
                async move {
                    stream.ended().await;
                    count.fetch_sub(1, Ordering::Relaxed);
                }
            });
            holes.spawn_on(serve, runtime.handle());
        }
        let work = async move { while holes.join_next().await.is_some() {} };
        Ok(Self { open, _background: Background::run("hole", runtime, work)? })
    }

    /// The number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}
