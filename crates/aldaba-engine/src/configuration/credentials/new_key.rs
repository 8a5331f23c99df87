//! Generates API keys.

use crate::Entropy;
pub use aldaba_delivery::names::key_name as check_key_name;
use aldaba_delivery::{ApiKeyId, AppId, OrgId, Timestamp};
use aldaba_store::{ApiKey, KeyScope};
use sha2::{Digest, Sha256};

/// The prefix of every key. A key contains no dot: SDKs parse the part after the last dot as a region.
pub const KEY_PREFIX: &str = "aldaba_";
/// Characters of the part that is shown in lists to tell keys apart.
const PREFIX_CHARS: usize = 8;
/// Characters of the secret part: 40 of 62 possible ones are 238 bits.
const SECRET_CHARS: usize = 40;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The properties of a new key.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub org: OrgId,
    pub app: Option<AppId>,
    pub name: String,
    pub scope: KeyScope,
    pub expires_at: Option<Timestamp>,
}

/// Generates a key. Its text is not stored anywhere.
pub fn make_key(new: NewKey, now: Timestamp, entropy: &dyn Entropy) -> (ApiKey, String) {
    let (prefix, secret) = (random_text(PREFIX_CHARS, entropy), random_text(SECRET_CHARS, entropy));
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

/// The digest that is stored of a key. A fast digest suffices, unlike for passwords: nobody can try 2^238
/// keys, and a slow one would cost every request.
pub fn digest_of(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}

fn random_text(count: usize, entropy: &dyn Entropy) -> String {
    let mut text = String::with_capacity(count);
    while text.len() < count {
        // Bytes past the last multiple of 62 would make some characters more likely.
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
