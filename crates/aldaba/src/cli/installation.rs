//! Finds out whether a folder holds an installation. Commands that work on one create none: a mistyped folder would
//! become one.

use crate::config::Config;
use crate::keys;
use crate::shell::full_path;
use aldaba_store::has_database;

/// What is missing, where the command looked, and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotInstalled {
    #[error(
        "there is no Aldaba installation in {folder}: it has no aldaba.db. Start the server there first \
         (`aldaba serve --data {folder}`), make the folder without a server (`aldaba init --data {folder}`), or name the folder \
         of your server with --data or ALDABA_DATA"
    )]
    Database { folder: String },
    #[error(
        "the installation in {folder} has no jwt.secret, because its server was given the secret or has not started yet: \
         set ALDABA_JWT_SECRET, or --config, as for the server; or start it once"
    )]
    Secret { folder: String },
    #[error(
        "cannot read the Aldaba installation in {folder}: {source}. Run the command as the user of the server, for example \
         with `sudo --user`, or name another folder with --data or ALDABA_DATA"
    )]
    Unreadable { folder: String, source: std::io::Error },
}

/// A database that a server has made.
pub(crate) fn check_database(config: &Config) -> Result<(), NotInstalled> {
    match has_database(config.data()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(NotInstalled::Database { folder: full_path(config.data()) }),
        Err(source) => Err(unreadable(config, source)),
    }
}

/// Checks for an installation, and for the secret that its server signs tokens with. If the settings have a secret,
/// no folder is needed.
pub(crate) fn check_secret(config: &Config) -> Result<(), NotInstalled> {
    if config.jwt_secret.is_some() {
        return Ok(());
    }
    check_database(config)?;
    match keys::has_jwt_secret(config.data()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(NotInstalled::Secret { folder: full_path(config.data()) }),
        Err(source) => Err(unreadable(config, source)),
    }
}

fn unreadable(config: &Config, source: std::io::Error) -> NotInstalled {
    NotInstalled::Unreadable { folder: full_path(config.data()), source }
}
