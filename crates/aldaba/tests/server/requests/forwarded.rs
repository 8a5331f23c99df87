//! What proxies say of their clients, with a real nginx and with headers that anybody can write.

use crate::support::client::Client;
use crate::support::running::Running;
use aldaba::config::{Config, ProxyHeaders};
use bytes::Bytes;
use http::Method;
use std::net::SocketAddr;
use test_servers::Nginx;

/// What an operator of nginx writes, so that no header that is believed is a client's.
const LOCATION: &str = "proxy_set_header Host $host;
   proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
   proxy_set_header X-Forwarded-Proto https;
   proxy_set_header X-Forwarded-Host hooks.example.com;";

fn trusting(network: &'static str) -> impl FnOnce(&mut Config) {
    move |config| config.trusted_proxies = vec![network.parse().unwrap()]
}

/// The beginning of the URLs that the server makes for a client at this address.
async fn base(server: &Running, through: SocketAddr, headers: &[(&str, &str)]) -> String {
    let app = server.application().await;
    let client = Client { address: through, ..server.client.clone() };
    let path = format!("/auth/app-portal-access/{app}");
    let reply = client.send(Method::POST, &path, headers, Bytes::from_static(b"{}")).await;
    let url = reply.expect(200)["url"].as_str().unwrap().to_owned();
    url.split_once("/portal#").unwrap().0.to_owned()
}

const SPOOFED: [(&str, &str); 4] = [
    ("x-forwarded-for", "192.0.2.66"),
    ("x-forwarded-proto", "https"),
    ("x-forwarded-host", "evil.example"),
    ("forwarded", "for=192.0.2.66;proto=https;host=evil.example"),
];

#[tokio::test]
async fn urls_have_the_scheme_and_host_that_a_trusted_nginx_names_whatever_its_client_writes() {
    let server = Running::with(trusting("127.0.0.0/8")).await;
    let nginx = Nginx::start(server.address, LOCATION);
    assert_eq!(base(&server, nginx.address(), &[]).await, "https://hooks.example.com");
    assert_eq!(base(&server, nginx.address(), &SPOOFED).await, "https://hooks.example.com");
    server.stop().await;
}

#[tokio::test]
async fn an_nginx_outside_of_the_trusted_networks_and_a_client_are_not_believed() {
    let server = Running::with(trusting("192.0.2.0/24")).await;
    let nginx = Nginx::start(server.address, LOCATION);
    assert_eq!(
        base(&server, nginx.address(), &[]).await,
        "http://aldaba.test",
        "the host that nginx passes on"
    );
    assert_eq!(base(&server, server.address, &SPOOFED).await, "http://aldaba.test");
    server.stop().await;
    let closed = Running::start().await;
    assert_eq!(base(&closed, closed.address, &SPOOFED).await, "http://aldaba.test", "without the setting");
    closed.stop().await;
}

#[tokio::test]
async fn what_a_client_adds_to_an_nginx_that_passes_it_on_is_not_believed() {
    let server = Running::with(trusting("127.0.0.0/8")).await;
    // It appends to X-Forwarded-For and leaves the rest as it comes.
    let nginx = Nginx::start(
        server.address,
        "proxy_set_header Host $host;\n proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
    );
    let standard = [("forwarded", "for=192.0.2.66;proto=https;host=evil.example")];
    assert_eq!(base(&server, nginx.address(), &standard).await, "http://aldaba.test");
    server.stop().await;
}

#[tokio::test]
async fn with_the_setting_forwarded_only_the_standard_header_of_a_trusted_nginx_is_believed() {
    let server = Running::with(|config| {
        trusting("127.0.0.0/8")(config);
        config.proxy_headers = ProxyHeaders::Forwarded;
    })
    .await;
    // It passes on X-Forwarded-For and the like as they come. Its client has an address that is not trusted.
    let nginx = Nginx::start(
        server.address,
        "proxy_set_header Host $host;
         proxy_set_header Forwarded \"$http_forwarded, for=192.0.2.7;proto=https;host=hooks.example.com\";",
    );
    assert_eq!(base(&server, nginx.address(), &SPOOFED).await, "https://hooks.example.com");
    assert_eq!(base(&server, server.address, &SPOOFED[..3]).await, "http://aldaba.test");
    server.stop().await;
}

#[tokio::test]
async fn the_setting_public_url_comes_before_what_a_proxy_says() {
    let server = Running::with(|config| {
        trusting("127.0.0.0/8")(config);
        config.public_url = Some("https://told.example.com/".into());
    })
    .await;
    assert_eq!(base(&server, server.address, &SPOOFED[..3]).await, "https://told.example.com");
    server.stop().await;
}

#[tokio::test]
async fn each_client_of_a_trusted_proxy_has_the_limit_of_an_address_and_the_proxy_has_none() {
    let server = Running::with(|config| {
        trusting("127.0.0.0/8")(config);
        config.limits.connections_per_address = 1;
    })
    .await;
    let app = server.application().await;
    // A request in progress of one client: its body has not come.
    let authorization = server.client.authorization.clone().unwrap();
    let head = format!(
        "POST /api/v1/app/{app}/msg HTTP/1.1\r\nhost: x\r\nauthorization: {authorization}\r\n\
         x-forwarded-for: 192.0.2.1\r\ncontent-length: 100\r\n\r\n{{"
    );
    let mut held = tokio::net::TcpStream::connect(server.address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut held, head.as_bytes()).await.unwrap();
    let from = async |client: &str| {
        let headers = [("x-forwarded-for", client)];
        server.client.send(Method::GET, "/app", &headers, Bytes::new()).await
    };
    let mut refused = from("192.0.2.1").await;
    while refused.status == 200 {
        // The head was not read yet.
        refused = from("192.0.2.1").await;
    }
    assert_eq!((refused.status.as_u16(), refused.headers["retry-after"].as_bytes()), (503, &b"1"[..]));
    assert_eq!(from("192.0.2.2").await.status, 200, "another client");
    assert_eq!(from("203.0.113.9, 192.0.2.2").await.status, 200, "a spoofed first entry changes nothing");
    let spoofed = [("forwarded", "for=203.0.113.9"), ("x-forwarded-for", "192.0.2.1")];
    let refused = server.client.send(Method::GET, "/app", &spoofed, Bytes::new()).await;
    assert_eq!(refused.status, 503, "the other header does not evade the limit");
    assert_eq!(from("\", 192.0.2.1").await.status, 503, "nor does a quote without its end");
    drop(held);
    while from("192.0.2.1").await.status == 503 {}
    server.stop().await;
}
