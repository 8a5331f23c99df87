//! What the webhooks go to.

use super::http::Message;
use super::{QUIET, WAIT_TIMEOUT};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// An HTTP server on this machine that keeps what it gets.
pub(crate) struct Receiver {
    pub(crate) url: String,
    got: mpsc::UnboundedReceiver<Webhook>,
}

#[derive(Debug)]
pub(crate) struct Webhook {
    pub(crate) body: Value,
    pub(crate) job_id: Option<String>,
    pub(crate) event: Option<String>,
}

impl Receiver {
    /// One that answers everything with this status.
    pub(crate) async fn start(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jobs", listener.local_addr().unwrap());
        let (keep, got) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, status, keep.clone()));
            }
        });
        Self { url, got }
    }

    pub(crate) async fn next(&mut self) -> Webhook {
        timeout(WAIT_TIMEOUT, self.got.recv()).await.expect("no webhook came").unwrap()
    }

    pub(crate) async fn gets_nothing_more(&mut self) {
        if let Ok(webhook) = timeout(QUIET, self.got.recv()).await {
            panic!("a webhook too many: {webhook:?}");
        }
    }
}

async fn serve(mut stream: TcpStream, status: u16, keep: mpsc::UnboundedSender<Webhook>) {
    while let Ok(Some(request)) = Message::read(&mut stream).await {
        let webhook = Webhook {
            body: serde_json::from_slice(request.body()).unwrap(),
            job_id: request.header("x-job-id"),
            event: request.header("x-webhook-event"),
        };
        let _ = keep.send(webhook);
        let answer = format!("HTTP/1.1 {status} Answer\r\ncontent-length: 0\r\n\r\n");
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}
