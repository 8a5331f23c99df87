//! HMAC from its definition (RFC 2104), so that what the server signs is not checked by its own means.

use sha2::digest::Digest;
use sha2::{Sha256, Sha512};
use std::fmt::Write;

fn hmac<H: Digest>(block: usize, key: &[u8], message: &[u8]) -> Vec<u8> {
    let pad = |with: u8| -> Vec<u8> {
        (0..block).map(|at| key.get(at).copied().unwrap_or_default() ^ with).collect()
    };
    let inner = H::new().chain_update(pad(0x36)).chain_update(message).finalize();
    H::new().chain_update(pad(0x5c)).chain_update(inner).finalize().to_vec()
}

pub(crate) fn sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::<Sha256>(64, key, message)
}

pub(crate) fn sha512(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::<Sha512>(128, key, message)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// RFC 4231, test case 2.
#[test]
fn the_published_vectors_are_reproduced() {
    let message = b"what do ya want for nothing?";
    let short = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(hex(&sha256(b"Jefe", message)), short);
    assert!(hex(&sha512(b"Jefe", message)).starts_with("164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd6"));
}
