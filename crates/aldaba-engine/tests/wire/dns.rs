//! Misbehaving name servers, and names that resolve to internal addresses.

use crate::receiver::{OK, Receiver};
use crate::{answer, assert_failed, hasty, options, post, send};
use aldaba_delivery::FailureKind;
use aldaba_engine::WireRequest;
use aldaba_engine::wire::{Wire, WireOptions};
use futures_util::future::join_all;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

const A: u16 = 1;

/// How a name server answers a query.
enum Script {
    Addresses(Vec<Ipv4Addr>),
    Code(u8),
    Silence,
}

/// The answer for the first label of each name.
fn script(label: &str) -> Script {
    match label {
        "here" => Script::Addresses(vec![Ipv4Addr::LOCALHOST]),
        // All addresses are checked, including a forbidden last one.
        "many" => Script::Addresses(vec![Ipv4Addr::LOCALHOST; 1000]),
        "many-and-one-inside" => {
            let mut addresses = vec![Ipv4Addr::LOCALHOST; 999];
            addresses.push(Ipv4Addr::new(127, 0, 0, 2));
            Script::Addresses(addresses)
        }
        "inside" => Script::Addresses(vec![Ipv4Addr::new(127, 0, 0, 2)]),
        "both" => Script::Addresses(vec![Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2)]),
        "metadata" => Script::Addresses(vec![Ipv4Addr::new(169, 254, 169, 254)]),
        "none" => Script::Addresses(vec![]),
        "servfail" => Script::Code(2),
        "refused" => Script::Code(5),
        "silent" => Script::Silence,
        _ => Script::Code(3),
    }
}

struct NameServer {
    address: SocketAddr,
    queries: Arc<AtomicUsize>,
}

impl NameServer {
    async fn start() -> Self {
        Self::scripted(script).await
    }

    async fn scripted(script: fn(&str) -> Script) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        let udp = UdpSocket::bind(address).await.unwrap();
        let queries = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&queries);
        tokio::spawn(async move {
            let mut packet = [0; 4096];
            while let Ok((length, from)) = udp.recv_from(&mut packet).await {
                counter.fetch_add(1, Ordering::SeqCst);
                if let Some(reply) = reply(script, &packet[..length], Some(512)) {
                    let _ = udp.send_to(&reply, from).await;
                }
            }
        });
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = tcp.accept().await {
                tokio::spawn(async move {
                    while let Ok(length) = stream.read_u16().await {
                        let mut packet = vec![0; length.into()];
                        stream.read_exact(&mut packet).await.unwrap();
                        let Some(reply) = reply(script, &packet, None) else { continue };
                        let length = u16::try_from(reply.len()).unwrap().to_be_bytes();
                        stream.write_all(&[&length[..], &reply].concat()).await.unwrap();
                    }
                });
            }
        });
        Self { address, queries }
    }

    fn wire(&self) -> Wire {
        Wire::new(WireOptions { name_servers: Some(vec![self.address]), ..options() }).unwrap()
    }
}

fn reply(script: fn(&str) -> Script, query: &[u8], limit: Option<usize>) -> Option<Vec<u8>> {
    let (label, question_end) = question(query);
    let wanted = u16::from_be_bytes([query[question_end - 4], query[question_end - 3]]);
    let (code, addresses) = match script(&label) {
        Script::Silence => return None,
        Script::Code(code) => (code, vec![]),
        Script::Addresses(addresses) if wanted == A => (0, addresses),
        Script::Addresses(_) => (0, vec![]),
    };
    let truncated = limit.is_some_and(|limit| question_end + addresses.len() * 16 > limit);
    let addresses = if truncated { vec![] } else { addresses };
    let mut reply = query[..2].to_vec();
    reply.extend([0x81 | if truncated { 2 } else { 0 }, 0x80 | code, 0, 1]);
    reply.extend(u16::try_from(addresses.len()).unwrap().to_be_bytes());
    reply.extend([0, 0, 0, 0]);
    reply.extend(&query[12..question_end]);
    for address in addresses {
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        reply.extend(address.octets());
    }
    Some(reply)
}

fn question(query: &[u8]) -> (String, usize) {
    let first = String::from_utf8(query[13..13 + usize::from(query[12])].to_vec()).unwrap();
    let mut at = 12;
    while query[at] != 0 {
        at += 1 + usize::from(query[at]);
    }
    (first, at + 5)
}

#[tokio::test]
async fn concurrent_requests_share_one_lookup() {
    let server = NameServer::start().await;
    let mut receiver = Receiver::answering(OK).await;
    let wire = server.wire();
    let url = format!("http://here.test:{}/", receiver.address.port());
    let requests = (0..50).map(|_| send(&wire, post(&url)));
    for response in futures_util::future::join_all(requests).await {
        assert_eq!(answer(&response).status, 200);
    }
    assert_eq!(server.queries.load(Ordering::SeqCst), 2, "one for each family of addresses");
    let host = format!("host: here.test:{}\r\n", receiver.address.port());
    assert!(receiver.request().await.head.contains(&host));
}

#[tokio::test]
async fn each_failure_of_a_lookup_has_its_own_error() {
    let server = NameServer::start().await;
    let wire = server.wire();
    for (name, words) in [
        ("nobody.test", "NXDOMAIN"),
        ("none.test", "has no addresses"),
        ("servfail.test", "SERVFAIL"),
        ("refused.test", "REFUSED"),
        (&format!("{}.test", "a".repeat(64)), "not a valid name"),
    ] {
        let response = send(&wire, post(format!("http://{name}/"))).await;
        assert_failed(&response, FailureKind::Dns, words);
    }
}

