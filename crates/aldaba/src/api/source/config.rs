//! `config` of a source: what its type needs to know of its sender.

use crate::api::request::json::{Fields, bounded_json};
use aldaba_api::Json;
use aldaba_engine::{HmacSettings, SourceSecrets, SourceSettings, secret_field};
use serde_json::{Map, Value};

/// Bytes of each of its texts.
const LONGEST_WORD: usize = 1024;
const SECRETS: usize = 10;

/// What a sender is known by, under each of its names. Beside `config` it would be passed over like all that nobody knows there, and
/// where it may be left out, nothing would be verified.
pub(crate) const KNOWN_BY: [&str; 5] = ["secret", "secrets", "publicKey", "clientState", "verifyToken"];

/// What the type needs. Nothing of it is taken that the type does not know. `tolerance`: what the request itself says of it,
/// beside `config`.
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
    secrets.secrets.extend(config.text(secret_field(kind), LONGEST_WORD).map(Into::into));
    secrets.secrets.extend(config.list("secrets").into_iter().map(Into::into));
    match kind {
        "meta" => secrets.verify_token = config.text("verifyToken", LONGEST_WORD).map(Into::into),
        "branded" => settings.brand = config.text("brand", LONGEST_WORD),
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
                header: config.text("header", LONGEST_WORD).unwrap_or_default(),
                prefix: config.text("prefix", LONGEST_WORD),
                algorithm: config.text("algorithm", LONGEST_WORD),
                encoding: config.text("encoding", LONGEST_WORD),
                signed: config.text("signed", LONGEST_WORD),
                timestamp_header: config.text("timestampHeader", LONGEST_WORD),
                timestamp_unit: config.text("timestampUnit", LONGEST_WORD),
                secret_form: config.text("secretForm", LONGEST_WORD),
            });
        }
        _ => {}
    }
    config.finish(kind);
    secrets
}

/// The parts of `config` that nobody has asked for yet.
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
            Ok(list) if list.len() <= SECRETS && list.iter().all(|text| text.len() <= LONGEST_WORD) => list,
            Ok(_) => self
                .wrong(name, format!("may have {SECRETS} items of {LONGEST_WORD} bytes at most"))
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
