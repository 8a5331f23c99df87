//! Where the keys of a backup are: inside, or named. A database without its encryption key cannot be used, so both sides check
//! by the database that the key fits.

use crate::config::Config;
use crate::keys;
use aldaba_engine::{DataFolder, ENCRYPTION_FILE, FolderError, Vault};
use serde::{Deserialize, Serialize};

/// Where a key is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "place")]
pub(crate) enum KeyPlace {
    /// In this file of the backup.
    Inside { file: String },
    /// Where this setting comes from: a variable, or a configuration file.
    Setting { setting: String },
    /// Neither in the data folder nor in the settings of the backup. The server is given it.
    Elsewhere,
    /// The database has none yet.
    Nowhere,
}

/// The places of both keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyPlaces {
    /// By which secrets in the database are encrypted.
    pub(crate) encryption: KeyPlace,
    /// By which tokens are signed.
    pub(crate) tokens: KeyPlace,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyProblem {
    #[error(
        "the encryption key is not in the backup: {}. Set ALDABA_ENCRYPTION_KEY (or ALDABA_JWT_SECRET, where it is derived \
         from that) to what the server had, and run the command again",
        place(setting)
    )]
    NoEncryptionKey { setting: Option<String> },
    #[error(
        "the encryption key of {given} is not the one that the database was encrypted with. Set ALDABA_ENCRYPTION_KEY (or \
         ALDABA_JWT_SECRET, where it is derived from that) to what the server had, and run the command again"
    )]
    OtherEncryptionKey { given: &'static str },
    #[error(
        "the secret that signs tokens is not in the backup: the server was given it. Set ALDABA_JWT_SECRET to what the server \
         had, and run the command again; with another one every token is invalid, and API keys stay valid"
    )]
    NoTokenSecret,
    #[error(transparent)]
    Folder(#[from] FolderError),
}

fn place(setting: &Option<String>) -> String {
    match setting {
        Some(setting) => format!("the server was given it by `{setting}`"),
        None => "the server was given it by a setting".into(),
    }
}

impl KeyPlaces {
    /// Finds the keys of a data folder. `check`: the check value of the database.
    pub(crate) fn find(config: &Config, check: Option<&[u8]>) -> Result<Self, FolderError> {
        let folder = DataFolder::at(config.data());
        let setting = |name: &str| KeyPlace::Setting { setting: name.into() };
        let given = if config.encryption_key.is_some() { "encryption_key" } else { "jwt_secret" };
        let encryption = match check {
            None => KeyPlace::Nowhere,
            Some(check) => {
                let fits = |key: [u8; 32]| Vault::new(key).matches_check_value(check);
                if keys::encryption_key(config).is_some_and(fits) {
                    setting(given)
                } else if folder.existing_encryption_key()?.is_some_and(fits) {
                    KeyPlace::Inside { file: ENCRYPTION_FILE.into() }
                } else {
                    KeyPlace::Elsewhere
                }
            }
        };
        let tokens = match (&config.jwt_secret, folder.existing_secret(keys::JWT_FILE)?) {
            (Some(_), _) => setting("jwt_secret"),
            (None, Some(_)) => KeyPlace::Inside { file: keys::JWT_FILE.into() },
            (None, None) => KeyPlace::Elsewhere,
        };
        Ok(Self { encryption, tokens })
    }

    /// The files of the data folder that belong into the backup.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        [&self.encryption, &self.tokens].into_iter().filter_map(|place| match place {
            KeyPlace::Inside { file } => Some(file.as_str()),
            _ => None,
        })
    }

    /// Checks that a server on the restored folder has its keys. `backup`: the folder of the backup.
    pub(crate) fn check(
        &self,
        config: &Config,
        backup: &DataFolder,
        check: Option<&[u8]>,
    ) -> Result<(), KeyProblem> {
        if let Some(check) = check {
            let fits = |key: [u8; 32]| Vault::new(key).matches_check_value(check);
            match (keys::encryption_key(config), backup.existing_encryption_key()?) {
                (Some(key), _) if fits(key) => {}
                (Some(_), _) => return Err(KeyProblem::OtherEncryptionKey { given: "the settings" }),
                (None, Some(key)) if fits(key) => {}
                (None, Some(_)) => return Err(KeyProblem::OtherEncryptionKey { given: "the backup" }),
                (None, None) => {
                    let setting = match &self.encryption {
                        KeyPlace::Setting { setting } => Some(setting.clone()),
                        _ => None,
                    };
                    return Err(KeyProblem::NoEncryptionKey { setting });
                }
            }
        }
        match self.tokens {
            KeyPlace::Setting { .. } | KeyPlace::Elsewhere if config.jwt_secret.is_none() => {
                Err(KeyProblem::NoTokenSecret)
            }
            _ => Ok(()),
        }
    }
}
