use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A delivery as the receiver saw it.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) path: String,
    pub(crate) message: String,
    pub(crate) body: Vec<u8>,
    pub(crate) at: Instant,
    /// The answer that it got.
    pub(crate) status: u16,
}

/// An HTTP receiver, a thread a connection. `decide` is asked for the status of every arrival.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    arrivals: mpsc::Receiver<Arrival>,
}

type Decide = Arc<Mutex<dyn FnMut(&str, &str) -> u16 + Send>>;

impl Receiver {
    /// `decide(path, message id)` gives the status to answer with.
    pub(crate) fn start(decide: impl FnMut(&str, &str) -> u16 + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        let (arrived, arrivals) = mpsc::channel();
        let decide: Decide = Arc::new(Mutex::new(decide));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (decide, arrived) = (decide.clone(), arrived.clone());
                // A sender that is killed in the middle of a request is part of the test.
                std::thread::spawn(move || drop(serve(stream, &decide, &arrived)));
            }
        });
        Self { address, arrivals }
    }

    /// The next arrival, or `None` if none comes in time.
    pub(crate) fn next(&self, timeout: std::time::Duration) -> Option<Arrival> {
        self.arrivals.recv_timeout(timeout).ok()
    }
}

fn serve(stream: TcpStream, decide: &Decide, arrived: &mpsc::Sender<Arrival>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let (mut length, mut message) = (0, String::new());
        loop {
            line.clear();
            stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().map_err(std::io::Error::other)?,
                "webhook-id" => value.trim().clone_into(&mut message),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        let at = now();
        let status = (decide.lock().expect("no test panicked in it"))(&path, &message);
        let _ = arrived.send(Arrival { path, message, body, at, status });
        write!(stream.get_mut(), "HTTP/1.1 {status} Answer\r\ncontent-length: 0\r\n\r\n")?;
    }
}

#[expect(clippy::disallowed_methods, reason = "a receiver has a clock of its own")]
fn now() -> Instant {
    Instant::now()
}
