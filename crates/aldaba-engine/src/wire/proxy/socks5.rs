//! SOCKS version 5 (RFC 1928), with or without user and password (RFC 1929).

use super::{Refusal, no_way, own, unreached};
use crate::wire::stream::Socket;
use crate::wire::target::Credentials;
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const CONNECT: u8 = 1;

/// Agrees on who we are.
pub(super) async fn greet(socket: &mut Socket, credentials: Option<&Credentials>) -> Result<(), Refusal> {
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
        ([VERSION, _], _) => Err(Refusal::Proxy(no_way("wants another kind of authentication"))),
        _ => Err(Refusal::Proxy(no_way("did not speak SOCKS5"))),
    }
}

async fn authenticate(socket: &mut Socket, credentials: &Credentials) -> Result<(), Refusal> {
    let mut message = vec![1];
    for text in [&credentials.user, &credentials.password] {
        // The lengths were checked when the setting was read.
        message.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        message.extend_from_slice(text.as_bytes());
    }
    socket.write_all(&message).await?;
    let mut answer = [0; 2];
    socket.read_exact(&mut answer).await?;
    match answer {
        [_, 0] => Ok(()),
        _ => Err(Refusal::Proxy(no_way("wants other credentials"))),
    }
}

pub(super) async fn ask(socket: &mut Socket, target: SocketAddr) -> Result<(), Refusal> {
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
        return Err(Refusal::Proxy(own("did not speak SOCKS5")));
    };
    match reply {
        0 => skip_address(socket, kind).await,
        2 => Err(Refusal::Proxy(own("does not allow this connection"))),
        3 => Err(unreached("network unreachable")),
        4 => Err(unreached("host unreachable")),
        5 => Err(unreached("connection refused")),
        6 => Err(unreached("it took too many hops")),
        code => Err(Refusal::Proxy(own(&format!("refused the connection (SOCKS reply {code})")))),
    }
}

/// The address that the proxy connects from. It must be read, so that the stream begins after it.
async fn skip_address(socket: &mut Socket, kind: u8) -> Result<(), Refusal> {
    let length = match kind {
        1 => 4,
        4 => 16,
        3 => usize::from(socket.read_u8().await?),
        _ => return Err(Refusal::Proxy(own("did not speak SOCKS5"))),
    };
    let mut rest = vec![0; length + 2];
    socket.read_exact(&mut rest).await?;
    Ok(())
}
