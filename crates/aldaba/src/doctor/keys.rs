//! Whether a server on the folder would have its keys.

use super::Finding;
use crate::config::Config;
use crate::keys;
use aldaba_engine::{DataFolder, ENCRYPTION_CHECK, Vault};
use aldaba_store::Snapshot;

pub(super) fn examine(config: &Config, snapshot: &Snapshot, findings: &mut Vec<Finding>) {
    findings.push(encryption(config, snapshot));
    findings.push(tokens(config));
}

fn encryption(config: &Config, snapshot: &Snapshot) -> Finding {
    const CHECK: &str = "encryption-key";
    let check = match snapshot.setting(ENCRYPTION_CHECK) {
        Ok(check) => check,
        Err(error) => return Finding::problem(CHECK, error.to_string(), "see the finding about integrity"),
    };
    let Some(check) = check else { return Finding::ok(CHECK, "the database needs none yet") };
    let in_folder = match DataFolder::at(config.data()).existing_encryption_key() {
        Ok(key) => key,
        Err(error) => {
            return Finding::problem(CHECK, error.to_string(), "put encryption.key back from a backup");
        }
    };
    let given = keys::encryption_key(config);
    let origin = if given.is_some() { "the settings" } else { "encryption.key" };
    match given.or(in_folder) {
        Some(key) if Vault::new(key).matches_check_value(&check) => {
            Finding::ok(CHECK, format!("the key of {origin} opens the secrets"))
        }
        Some(_) => Finding::problem(
            CHECK,
            format!(
                "the database was encrypted with another key than that of {origin}: the server does not start"
            ),
            "run this command with the settings of the server (ALDABA_ENCRYPTION_KEY, ALDABA_JWT_SECRET or --config), or put the \
             right key back from a backup",
        ),
        None => Finding::problem(
            CHECK,
            "the key is neither in the folder nor in the settings: the server does not start",
            "run this command with the settings of the server (ALDABA_ENCRYPTION_KEY, ALDABA_JWT_SECRET or --config), or put \
             encryption.key back from a backup",
        ),
    }
}

fn tokens(config: &Config) -> Finding {
    const CHECK: &str = "token-secret";
    if config.jwt_secret.is_some() {
        return Finding::ok(CHECK, "it comes from the settings");
    }
    match keys::check_jwt_secret(config) {
        Err(error) => Finding::problem(CHECK, error.to_string(), "put jwt.secret back from a backup"),
        Ok(()) => match keys::has_jwt_secret(config.data()) {
            Ok(true) => Finding::ok(CHECK, "it is in jwt.secret"),
            _ => Finding::warning(
                CHECK,
                "it is neither in the folder nor in the settings: the next start makes a new one, and every token signed before is \
                 invalid then",
                "run this command with the settings of the server, or put jwt.secret back from a backup",
            ),
        },
    }
}
