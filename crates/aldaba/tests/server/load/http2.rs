//! What a client may do over HTTP/2: streams, resets, slow reading, and the end of connections.

use crate::support::running::Running;
use crate::support::secure_receiver::Authority;
use aldaba::config::Config;
use bytes::Bytes;
use h2::client::{self, SendRequest};
use http::{Request, StatusCode};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// A server with TLS, and what its clients trust.
struct Secure {
    server: Running,
    authority: Authority,
    _files: TempDir,
}

impl Secure {
    async fn start(change: impl FnOnce(&mut Config)) -> Self {
        let (authority, files) = (Authority::new(), tempfile::tempdir().unwrap());
        let [certificate, key] = authority.identity();
        let [at, key_at] = ["certificate.pem", "key.pem"].map(|name| files.path().join(name));
        std::fs::write(&at, certificate).unwrap();
        std::fs::write(&key_at, key).unwrap();
        let server = Running::with(|config| {
            (config.tls_certificate, config.tls_key) = (Some(at), Some(key_at));
            change(config);
        })
        .await;
        Self { server, authority, _files: files }
    }

    async fn connect(&self, protocol: &str) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        let pem = std::fs::read(self.authority.file()).unwrap();
        roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let tcp = TcpStream::connect(self.server.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap()
    }

    /// A connection, with the task that drives it.
    async fn http2(&self, window: u32) -> (SendRequest<Bytes>, JoinHandle<Result<(), h2::Error>>) {
        let mut builder = client::Builder::new();
        builder.initial_window_size(window).initial_connection_window_size(1 << 20);
        // What the server allows: until its settings arrive, the library would open any number.
        builder.initial_max_send_streams(100);
        let (send, connection) = builder.handshake(self.connect("h2").await).await.unwrap();
        let driving = tokio::spawn(connection);
        (send.ready().await.unwrap(), driving)
    }

    fn get(&self, path: &str) -> Request<()> {
        let authorization = self.server.client.authorization.clone().unwrap();
        Request::get(format!("https://localhost{path}"))
            .header("authorization", authorization)
            .body(())
            .unwrap()
    }
}

async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(WAIT_TIMEOUT, future).await.unwrap_or_else(|_| panic!("not in time: {what}"))
}

#[tokio::test]
async fn many_requests_share_a_connection_and_each_has_its_answer() {
    let secure = Secure::start(|_| {}).await;
    let (mut send, driving) = secure.http2(1 << 16).await;
    let mut answers = Vec::new();
    for _ in 0..300 {
        send = send.ready().await.unwrap();
        answers.push(send.send_request(secure.get("/api/v1/app"), true).unwrap().0);
    }
    for answer in answers {
        assert_eq!(in_time("an answer", answer).await.unwrap().status(), StatusCode::OK);
    }
    drop(send);
    let _ = in_time("the end", driving).await;
    secure.server.stop().await;
}

#[tokio::test]
async fn a_body_is_stored_and_the_urls_are_https_with_the_host_of_the_request() {
    let secure = Secure::start(|_| {}).await;
    let (mut send, _driving) = secure.http2(1 << 16).await;
    let app = secure.server.application_over(&mut send, &secure).await;
    let path = format!("/api/v1/auth/app-portal-access/{app}");
    let authorization = secure.server.client.authorization.clone().unwrap();
    let request = Request::post(format!("https://hooks.example.com:8443{path}"))
        .header("authorization", authorization)
        .body(())
        .unwrap();
    let body = exchange(&mut send, request, "{}").await;
    assert!(body["url"].as_str().unwrap().starts_with("https://hooks.example.com:8443/portal#"), "{body}");
    secure.server.stop().await;
}

