use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// One keep-alive connection to the API. Any trouble is an error: the caller decides what it means.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    token: String,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr, token: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), token: token.to_owned() })
    }

    pub(crate) fn get(&mut self, path: &str) -> std::io::Result<Answer> {
        self.request("GET", path, None, "")
    }

    pub(crate) fn put(&mut self, path: &str, body: &str) -> std::io::Result<Answer> {
        self.request("PUT", path, None, body)
    }

    pub(crate) fn delete(&mut self, path: &str) -> std::io::Result<Answer> {
        self.request("DELETE", path, None, "")
    }

    pub(crate) fn post(&mut self, path: &str, key: Option<&str>, body: &str) -> std::io::Result<Answer> {
        self.request("POST", path, key, body)
    }

    fn request(
        &mut self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: &str,
    ) -> std::io::Result<Answer> {
        let key = key.map(|key| format!("idempotency-key: {key}\r\n")).unwrap_or_default();
        let headers =
            format!("authorization: Bearer {}\r\n{key}content-type: application/json\r\n", self.token);
        self.send(&format!("{method} /api/v1{path}"), &headers, body)
    }

    /// A POST outside of the API. Each header ends its line.
    pub(crate) fn post_inbound(&mut self, path: &str, headers: &str, body: &str) -> std::io::Result<Answer> {
        self.send(&format!("POST {path}"), headers, body)
    }

    fn send(&mut self, what: &str, headers: &str, body: &str) -> std::io::Result<Answer> {
        let length = body.len();
        let request =
            format!("{what} HTTP/1.1\r\nhost: aldaba\r\n{headers}content-length: {length}\r\n\r\n{body}");
        self.stream.get_mut().write_all(request.as_bytes())?;
        let status = self.line()?.split(' ').nth(1).and_then(|status| status.parse().ok());
        let mut length = 0;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(std::io::Error::other)?;
            }
        }
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        let status = status.ok_or_else(|| std::io::Error::other("no status"))?;
        Ok(Answer { status, body: serde_json::from_slice(&bytes).unwrap_or(Value::Null) })
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}
