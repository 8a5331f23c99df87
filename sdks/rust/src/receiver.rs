//! A small HTTP server with a path for each test.

use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

const WAIT_TIMEOUT: Duration = Duration::from_secs(15);
const SILENCE: Duration = Duration::from_millis(500);

/// A webhook as it came.
#[derive(Debug)]
pub struct Received {
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Received {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }
}

/// A path of the receiver.
pub struct Hook {
    pub url: String,
    requests: Receiver<Received>,
    status: Arc<Mutex<u16>>,
}

impl Hook {
    pub fn next(&self) -> Received {
        self.requests.recv_timeout(WAIT_TIMEOUT).unwrap_or_else(|_| panic!("no webhook came to {}", self.url))
    }

    pub fn stays_silent(&self) {
        if let Ok(extra) = self.requests.recv_timeout(SILENCE) {
            panic!("a webhook came to {}: {extra:?}", self.url);
        }
    }

    /// From now on it answers like this.
    pub fn answer(&self, status: u16) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }
}

type Paths = Mutex<HashMap<String, (Sender<Received>, Arc<Mutex<u16>>)>>;

fn paths() -> &'static Paths {
    static PATHS: OnceLock<Paths> = OnceLock::new();
    PATHS.get_or_init(Paths::default)
}

fn address() -> SocketAddr {
    static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();
    *ADDRESS.get_or_init(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || while serve(&stream).is_some() {});
            }
        });
        address
    })
}

/// A new path that answers like this.
pub fn hook(status: u16) -> Hook {
    let path = format!("/{}", super::unique("hook"));
    let (sender, requests) = channel();
    let status = Arc::new(Mutex::new(status));
    let mut paths = paths().lock().unwrap_or_else(PoisonError::into_inner);
    paths.insert(path.clone(), (sender, Arc::clone(&status)));
    Hook { url: format!("http://{}{path}", address()), requests, status }
}

/// One request; nothing when the connection has ended.
fn serve(mut stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = HeaderMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.append(HeaderName::try_from(name).ok()?, HeaderValue::try_from(value.trim()).ok()?);
    }
    let length = headers.get("content-length")?.to_str().ok()?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let status = {
        let paths = paths().lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, status) = paths.get(&path)?;
        let _ = sender.send(Received { headers, body });
        *status.lock().unwrap_or_else(PoisonError::into_inner)
    };
    let answer = match status {
        204 => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        _ => format!("HTTP/1.1 {status} Answered\r\ncontent-length: 14\r\n\r\n{{\"seen\": true}}"),
    };
    stream.write_all(answer.as_bytes()).ok()
}
