//! What stands behind the worker at the edge.

use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;

/// How it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Well,
    /// After this time.
    Slowly(Duration),
    /// With 500.
    Badly,
    /// Not at all.
    Never,
}

/// Counts what it is called for.
#[derive(Clone, Debug)]
pub struct Backend {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    manner: Manner,
    calls: Vec<(String, Value)>,
}

impl Backend {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Mutex::new(Shared { manner: Manner::Well, calls: Vec::new() }));
        let backend = Self { address, shared };
        let serving = backend.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let backend = serving.clone();
                let service = service_fn(move |request| backend.clone().answer(request));
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection);
            }
        });
        backend
    }

    pub fn url(&self) -> String {
        format!("http://{}/internal/process-payment", self.address)
    }

    pub fn answers(&self, manner: Manner) {
        self.shared.lock().unwrap().manner = manner;
    }

    /// The bodies of the calls with this key.
    pub fn calls(&self, key: &str) -> Vec<Value> {
        let shared = self.shared.lock().unwrap();
        shared.calls.iter().filter(|(called, _)| called == key).map(|(_, body)| body.clone()).collect()
    }

    /// How many calls there were in all.
    pub fn count(&self) -> usize {
        self.shared.lock().unwrap().calls.len()
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Full<bytes::Bytes>>, Infallible> {
        let key = request.headers().get("idempotency-key").map(|key| key.to_str().unwrap().to_owned());
        let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let manner = {
            let mut shared = self.shared.lock().unwrap();
            shared.calls.push((key.unwrap_or_default(), serde_json::from_slice(&body).unwrap_or_default()));
            shared.manner
        };
        let mut response = Response::new(Full::default());
        match manner {
            Manner::Well => {}
            Manner::Slowly(time) => tokio::time::sleep(time).await,
            Manner::Badly => *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR,
            Manner::Never => std::future::pending().await,
        }
        Ok(response)
    }
}
