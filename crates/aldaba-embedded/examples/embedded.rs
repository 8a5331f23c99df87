//! A program with the engine inside: it sells things, and tells its customers of it.
//!
//! `cargo run -p aldaba-embedded --example embedded`

use aldaba_embedded::{Aldaba, EndpointSpec, Event, Message, Policy};
use serde_json::json;
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("aldaba-example-{}", std::process::id()));
    let done = run(&folder, |line| println!("{line}")).await;
    std::fs::remove_dir_all(&folder)?;
    done
}

/// Prints what happens.
pub(crate) async fn run(folder: &Path, print: impl Fn(String)) -> Result<(), Box<dyn Error>> {
    let receiver = receiver().await?;
    let quick = json!({"name": "three-times", "schedule": {"type": "list", "delays": ["200ms", "200ms"]}});
    let quick = Policy::from_json(&quick).map_err(|errors| format!("{errors:?}"))?;
    // The receiver is on this machine, which is closed to deliveries by default.
    let aldaba = Aldaba::builder().sqlite(folder).allow("127.0.0.1/32").policy(quick).start().await?;

    let customer = aldaba.application("customer-17").await?;
    let good = EndpointSpec::to(format!("http://{receiver}/good")).uid("good").events(["order.paid"]);
    let good = customer.add_endpoint(good).await?;
    let bad = EndpointSpec::to(format!("http://{receiver}/bad")).uid("bad").policy("three-times");
    customer.add_endpoint(bad).await?;
    print(format!("customer-17 verifies with {}…", &customer.secret(good.id).await?[..10]));

    // On disk when it returns. Sent twice by mistake, it is accepted once.
    let order = json!({"order": 1, "total": "12.50"});
    let event = Event::new("order.paid", &order)?.idempotency_key("order-1-paid");
    let sent = customer.send(event.clone()).await?;
    print(format!("accepted {}", if sent.is_new { "a new event" } else { "nothing new" }));
    let again = customer.send(event).await?;
    print(format!("sent again: {}", if again.id == sent.id { "the same one" } else { "another one" }));

    let message = loop {
        let message: Message = customer.message(sent.id).await?.ok_or("it is kept")?;
        if message.has_ended() {
            break message;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    for delivery in &message.deliveries {
        let endpoint = customer.endpoint(delivery.endpoint).await?.ok_or("it is there")?;
        let (name, attempts) = (endpoint.uid.unwrap_or_default(), delivery.attempts);
        match &delivery.last_error {
            None => print(format!("{name}: delivered, attempts: {attempts}")),
            Some(error) => print(format!("{name}: given up, attempts: {attempts}, the last: {error}")),
        }
    }

    // What was given up lies in the dead letter until somebody mends the endpoint and sends it again.
    for dead in customer.dead_letter(None, 10).await?.deliveries {
        customer
            .update_endpoint(dead.endpoint, EndpointSpec::to(format!("http://{receiver}/mended")))
            .await?;
        let taken = customer.resend(dead.message, dead.endpoint).await?;
        print(format!("sent once more by hand: {}", if taken { "delivered" } else { "refused" }));
    }
    let left = aldaba.shutdown(Duration::from_secs(10)).await;
    print(format!("stopped, in flight: {}", left.in_flight));
    Ok(())
}

/// Answers 500 below `/bad` and 200 elsewhere.
async fn receiver() -> Result<SocketAddr, std::io::Error> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    Ok(address)
}

/// One request on one connection. A real receiver verifies the signature: see `Verifier`.
async fn answer(mut stream: TcpStream) -> Result<(), std::io::Error> {
    let mut request = Vec::new();
    while !is_whole(&request) {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let status = if request.starts_with(b"POST /bad ") { "500 Internal Server Error" } else { "200 OK" };
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await
}

/// The payload is small, so head and body are told apart by an empty line and a closing brace.
fn is_whole(request: &[u8]) -> bool {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n");
    end.is_some_and(|end| request.len() > end + 4 && request.ends_with(b"}"))
}
