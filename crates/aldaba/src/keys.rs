//! The keys that the server runs with: from the configuration, else from the data folder.

use crate::JwtSecret;
use crate::config::Config;
use crate::shell::full_path;
use aldaba_engine::{DataFolder, Entropy, FolderError};
use hkdf::Hkdf;
use sha2::Sha256;
use std::path::Path;

pub(crate) const JWT_FILE: &str = "jwt.secret";

pub(crate) fn jwt_secret(
    config: &Config,
    folder: &DataFolder,
    entropy: &dyn Entropy,
) -> Result<JwtSecret, FolderError> {
    match &config.jwt_secret {
        Some(secret) => Ok(secret.clone()),
        None => {
            let text = folder.secret(JWT_FILE, entropy)?;
            Ok(JwtSecret::new(text).expect("the folder has checked that it has 64 digits"))
        }
    }
}

/// Tells the operator that the secret that signed earlier tokens is gone, so that a start makes another one.
/// `had_database` says whether the folder had a database before: then such tokens may be in use.
pub(crate) fn lost_secret(config: &Config, had_database: bool) -> Option<String> {
    let is_lost =
        had_database && config.jwt_secret.is_none() && matches!(has_jwt_secret(config.data()), Ok(false));
    is_lost.then(|| {
        format!(
            "{} was missing beside a database, and a new one was made: every signed token made before, for \
             organizations and for portals, is invalid now; API keys still count. To put the old secret back, stop the \
             server, restore the file from a backup, or set ALDABA_JWT_SECRET if that was set before, and start again",
            full_path(&config.data().join(JWT_FILE))
        )
    })
}

/// Whether a server has made a secret in this folder.
pub(crate) fn has_jwt_secret(folder: &Path) -> std::io::Result<bool> {
    match folder.join(JWT_FILE).metadata() {
        Ok(found) => Ok(found.is_file()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Refuses an unusable secret, and makes none.
pub(crate) fn check_jwt_secret(config: &Config) -> Result<(), FolderError> {
    match &config.jwt_secret {
        Some(_) => Ok(()),
        None => DataFolder::at(config.data()).existing_secret(JWT_FILE).map(drop),
    }
}

/// `None`: the data folder has a key of its own.
pub(crate) fn encryption_key(config: &Config) -> Option<[u8; 32]> {
    match (&config.encryption_key, &config.jwt_secret) {
        (Some(key), _) => Some(key.0),
        (None, Some(secret)) => Some(derived(secret)),
        (None, None) => None,
    }
}

fn derived(secret: &JwtSecret) -> [u8; 32] {
    let mut key = [0; 32];
    let expanded = Hkdf::<Sha256>::new(None, secret.as_bytes()).expand(b"aldaba encryption key v1", &mut key);
    expanded.expect("32 bytes are within HKDF's reach");
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    #[test]
    fn the_encryption_key_comes_from_its_setting_then_the_jwt_secret_then_the_folder() {
        let mut config = Config::default();
        assert_eq!(encryption_key(&config), None, "that of the folder");
        config.jwt_secret = Some(JwtSecret::new("a secret that is long enough for tokens").unwrap());
        let from_jwt = encryption_key(&config);
        assert!(from_jwt.is_some());
        assert_eq!(encryption_key(&config), from_jwt);
        // The documentation has an openssl command with the same result.
        let documented = JwtSecret::new("32 bytes, just as many as needed").unwrap();
        assert_eq!(derived(&documented)[..8], [0xcb, 0xfe, 0xb4, 0x79, 0x71, 0x74, 0x51, 0x55]);
        config.encryption_key = Some(Secret([7; 32]));
        assert_eq!(encryption_key(&config), Some([7; 32]));
    }
}
