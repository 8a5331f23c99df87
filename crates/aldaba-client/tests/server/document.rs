//! The API's document, and the requests that the client made, by its paths.

use crate::proxy::Seen;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// A method and the pattern of a path.
pub(crate) type Operation = (String, String);

/// What the server says about itself.
pub(crate) async fn read(address: SocketAddr) -> Value {
    let stream = TokioIo::new(tokio::net::TcpStream::connect(address).await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get("/api/v1/openapi.json").header("host", "localhost");
    let request = request.body(Full::<bytes::Bytes>::default()).unwrap();
    let body = sender.send_request(request).await.unwrap().into_body().collect().await.unwrap();
    serde_json::from_slice(&body.to_bytes()).unwrap()
}

pub(crate) fn operations(document: &Value) -> BTreeSet<Operation> {
    // Routes outside of the API are for senders, which do not use this client.
    let paths =
        document["paths"].as_object().unwrap().iter().filter(|(path, _)| path.starts_with("/api/v1/"));
    paths
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone()))
        })
        .collect()
}

/// The operation that a request is one of: where several fit, the one with the most fixed words.
pub(crate) fn operation(document: &Value, seen: &Seen) -> Option<Operation> {
    let given: Vec<_> = seen.path.split('/').collect();
    let fits = |pattern: &str| {
        let parts: Vec<_> = pattern.split('/').collect();
        let same = parts.len() == given.len()
            && parts.iter().zip(&given).all(|(part, word)| part.starts_with('{') || part == word);
        same.then(|| parts.iter().filter(|part| !part.starts_with('{')).count())
    };
    let fitting = operations(document)
        .into_iter()
        .filter(|(method, _)| method == seen.method.as_str())
        .filter_map(|operation| Some((fits(&operation.1)?, operation)));
    fitting.max_by_key(|(fixed, _)| *fixed).map(|(_, operation)| operation)
}
