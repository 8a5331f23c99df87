//! A small receiver: verifies every webhook with the `standardwebhooks` library, prints it, and
//! answers 200, which every policy takes for success; 400 if the signature is wrong, 405 to whoever only looks.
//!
//! `cargo run --release --package receiver -- 127.0.0.1:9000 whsec_…`

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use standardwebhooks::Webhook;
use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Err(why) = run().await else { return ExitCode::SUCCESS };
    eprintln!("{why}");
    ExitCode::FAILURE
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(secret)) = (arguments.next(), arguments.next()) else {
        return Err("usage: receiver ADDRESS SECRET".into());
    };
    let webhook = Arc::new(Webhook::new(&secret)?);
    let listener = TcpListener::bind(&address).await;
    let listener =
        listener.map_err(|error| format!("cannot listen on {address}: {error}; name another port"))?;
    println!("receiving on http://{address}");
    loop {
        let (stream, _) = listener.accept().await?;
        let webhook = webhook.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| receive(request, &webhook));
            // A sender that goes away in the middle is its own business.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn receive(
    request: Request<Incoming>,
    webhook: &Webhook,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let mut answer = Response::new(Empty::new());
    *answer.status_mut() = match body.collect().await {
        Err(_) => StatusCode::BAD_REQUEST,
        Ok(_) if head.method != Method::POST => StatusCode::METHOD_NOT_ALLOWED,
        Ok(body) => {
            let body = body.to_bytes();
            match webhook.verify(&body, &head.headers) {
                Ok(()) => {
                    println!("verified: {}", String::from_utf8_lossy(&body));
                    StatusCode::OK
                }
                Err(error) => {
                    println!("refused: {error}");
                    StatusCode::BAD_REQUEST
                }
            }
        }
    };
    Ok(answer)
}
