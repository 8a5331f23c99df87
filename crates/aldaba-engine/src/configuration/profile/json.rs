//! Profiles as JSON.

use super::{Profile, ProfileError, ProfileSpec};
use aldaba_delivery::nearest::unknown_field;
use aldaba_signature::{HashKind, Scheme};
use serde_json::{Map, Value, json};

const SCHEMES: &str = "standard, timestamped, hex, base64";
const HASHES: &str = "sha256, sha512";

impl Profile {
    pub fn to_json(&self) -> Value {
        let headers: Map<_, _> = self
            .headers
            .iter()
            .map(|header| (header.written.0.clone(), header.written.1.clone().into()))
            .collect();
        json!({ "name": self.name, "headers": headers, "signature": self.scheme.map(write_scheme) })
    }

    /// Parses a profile and returns all errors.
    pub fn from_json(json: &Value) -> Result<Self, Vec<ProfileError>> {
        let Some(given) = json.as_object() else {
            return Err(vec![ProfileError::new(&[], "expected a JSON object")]);
        };
        let mut errors = unknown(given, &[], &["name", "headers", "signature"]);
        let name = match given.get("name") {
            Some(Value::String(name)) => name.clone(),
            Some(_) => {
                errors.push(ProfileError::new(&["name"], "expected a string"));
                String::new()
            }
            None => {
                errors.push(ProfileError::new(&["name"], "this field is required"));
                String::new()
            }
        };
        let headers = read_headers(given.get("headers"), &mut errors);
        let scheme = match read_scheme(given.get("signature")) {
            Ok(scheme) => scheme,
            Err(wrong) => {
                errors.extend(wrong);
                None
            }
        };
        if !errors.is_empty() {
            return Err(errors);
        }
        Self::new(ProfileSpec { name, headers, scheme })
    }
}

fn read_headers(given: Option<&Value>, errors: &mut Vec<ProfileError>) -> Vec<(String, String)> {
    let given = match given {
        Some(Value::Object(given)) => given,
        Some(_) => {
            errors.push(ProfileError::new(&["headers"], "expected an object: names and templates"));
            return Vec::new();
        }
        None => {
            errors.push(ProfileError::new(&["headers"], "this field is required"));
            return Vec::new();
        }
    };
    let mut headers = Vec::with_capacity(given.len());
    for (name, template) in given {
        match template {
            Value::String(template) => headers.push((name.clone(), template.clone())),
            _ => errors.push(ProfileError::new(&["headers", name], "expected a string: the template")),
        }
    }
    headers
}

fn write_scheme(scheme: Scheme) -> Value {
    let (name, hash) = match scheme {
        Scheme::Standard => ("standard", HashKind::Sha256),
        Scheme::Timestamped(hash) => ("timestamped", hash),
        Scheme::Hex(hash) => ("hex", hash),
        Scheme::Base64(hash) => ("base64", hash),
    };
    let hash = match hash {
        HashKind::Sha256 => "sha256",
        HashKind::Sha512 => "sha512",
    };
    json!({ "scheme": name, "hash": hash })
}

fn read_scheme(given: Option<&Value>) -> Result<Option<Scheme>, Vec<ProfileError>> {
    let one = |field: &[&str], why: String| Err(vec![ProfileError::new(field, why)]);
    let given = match given {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(given)) => given,
        Some(_) => return one(&["signature"], "expected null or an object with `scheme` and `hash`".into()),
    };
    let unknown = unknown(given, &["signature"], &["scheme", "hash"]);
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let hash = match given.get("hash").unwrap_or(&Value::Null) {
        Value::Null => HashKind::Sha256,
        Value::String(name) if name == "sha256" => HashKind::Sha256,
        Value::String(name) if name == "sha512" => HashKind::Sha512,
        other => return one(&["signature", "hash"], format!("must be one of {HASHES}; it is {other}")),
    };
    match given.get("scheme").and_then(Value::as_str) {
        Some("standard") if hash == HashKind::Sha256 => Ok(Some(Scheme::Standard)),
        Some("standard") => one(&["signature", "hash"], "`standard` is always made with sha256".into()),
        Some("timestamped") => Ok(Some(Scheme::Timestamped(hash))),
        Some("hex") => Ok(Some(Scheme::Hex(hash))),
        Some("base64") => Ok(Some(Scheme::Base64(hash))),
        _ => {
            let found = given.get("scheme").unwrap_or(&Value::Null);
            one(&["signature", "scheme"], format!("must be one of {SCHEMES}; it is {found}"))
        }
    }
}

fn unknown(given: &Map<String, Value>, place: &[&str], known: &[&str]) -> Vec<ProfileError> {
    let strange = given.keys().filter(|name| !known.contains(&name.as_str()));
    let error = |name: &String| {
        let place: Vec<_> = place.iter().copied().chain([name.as_str()]).collect();
        ProfileError::new(&place, unknown_field(name, known))
    };
    strange.map(error).collect()
}
