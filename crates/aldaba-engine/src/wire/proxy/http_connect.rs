//! HTTP CONNECT (RFC 9110, section 9.3.6).

use super::{ProxyError, proxy_failure, receiver_unreachable, unavailable};
use crate::wire::stream::Socket;
use crate::wire::target::BasicCredentials;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The most bytes of the proxy's response head.
const MAX_HEAD: usize = 8 * 1024;

pub(super) async fn request_connection(
    socket: &mut Socket,
    target: SocketAddr,
    credentials: Option<&BasicCredentials>,
) -> Result<(), ProxyError> {
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(credentials) = credentials {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(credentials.basic_auth().as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    socket.write_all(&request).await?;
    socket.flush().await?;
    match status(&read_head(socket).await?) {
        Some(200..=299) => Ok(()),
        Some(407) => Err(ProxyError::Proxy(unavailable("wants other credentials (HTTP 407)"))),
        // These statuses concern the server behind a gateway. 500 and 503 may concern the gateway itself.
        Some(status @ (502 | 504)) => Err(receiver_unreachable(&format!("HTTP {status}"))),
        Some(status) => {
            Err(ProxyError::Proxy(proxy_failure(&format!("refused the connection (HTTP {status})"))))
        }
        None => Err(ProxyError::Proxy(proxy_failure("did not speak HTTP"))),
    }
}

async fn read_head(socket: &mut Socket) -> Result<Vec<u8>, ProxyError> {
    let mut head = Vec::with_capacity(512);
    loop {
        if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            // Nothing was sent to the receiver yet, so it cannot have sent anything. The body of a refusal
            // is ignored.
            let refused = !matches!(status(&head), Some(200..=299));
            return if refused || end + 4 == head.len() {
                Ok(head)
            } else {
                Err(ProxyError::Proxy(proxy_failure("sent more than its answer")))
            };
        }
        if head.len() >= MAX_HEAD {
            return Err(ProxyError::Proxy(proxy_failure("sent too long an answer")));
        }
        if socket.read_buf(&mut head).await? == 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
    }
}

fn status(head: &[u8]) -> Option<u16> {
    let line = head.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    std::str::from_utf8(line).ok()?.parse().ok()
}
