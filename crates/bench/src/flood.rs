//! A receiver that answers every request with interim heads (1xx), and never with a final one.

use crate::background::{Background, runtime};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const INTERIM: &[u8] = b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n";

pub(crate) struct InterimFlood {
    requests: Arc<AtomicUsize>,
    _background: Background,
}

impl InterimFlood {
    pub(crate) fn start(address: SocketAddr) -> io::Result<Self> {
        let runtime = runtime()?;
        let listener = runtime.block_on(crate::background::listen(address))?;
        let requests = Arc::<AtomicUsize>::default();
        let work = serve(listener, Arc::clone(&requests));
        Ok(Self { requests, _background: Background::run("flood", runtime, work)? })
    }

    /// The number of flooded requests.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

async fn serve(listener: TcpListener, requests: Arc<AtomicUsize>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            continue;
        };
        tokio::spawn(flood(stream, Arc::clone(&requests)));
    }
}

async fn flood(mut stream: TcpStream, requests: Arc<AtomicUsize>) {
    // Reads only the first bytes of the request.
    if !matches!(stream.read(&mut [0; 1024]).await, Ok(1..)) {
        return;
    }
    requests.fetch_add(1, Ordering::Relaxed);
    let many = INTERIM.repeat(256);
    while stream.write_all(&many).await.is_ok() {}
}
