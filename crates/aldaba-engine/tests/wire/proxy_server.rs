//! Proxies for tests: HTTP CONNECT, SOCKS5, and one that follows a script.

use aldaba_engine::wire::EgressProxy;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

pub(crate) struct ProxyServer {
    address: SocketAddr,
    scheme: &'static str,
    connections: Arc<AtomicUsize>,
    asked: mpsc::UnboundedReceiver<String>,
}

impl ProxyServer {
    /// Connects to the requested addresses and records them.
    pub(crate) async fn http() -> Self {
        Self::start("http", |mut client, asked| async move {
            let head = read_head(&mut client).await;
            let _ = asked.send(head.clone());
            let target = head.split(' ').nth(1).unwrap().to_owned();
            match TcpStream::connect(target).await {
                Ok(server) => {
                    client.write_all(b"HTTP/1.1 200 Connection established\r\nvia: x\r\n\r\n").await.unwrap();
                    join(client, server).await;
                }
                Err(_) => client.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\nsorry").await.unwrap(),
            }
        })
        .await
    }

    /// A SOCKS5 proxy, which requires user and password if they are given.
    pub(crate) async fn socks5(wanted: Option<(&'static str, &'static str)>) -> Self {
        Self::start("socks5", move |mut client, asked| async move {
            let mut head = [0; 2];
            client.read_exact(&mut head).await.unwrap();
            let mut methods = vec![0; usize::from(head[1])];
            client.read_exact(&mut methods).await.unwrap();
            let method = if wanted.is_some() { 2 } else { 0 };
            if !methods.contains(&method) {
                return client.write_all(&[5, 0xff]).await.unwrap();
            }
            client.write_all(&[5, method]).await.unwrap();
            if let Some((user, password)) = wanted {
                assert_eq!(client.read_u8().await.unwrap(), 1);
                let right = text(&mut client).await == user && text(&mut client).await == password;
                client.write_all(&[1, u8::from(!right)]).await.unwrap();
                if !right {
                    return;
                }
            }
            let mut request = [0; 4];
            client.read_exact(&mut request).await.unwrap();
            assert_eq!(request, [5, 1, 0, 1], "connect, to an IPv4 address");
            let mut address = [0; 4];
            client.read_exact(&mut address).await.unwrap();
            let target = SocketAddr::from((Ipv4Addr::from(address), client.read_u16().await.unwrap()));
            let _ = asked.send(target.to_string());
            match TcpStream::connect(target).await {
                // The bound address may be a name, which starts with its length.
                Ok(server) => {
                    client.write_all(&[5, 0, 0, 3, 2, b'h', b'i', 0, 80]).await.unwrap();
                    join(client, server).await;
                }
                Err(_) => client.write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap(),
            }
        })
        .await
    }

    /// Sends these bytes after the first request and waits.
    pub(crate) async fn saying(scheme: &'static str, bytes: &'static [u8]) -> Self {
        Self::start(scheme, move |mut client, _| async move {
            let mut buffer = [0; 1024];
            let _ = client.read(&mut buffer).await;
            let _ = client.write_all(bytes).await;
            while matches!(client.read(&mut buffer).await, Ok(read) if read > 0) {}
        })
        .await
    }

    pub(crate) async fn start<F>(
        scheme: &'static str,
        script: impl Fn(TcpStream, mpsc::UnboundedSender<String>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (sender, asked) = mpsc::unbounded_channel();
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(script(client, sender.clone()));
            }
        });
        Self { address, scheme, connections, asked }
    }

    pub(crate) fn with(&self, credentials: &str) -> EgressProxy {
        format!("{}://{credentials}localhost:{}", self.scheme, self.address.port()).parse().unwrap()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn asked(&mut self) -> String {
        self.asked.try_recv().expect("it was asked")
    }
}

async fn read_head(client: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && client.read_buf(&mut head).await.unwrap() > 0 {}
    String::from_utf8(head).unwrap()
}

async fn text(client: &mut TcpStream) -> String {
    let mut text = vec![0; usize::from(client.read_u8().await.unwrap())];
    client.read_exact(&mut text).await.unwrap();
    String::from_utf8(text).unwrap()
}

async fn join(mut client: TcpStream, mut server: TcpStream) {
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}
