//! Which keys the server runs with: from the configuration, else from the data folder.

use crate::config::Config;
use aldaba_engine::{DataFolder, Entropy, FolderError};
use hkdf::Hkdf;
use sha2::Sha256;
use std::path::Path;

const JWT_FILE: &str = "jwt.secret";

pub(crate) fn jwt_secret(
    config: &Config,
    folder: &DataFolder,
    entropy: &dyn Entropy,
) -> Result<String, FolderError> {
    match &config.jwt_secret {
        Some(secret) => Ok(secret.0.clone()),
        None => folder.secret(JWT_FILE, entropy),
    }
}

/// Whether a server has made one in this folder.
pub(crate) fn has_jwt_secret(folder: &Path) -> bool {
    folder.join(JWT_FILE).is_file()
}

pub(crate) fn encryption_key(
    config: &Config,
    folder: &DataFolder,
    entropy: &dyn Entropy,
) -> Result<[u8; 32], FolderError> {
    if let Some(key) = &config.encryption_key {
        return Ok(key.0);
    }
    if let Some(secret) = &config.jwt_secret {
        return Ok(derived(&secret.0));
    }
    folder.encryption_key(entropy)
}

fn derived(secret: &str) -> [u8; 32] {
    let mut key = [0; 32];
    let expanded = Hkdf::<Sha256>::new(None, secret.as_bytes()).expand(b"aldaba encryption key v1", &mut key);
    expanded.expect("32 bytes are within HKDF's reach");
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;
    use aldaba_engine::SystemEntropy;

    #[test]
    fn the_encryption_key_comes_from_its_setting_then_the_jwt_secret_then_the_folder() {
        let outer = tempfile::tempdir().unwrap();
        let (folder, entropy) = (DataFolder::open(outer.path()).unwrap(), SystemEntropy::new());
        let key = |config: &Config| encryption_key(config, &folder, &entropy).unwrap();
        let mut config = Config::default();
        let from_folder = key(&config);
        assert_eq!(key(&config), from_folder);
        config.jwt_secret = Some(Secret("a secret".into()));
        let from_jwt = key(&config);
        assert_ne!(from_jwt, from_folder);
        assert_eq!(key(&config), from_jwt);
        config.encryption_key = Some(Secret([7; 32]));
        assert_eq!(key(&config), [7; 32]);
    }
}
