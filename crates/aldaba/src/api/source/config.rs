//! The `config` of a source: what its type needs to verify the sender.

use crate::api::request::json::{Fields, bounded_json};
use aldaba_api::Json;
use aldaba_engine::{HmacSettings, SourceSecrets, SourceSettings, secret_field};
use serde_json::{Map, Value};

/// Bytes of each text.
const MAX_TEXT_BYTES: usize = 1024;
const MAX_SECRETS: usize = 10;

/// Names of secrets. Outside of `config` one would be an unknown field, and if it is optional, nothing would be
/// verified.
pub(crate) const SECRET_NAMES: [&str; 5] = ["secret", "secrets", "publicKey", "clientState", "verifyToken"];

/// Reads the fields of the type, and refuses others. `tolerance`: the value beside `config`.
pub(crate) fn read(
    fields: &mut Fields,
    given: Option<&Json>,
    kind: &str,
    settings: &mut SourceSettings,
    tolerance: Option<u32>,
) -> SourceSecrets {
    let given = given.map(|given| bounded_json::build(given.text().as_bytes()));
    let given = match given.transpose() {
        Ok(None | Some(Value::Null)) => Map::new(),
        Ok(Some(Value::Object(given))) => given,
        Ok(Some(_)) => {
            fields.problem("config", "expected a JSON object");
            Map::new()
        }
        Err(why) => {
            fields.problem("config", why);
            Map::new()
        }
    };
    let mut config = Config { fields, given };
    let mut secrets = SourceSecrets::default();
    secrets.secrets.extend(config.text(secret_field(kind), MAX_TEXT_BYTES).map(Into::into));
    secrets.secrets.extend(config.list("secrets").into_iter().map(Into::into));
    match kind {
        "meta" => secrets.verify_token = config.text("verifyToken", MAX_TEXT_BYTES).map(Into::into),
        "branded" => settings.brand = config.text("brand", MAX_TEXT_BYTES),
        "tailscale" => {
            let name = "timestampGraceSeconds";
            match (config.number(name, SourceSettings::MAX_TOLERANCE_SECONDS), tolerance) {
                (Some(grace), Some(tolerance)) if grace != tolerance => {
                    config.wrong::<()>(name, "is not what `toleranceSeconds` says; give one of them".into());
                }
                (Some(grace), _) => settings.tolerance_seconds = Some(grace),
                (None, _) => {}
            }
        }
        "hmac" => {
            settings.hmac = Some(HmacSettings {
                header: config.text("header", MAX_TEXT_BYTES).unwrap_or_default(),
                prefix: config.text("prefix", MAX_TEXT_BYTES),
                algorithm: config.text("algorithm", MAX_TEXT_BYTES),
                encoding: config.text("encoding", MAX_TEXT_BYTES),
                signed: config.text("signed", MAX_TEXT_BYTES),
                timestamp_header: config.text("timestampHeader", MAX_TEXT_BYTES),
                timestamp_unit: config.text("timestampUnit", MAX_TEXT_BYTES),
                secret_form: config.text("secretForm", MAX_TEXT_BYTES),
            });
        }
        _ => {}
    }
    config.finish(kind);
    secrets
}

/// The fields of `config` that have not been read yet.
struct Config<'a> {
    fields: &'a mut Fields,
    given: Map<String, Value>,
}

impl Config<'_> {
    fn text(&mut self, name: &str, most: usize) -> Option<String> {
        match self.given.remove(name)? {
            Value::Null => None,
            Value::String(text) if text.len() <= most => Some(text),
            Value::String(_) => self.wrong(name, format!("may be {most} bytes long at most")),
            _ => self.wrong(name, "expected a string".into()),
        }
    }

    fn list(&mut self, name: &str) -> Vec<String> {
        let Some(given) = self.given.remove(name).filter(|given| !given.is_null()) else { return Vec::new() };
        match serde_json::from_value::<Vec<String>>(given) {
            Ok(list) if list.len() <= MAX_SECRETS && list.iter().all(|text| text.len() <= MAX_TEXT_BYTES) => {
                list
            }
            Ok(_) => self
                .wrong(name, format!("may have {MAX_SECRETS} items of {MAX_TEXT_BYTES} bytes at most"))
                .unwrap_or_default(),
            Err(_) => self.wrong(name, "expected a list of strings".into()).unwrap_or_default(),
        }
    }

    fn number(&mut self, name: &str, most: u64) -> Option<u32> {
        let given = self.given.remove(name).filter(|given| !given.is_null())?;
        match given.as_u64().filter(|number| (1..=most).contains(number)) {
            Some(number) => u32::try_from(number).ok(),
            None => self.wrong(name, format!("must be a whole number from 1 to {most}")),
        }
    }

    fn wrong<T>(&mut self, name: &str, why: String) -> Option<T> {
        self.fields.problem_at(&["config", name], why);
        None
    }

    fn finish(mut self, kind: &str) {
        let unknown: Vec<_> = self.given.keys().cloned().collect();
        for name in unknown {
            self.wrong::<()>(&name, format!("is no field of the type `{kind}`"));
        }
    }
}
