//! One who sends events to a child.

use super::pausing::{HEADER, Point};
use aldaba_receiver::inbound::{Inspector, Recipe, Secret};
use aldaba_signature::SigningKey;
use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SECRET: &str = "whsec_dHJpYWxzLXNlY3JldC1mb3ItdGVzdHMtb25seS0zMmI=";

pub(crate) fn inspector() -> Inspector {
    Inspector::new(Recipe::standard(), [Secret::standard(SECRET).unwrap()]).unwrap()
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn is_duplicate(&self) -> bool {
        self.body.get("duplicate") == Some(&Value::Bool(true))
    }
}

/// `None`, if the receiver was gone before it had answered.
pub(crate) async fn send(port: u16, event_id: &str, stand_still: Option<Point>) -> Option<Answer> {
    let body = format!(r#"{{"type": "payment.success", "of": "{event_id}"}}"#);
    let now = now();
    let signature = SigningKey::parse(SECRET).unwrap().sign(event_id, now, body.as_bytes());
    let asks = stand_still.map_or(String::new(), |point| format!("{HEADER}: {}\r\n", point.name()));
    let request = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\nwebhook-id: {event_id}\r\n\
         webhook-timestamp: {now}\r\nwebhook-signature: {signature}\r\n{asks}\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, body: serde_json::from_str(body).ok()? })
}

#[expect(clippy::disallowed_methods, reason = "a sender has a clock of its own")]
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}
