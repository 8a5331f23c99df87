//! As much HTTP as these tests need.

use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request or an answer: its bytes, and where its body begins.
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
    body: usize,
}

impl Message {
    /// The next one on a connection; none if the connection has ended.
    pub(crate) async fn read(stream: &mut TcpStream) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                let mut message = Self { bytes, body: end + 4 };
                let length: usize = message.header("content-length").map_or(0, |text| text.parse().unwrap());
                let missing = (message.body + length).saturating_sub(message.bytes.len());
                let mut rest = vec![0; missing];
                stream.read_exact(&mut rest).await?;
                message.bytes.append(&mut rest);
                return Ok(Some(message));
            }
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(None);
            }
        }
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.body..]
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let head = String::from_utf8_lossy(&self.bytes[..self.body]).into_owned();
        let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields
            .into_iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
    }

    fn is_success(&self) -> bool {
        self.bytes.starts_with(b"HTTP/1.1 2")
    }
}

/// The body of the answer to a POST, which must be a success.
pub(crate) async fn post(to: SocketAddr, path: &str, token: &str, body: &str) -> serde_json::Value {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {to}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = Message::read(&mut stream).await.unwrap().expect("no answer");
    let text = String::from_utf8_lossy(&answer.bytes);
    assert!(answer.is_success(), "{path}: {text}");
    serde_json::from_slice(answer.body()).unwrap()
}
