//! The beginning of a connection with TLS.

use super::{HTTP2, ListenerTls};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The first byte of a TLS connection: a record of the kind `handshake`.
const HANDSHAKE_RECORD: u8 = 0x16;
/// The answer to HTTP without TLS. The scheme cannot be corrected by a redirect: the token was sent in the clear already.
const PLAIN_HTTP: &str = "{\"code\":\"generic_error\",\"detail\":\"This port speaks HTTPS, and the request came without TLS; \
                          use https:// in the URL. If it had a token, consider the token as seen by others\"}";
/// How long the answer to HTTP without TLS may take, including the reading of the request.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_DRAINED_BYTES: u64 = 64 * 1024;
/// What a connection gets that is refused before its handshake, which would cost more than a request: the fatal alert
/// `internal_error`. Clients then report a refused handshake, not a broken one.
pub(in crate::server) const REFUSED_HANDSHAKE: [u8; 7] = [0x15, 3, 3, 0, 2, 2, 80];

/// What client and server have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// Why a connection did not come about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error("a client spoke HTTP without TLS and was answered 400; it must use https://")]
    PlainHttp,
    #[error("the TLS handshake was not finished in time")]
    Timeout,
    #[error("the TLS handshake failed: {0}")]
    Tls(io::Error),
}

impl ListenerTls {
    /// The handshake, within a limit. `http2`: whether that is offered.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
        http2: bool,
        limit: Duration,
    ) -> Result<(TlsStream<TcpStream>, Protocol), HandshakeError> {
        let handshake = async {
            if is_plain_http(&stream).await.map_err(HandshakeError::Tls)? {
                refuse_plain_http(stream).await;
                return Err(HandshakeError::PlainHttp);
            }
            let acceptor = TlsAcceptor::from(self.config(http2));
            let stream = acceptor.accept(stream).await.map_err(HandshakeError::Tls)?;
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
            Ok((stream, if is_http2 { Protocol::Http2 } else { Protocol::Http1 }))
        };
        tokio::time::timeout(limit, handshake).await.unwrap_or(Err(HandshakeError::Timeout))
    }
}

/// Whether the connection begins like a request. Waits for its first byte.
async fn is_plain_http(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let read = stream.peek(&mut first).await?;
    Ok(read == 1 && first[0] != HANDSHAKE_RECORD && first[0].is_ascii_uppercase())
}

async fn refuse_plain_http(mut stream: TcpStream) {
    let length = PLAIN_HTTP.len();
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{PLAIN_HTTP}"
    );
    let answered = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // A connection that is closed with unread bytes may lose the answer.
        tokio::io::copy(&mut stream.take(MAX_DRAINED_BYTES), &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(REFUSAL_TIMEOUT, answered).await;
}