impl Running {
    async fn application_over(&self, send: &mut SendRequest<Bytes>, secure: &Secure) -> String {
        let authorization = secure.server.client.authorization.clone().unwrap();
        let request = Request::post("https://localhost/api/v1/app").header("authorization", authorization);
        let made = exchange(send, request.body(()).unwrap(), r#"{"name": "over HTTP/2"}"#).await;
        made["id"].as_str().unwrap().to_owned()
    }
}

async fn exchange(send: &mut SendRequest<Bytes>, request: Request<()>, body: &str) -> serde_json::Value {
    let (answer, mut stream) = send.send_request(request, false).unwrap();
    stream.send_data(Bytes::copy_from_slice(body.as_bytes()), true).unwrap();
    let mut answer = in_time("an answer", answer).await.unwrap().into_body();
    let mut all = Vec::new();
    while let Some(piece) = answer.data().await {
        let piece = piece.unwrap();
        answer.flow_control().release_capacity(piece.len()).unwrap();
        all.extend_from_slice(&piece);
    }
    serde_json::from_slice(&all).unwrap()
}

#[tokio::test]
async fn requests_that_are_cancelled_as_fast_as_they_are_made_end_the_connection() {
    let secure = Secure::start(|_| {}).await;
    let (send, driving) = secure.http2(0).await;
    let flood = async {
        for _ in 0..100_000 {
            let Ok(mut ready) = send.clone().ready().await else { return };
            let Ok((answer, _)) = ready.send_request(secure.get("/api/v1/app"), true) else { return };
            drop(answer);
            tokio::task::yield_now().await;
        }
        panic!("the server takes any number of cancelled requests");
    };
    in_time("the connection ends", flood).await;
    drop(send);
    let _ = in_time("the end", driving).await;
    let (mut send, _driving) = secure.http2(1 << 16).await;
    let answer = send.send_request(secure.get("/api/v1/health/ping"), true).unwrap().0;
    assert_eq!(in_time("others are served", answer).await.unwrap().status(), StatusCode::NO_CONTENT);
    secure.server.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_not_read_is_given_up_and_the_others_go_on() {
    let secure = Secure::start(|config| config.limits.progress = Duration::from_millis(300)).await;
    // Without a window nothing of a body can be sent.
    let (mut send, _driving) = secure.http2(0).await;
    let (stuck, _) = send.send_request(secure.get("/api/v1/openapi.json"), true).unwrap();
    let stuck = in_time("its head", stuck).await.unwrap();
    let (other, _) = send.send_request(secure.get("/api/v1/health/ping"), true).unwrap();
    assert_eq!(in_time("another answer", other).await.unwrap().status(), StatusCode::NO_CONTENT);
    let ended = in_time("it is given up", stuck.into_body().data()).await;
    let error = ended.expect("not the end of the answer").unwrap_err();
    assert!(error.is_reset(), "{error}");
    let (after, _) = send.send_request(secure.get("/api/v1/health/ping"), true).unwrap();
    assert_eq!(in_time("one more", after).await.unwrap().status(), StatusCode::NO_CONTENT);
    secure.server.stop().await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused_and_the_connection_stays() {
    let secure = Secure::start(|_| {}).await;
    let (mut send, _driving) = secure.http2(1 << 16).await;
    let request = Request::get("https://localhost/api/v1/health/ping").header("x-long", "x".repeat(20_000));
    let (answer, _) = send.send_request(request.body(()).unwrap(), true).unwrap();
    match in_time("a refusal", answer).await {
        Ok(answer) => assert_eq!(answer.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        Err(error) => assert!(error.is_reset(), "{error}"),
    }
    let (after, _) = send.send_request(secure.get("/api/v1/health/ping"), true).unwrap();
    assert_eq!(in_time("another", after).await.unwrap().status(), StatusCode::NO_CONTENT);
    secure.server.stop().await;
}

#[tokio::test]
async fn a_connection_without_requests_is_closed_even_if_its_client_never_answers() {
    let secure = Secure::start(|config| config.limits.header = Duration::from_millis(500)).await;
    let (send, driving) = secure.http2(1 << 16).await;
    in_time("an idle one", driving).await.unwrap().unwrap();
    drop(send);
    // The preface, and then nothing: no settings are acknowledged, no ping is answered.
    let mut silent = secure.connect("h2").await;
    silent.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let mut all = Vec::new();
    let _ = in_time("a silent one", silent.read_to_end(&mut all)).await;
    let mut half = secure.connect("http/1.1").await;
    half.write_all(b"GET /api/v1/health HTTP/1.1\r\nhost: x\r\nx-slow: ").await.unwrap();
    all.clear();
    let _ = in_time("half a head", half.read_to_end(&mut all)).await;
    assert!(!all.starts_with(b"HTTP/1.1 200"));
    secure.server.stop().await;
}

#[tokio::test]
async fn an_unfinished_handshake_has_the_time_of_a_head_and_gives_way_to_others() {
    let secure = Secure::start(|config| {
        config.limits.header = Duration::from_millis(500);
        config.limits.connections = 1;
    })
    .await;
    let address: SocketAddr = secure.server.address;
    for begun in [&b""[..], &[0x16, 3, 1, 2, 0, 1]] {
        let mut silent = TcpStream::connect(address).await.unwrap();
        silent.write_all(begun).await.unwrap();
        let mut all = Vec::new();
        let _ = in_time("it is closed", silent.read_to_end(&mut all)).await;
    }
    secure.server.stop().await;
    let secure = Secure::start(|config| config.limits.connections = 1).await;
    let _silent = TcpStream::connect(secure.server.address).await.unwrap();
    let (mut send, _driving) = in_time("its place", secure.http2(1 << 16)).await;
    let (answer, _) = send.send_request(secure.get("/api/v1/health/ping"), true).unwrap();
    assert_eq!(in_time("an answer", answer).await.unwrap().status(), StatusCode::NO_CONTENT);
    secure.server.stop().await;
}

#[tokio::test]
async fn a_connection_too_many_gets_a_tls_alert_at_once() {
    let secure = Secure::start(|config| config.limits.connections_per_address = 1).await;
    let (mut send, _driving) = secure.http2(1 << 16).await;
    let (answer, _) = send.send_request(secure.get("/api/v1/health/ping"), true).unwrap();
    in_time("an answer", answer).await.unwrap();
    let mut refused = TcpStream::connect(secure.server.address).await.unwrap();
    refused.write_all(&[0x16, 3, 1, 2, 0, 1]).await.unwrap();
    let mut alert = Vec::new();
    in_time("it is refused", refused.read_to_end(&mut alert)).await.unwrap();
    assert_eq!(alert, [0x15, 3, 3, 0, 2, 2, 80], "a fatal alert");
    secure.server.stop().await;
}

#[tokio::test]
async fn a_stop_lets_requests_in_progress_end_and_says_goodbye() {
    let secure = Secure::start(|_| {}).await;
    let (mut send, driving) = secure.http2(1 << 16).await;
    let app = secure.server.application_over(&mut send, &secure).await;
    let authorization = secure.server.client.authorization.clone().unwrap();
    let request = Request::post(format!("https://localhost/api/v1/app/{app}/msg"));
    let request = request.header("authorization", authorization).body(()).unwrap();
    let (answer, mut body) = send.send_request(request, false).unwrap();
    body.send_data(Bytes::from_static(b"{\"eventType\": \"a\", "), false).unwrap();
    // The request is in progress once another that came after it has its answer.
    let (after, _) = send.send_request(secure.get("/api/v1/health/ping"), true).unwrap();
    in_time("an answer", after).await.unwrap();
    let stopping = tokio::spawn(secure.server.stop());
    // After the goodbye no request can begin.
    in_time("a goodbye", async {
        while send.clone().ready().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    body.send_data(Bytes::from_static(b"\"payload\": {}}"), true).unwrap();
    assert_eq!(in_time("its answer", answer).await.unwrap().status(), StatusCode::ACCEPTED);
    drop(send);
    in_time("the connection ends", driving).await.unwrap().unwrap();
    in_time("the stop", stopping).await.unwrap();
}
