//! A runtime on its own thread for everything that the server connects to: their work must not delay each other's
//! timestamps.

use crate::http1::Stream;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// Connections that may wait to be accepted; the system's limit is usually the same.
const WAITING: u32 = 4096;
/// Below the range of outgoing connections, so that none of those can take an address while nobody listens on it.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Ends its tasks and sockets when dropped.
pub(crate) struct Background {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    pub(crate) fn run(
        name: &str,
        runtime: Runtime,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let until_stopped = async move {
            tokio::select! {
                () = work => {}
                _ = stopped => {}
            }
        };
        let thread =
            std::thread::Builder::new().name(name.into()).spawn(move || runtime.block_on(until_stopped))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Listens at an address that may have been in use a moment ago.
pub(crate) async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING)
}

/// Serves every connection with its own task, forever.
pub(crate) async fn serve_each<S>(listener: TcpListener, serve: impl Fn(Stream) -> S)
where
    S: Future<Output = ()> + Send + 'static,
{
    loop {
        match listener.accept().await.and_then(|(socket, _)| Stream::new(socket)) {
            Ok(stream) => drop(tokio::spawn(serve(stream))),
            // Probably out of file descriptors: retries after a moment.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// A free address on this machine, another one at every call. It stays free between one listener and the next.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let ports = u32::from(PORTS.end - PORTS.start);
    for _ in 0..ports {
        let offset = (std::process::id() + GIVEN.fetch_add(1, Ordering::Relaxed)) % ports;
        let port = PORTS.start + u16::try_from(offset).unwrap_or_default();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if std::net::TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    Err(io::Error::other("no free port"))
}