#[tokio::test]
async fn a_silent_name_server_ends_the_attempt_in_time() {
    let server = NameServer::start().await;
    let wire = server.wire();
    let response = send(&wire, hasty("http://silent.test/")).await;
    assert_failed(&response, FailureKind::ConnectTimeout, "resolving the host name took too long");
    let response = send(&wire, post("http://silent.test/")).await;
    assert_failed(&response, FailureKind::Dns, "did not answer in time");
}

/// A resolver that fails for the root zone too is broken itself; then no host is to blame.
#[tokio::test]
async fn a_broken_local_resolver_is_not_counted_against_a_host() {
    let failing = NameServer::scripted(|_| Script::Code(2)).await;
    let refusing = NameServer::scripted(|_| Script::Code(5)).await;
    let silent = NameServer::scripted(|_| Script::Silence).await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for address in [failing.address, refusing.address, silent.address, nobody] {
        let wire = Wire::new(WireOptions { name_servers: Some(vec![address]), ..options() }).unwrap();
        for request in [post("http://some.test/"), post("http://other.test/")] {
            let response = send(&wire, request).await;
            assert_failed(&response, FailureKind::Unsent, "own name servers do not answer");
        }
    }
    // Nor if the policy's timeout ends before the lookup fails.
    let response = send(&silent.wire(), hasty("http://third.test/")).await;
    assert_failed(&response, FailureKind::Unsent, "own name servers do not answer");
    // Nor that of a request that waits for another one to connect.
    let sharing = |n: usize| {
        let url = format!("https://shared.test:{}/", 443 + n / 8);
        WireRequest { http2: true, ..hasty(url) }
    };
    let wire = silent.wire();
    for response in join_all((0..16).map(|n| send(&wire, sharing(n)))).await {
        assert_failed(&response, FailureKind::Unsent, "own name servers do not answer");
    }
    // One working resolver is enough.
    let working = NameServer::start().await;
    let name_servers = Some(vec![nobody, working.address]);
    let wire = Wire::new(WireOptions { name_servers, ..options() }).unwrap();
    assert_failed(&send(&wire, post("http://servfail.test/")).await, FailureKind::Dns, "SERVFAIL");
}

#[tokio::test]
async fn silent_names_do_not_delay_others() {
    let server = NameServer::start().await;
    let receiver = Receiver::answering(OK).await;
    let wire = server.wire();
    let silent = |how: fn(String) -> WireRequest| -> Vec<_> {
        let send_one = |n: usize| {
            let (wire, request) = (wire.clone(), how(format!("http://silent.n{n}.test/")));
            tokio::spawn(async move { send(&wire, request).await })
        };
        (0..500).map(send_one).collect()
    };
    let patient = silent(post);
    tokio::task::yield_now().await;
    let response = send(&wire, post(format!("http://here.test:{}/", receiver.address.port()))).await;
    assert_eq!(answer(&response).status, 200);
    for waiting in patient {
        assert!(!waiting.is_finished(), "the lookup is still pending");
        waiting.abort();
    }
    for response in silent(hasty) {
        assert_failed(&response.await.unwrap(), FailureKind::ConnectTimeout, "");
    }
}

#[tokio::test]
async fn a_thousand_addresses_are_one_target() {
    let server = NameServer::start().await;
    let receiver = Receiver::answering(OK).await;
    let url = format!("http://many.test:{}/", receiver.address.port());
    assert_eq!(answer(&send(&server.wire(), post(url)).await).status, 200);
    assert_eq!((receiver.connections(), receiver.requests()), (1, 1));
}

#[tokio::test]
async fn no_packet_is_sent_to_a_name_with_an_internal_address() {
    let server = NameServer::start().await;
    let wire = server.wire();
    let canary = Receiver::start_at("127.0.0.2:0", |_| async {}).await;
    let outside = Receiver::start_at(&format!("127.0.0.1:{}", canary.address.port()), |_| async {}).await;
    for name in ["inside", "both", "many-and-one-inside", "metadata"] {
        let url = format!("http://{name}.test:{}/", canary.address.port());
        let response = send(&wire, post(url)).await;
        assert_failed(&response, FailureKind::TargetForbidden, "private, local or reserved");
    }
    assert_eq!((canary.connections(), outside.connections()), (0, 0));
}

#[tokio::test]
async fn localhost_is_never_looked_up() {
    let server = NameServer::start().await;
    let receiver = Receiver::answering(OK).await;
    let wire = server.wire();
    for host in ["localhost", "app.localhost", "localhost."] {
        let url = format!("http://{host}:{}/", receiver.address.port());
        assert_eq!(answer(&send(&wire, post(url)).await).status, 200);
    }
    assert_eq!(server.queries.load(Ordering::SeqCst), 0);

    let guarded =
        Wire::new(WireOptions { name_servers: Some(vec![server.address]), ..WireOptions::default() });
    let response =
        send(&guarded.unwrap(), post(format!("http://localhost:{}/", receiver.address.port()))).await;
    assert_failed(&response, FailureKind::TargetForbidden, "private, local or reserved");
}
