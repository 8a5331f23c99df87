//! A receiver on its own thread, outside of every runtime of a test.

use aldaba_embedded::{Verifier, VerifyError, VerifyingKey};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver as Channel, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Arrival {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(given, _)| given == name).map_or("", |(_, value)| value)
    }

    /// Whether its signature is right, by the moment that it says itself.
    pub(crate) fn verified_with(&self, secret: &str) -> Result<(), VerifyError> {
        let key = VerifyingKey::parse(secret).expect("a secret");
        let timestamp = self.header("webhook-timestamp");
        let now = timestamp.parse().expect("seconds");
        let (id, signature) = (self.header("webhook-id"), self.header("webhook-signature"));
        Verifier::new([key]).verify(id, timestamp, signature, &self.body, now)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// What to answer: a status, after a while.
type Judge = dyn Fn(&Arrival) -> (u16, Duration) + Send + Sync;

pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    arrivals: Mutex<Channel<Arrival>>,
}

impl Receiver {
    pub(crate) fn answering(status: u16) -> Self {
        Self::judging(move |_| (status, Duration::ZERO))
    }

    pub(crate) fn judging(judge: impl Fn(&Arrival) -> (u16, Duration) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (arrived, arrivals) = channel();
        let judge: Arc<Judge> = Arc::new(judge);
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let (arrived, judge) = (arrived.clone(), judge.clone());
                std::thread::spawn(move || serve(&stream, &arrived, &*judge));
            }
        });
        Self { address, arrivals: Mutex::new(arrivals) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn next(&self) -> Arrival {
        self.within(WAIT_TIMEOUT).expect("something arrives in time")
    }

    pub(crate) fn within(&self, timeout: Duration) -> Option<Arrival> {
        self.arrivals.lock().expect("no panic").recv_timeout(timeout).ok()
    }

    pub(crate) fn stays_quiet(&self) -> bool {
        self.within(Duration::from_millis(300)).is_none()
    }
}

fn serve(stream: &TcpStream, arrived: &Sender<Arrival>, judge: &Judge) {
    let mut reader = BufReader::new(stream);
    while let Some(arrival) = read(&mut reader) {
        let (status, after) = judge(&arrival);
        if arrived.send(arrival).is_err() {
            return;
        }
        std::thread::sleep(after);
        let answer = format!("HTTP/1.1 {status} Said\r\ncontent-length: 0\r\n\r\n");
        let mut stream = stream;
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut impl BufRead) -> Option<Arrival> {
    let mut line = || {
        let mut line = String::new();
        (reader.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
    };
    let path = line()?.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    while let Some(line) = line().filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut arrival = Arrival { path, headers, body: Vec::new() };
    let length = arrival.header("content-length").parse().ok()?;
    arrival.body.resize(length, 0);
    reader.read_exact(&mut arrival.body).ok()?;
    Some(arrival)
}
