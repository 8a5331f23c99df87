//! SOCKS version 5 (RFC 1928), with or without user and password (RFC 1929).

use super::{ProxyError, proxy_failure, receiver_unreachable, unavailable};
use crate::wire::stream::Socket;
use crate::wire::target::BasicCredentials;
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const CONNECT: u8 = 1;

/// Negotiates the authentication method.
pub(super) async fn negotiate(
    socket: &mut Socket,
    credentials: Option<&BasicCredentials>,
) -> Result<(), ProxyError> {
    let greeting: &[u8] = match credentials {
        None => &[VERSION, 1, NO_AUTHENTICATION],
        Some(_) => &[VERSION, 2, NO_AUTHENTICATION, USER_AND_PASSWORD],
    };
    socket.write_all(greeting).await?;
    let mut choice = [0; 2];
    socket.read_exact(&mut choice).await?;
    match (choice, credentials) {
        ([VERSION, NO_AUTHENTICATION], _) => Ok(()),
        ([VERSION, USER_AND_PASSWORD], Some(credentials)) => authenticate(socket, credentials).await,
        ([VERSION, _], _) => Err(ProxyError::Proxy(unavailable("wants another kind of authentication"))),
        _ => Err(ProxyError::Proxy(unavailable("did not speak SOCKS5"))),
    }
}

async fn authenticate(socket: &mut Socket, credentials: &BasicCredentials) -> Result<(), ProxyError> {
    let mut message = vec![1];
    for text in [&credentials.user, &credentials.password] {
        // The lengths were checked when the setting was parsed.
        message.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        message.extend_from_slice(text.as_bytes());
    }
    socket.write_all(&message).await?;
    let mut answer = [0; 2];
    socket.read_exact(&mut answer).await?;
    match answer {
        [_, 0] => Ok(()),
        _ => Err(ProxyError::Proxy(unavailable("wants other credentials"))),
    }
}

pub(super) async fn request_connection(socket: &mut Socket, target: SocketAddr) -> Result<(), ProxyError> {
    let mut request = vec![VERSION, CONNECT, 0];
    match target.ip() {
        IpAddr::V4(address) => {
            request.push(1);
            request.extend_from_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            request.push(4);
            request.extend_from_slice(&address.octets());
        }
    }
    request.extend_from_slice(&target.port().to_be_bytes());
    socket.write_all(&request).await?;
    let mut answer = [0; 4];
    socket.read_exact(&mut answer).await?;
    let [VERSION, reply, _, kind] = answer else {
        return Err(ProxyError::Proxy(proxy_failure("did not speak SOCKS5")));
    };
    match reply {
        0 => skip_address(socket, kind).await,
        2 => Err(ProxyError::Proxy(proxy_failure("does not allow this connection"))),
        3 => Err(receiver_unreachable("network unreachable")),
        4 => Err(receiver_unreachable("host unreachable")),
        5 => Err(receiver_unreachable("connection refused")),
        6 => Err(receiver_unreachable("it took too many hops")),
        code => {
            Err(ProxyError::Proxy(proxy_failure(&format!("refused the connection (SOCKS reply {code})"))))
        }
    }
}

/// Reads past the proxy's bound address, so that the stream begins after it.
async fn skip_address(socket: &mut Socket, kind: u8) -> Result<(), ProxyError> {
    let length = match kind {
        1 => 4,
        4 => 16,
        3 => usize::from(socket.read_u8().await?),
        _ => return Err(ProxyError::Proxy(proxy_failure("did not speak SOCKS5"))),
    };
    let mut rest = vec![0; length + 2];
    socket.read_exact(&mut rest).await?;
    Ok(())
}
