//! How a key is made, and what is kept of it.

use crate::Entropy;
use aldaba_delivery::{ApiKeyId, AppId, OrgId, Timestamp};
use aldaba_store::{ApiKey, KeyScope};
use sha2::{Digest, Sha256};

/// What every key begins with. A key holds no dot: SDKs take what follows the last one for a region.
pub const KEY_PREFIX: &str = "aldaba_";
/// Characters of the part that is shown in lists: enough to tell keys apart.
const SHOWN: usize = 8;
/// Characters of the secret part. Each is one of 62, so that 40 of them are 238 bits.
const SECRET: usize = 40;
/// Bytes of a name.
const LONGEST_NAME: usize = 256;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What somebody wants a key to be.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub org: OrgId,
    pub app: Option<AppId>,
    pub name: String,
    pub scope: KeyScope,
    pub expires_at: Option<Timestamp>,
}

/// Whether a key can be called so.
pub fn check_key_name(name: &str) -> Result<(), String> {
    match name {
        _ if !(1..=LONGEST_NAME).contains(&name.len()) => {
            Err(format!("must be 1 to {LONGEST_NAME} bytes long"))
        }
        name if name.chars().any(char::is_control) => Err("must hold no control characters".into()),
        _ => Ok(()),
    }
}

/// A key and its text, which is nowhere else.
pub fn make_key(new: NewKey, now: Timestamp, entropy: &dyn Entropy) -> (ApiKey, String) {
    let (prefix, secret) = (characters(SHOWN, entropy), characters(SECRET, entropy));
    let text = format!("{KEY_PREFIX}{prefix}_{secret}");
    let NewKey { org, app, name, scope, expires_at } = new;
    let key = ApiKey {
        id: ApiKeyId::new(now, entropy.bytes()),
        org,
        app,
        name,
        prefix,
        digest: digest_of(text.as_bytes()),
        scope,
        created_at: now,
        expires_at,
        last_used_at: None,
    };
    (key, text)
}

/// What is kept of a key. A fast digest is right here, unlike for passwords: nobody can try 2^238 keys, however
/// quick each try is, and a slow one would have to be paid for every request.
pub fn digest_of(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}

fn characters(count: usize, entropy: &dyn Entropy) -> String {
    let mut text = String::with_capacity(count);
    while text.len() < count {
        // Bytes beyond the last multiple of 62 would make some characters more likely than others.
        let fair = entropy.bytes::<32>().into_iter().filter(|byte| *byte < 248);
        let room = count - text.len();
        text.extend(fair.take(room).map(|byte| char::from(ALPHABET[usize::from(byte % 62)])));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemEntropy;

    #[test]
    fn a_key_has_a_shown_part_a_long_secret_and_no_dot() {
        let (now, entropy) = (Timestamp::from_millis(1_780_000_000_000), SystemEntropy::new());
        let org = OrgId::first_at(now);
        let new = NewKey { org, app: None, name: "n".into(), scope: KeyScope::Read, expires_at: None };
        let (key, text) = make_key(new.clone(), now, &entropy);
        let parts: Vec<_> = text.split('_').collect();
        assert_eq!((parts[0], parts[1], parts[2].len()), ("aldaba", key.prefix.as_str(), 40));
        assert_eq!(parts.len(), 3);
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
        assert_eq!(key.digest, digest_of(text.as_bytes()));
        let (other, second) = make_key(new, now, &entropy);
        assert!(second != text && other.digest != key.digest && other.id != key.id);
    }
}
