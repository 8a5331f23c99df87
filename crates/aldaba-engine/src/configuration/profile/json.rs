//! Profiles as bodies of the API. They are stored in the same form.

use super::{Profile, ProfileError, ProfileSpec};
use aldaba_api::read::{Parsed, Problems, UnknownFields, parse};
use aldaba_api::{NewProfile, ProfileSignature, ProfileUpdate};
use aldaba_signature::{HashKind, Scheme};
use serde_json::Value;

impl Profile {
    /// All but its name.
    pub fn to_body(&self) -> ProfileUpdate {
        let headers = self.headers.iter().map(|header| header.written.clone()).collect();
        ProfileUpdate { headers, signature: self.scheme.map(write_scheme) }
    }

    pub fn to_json(&self) -> Value {
        let body = NewProfile { name: self.name.clone(), ..self.to_body().into() };
        serde_json::to_value(body).unwrap_or_default()
    }

    /// Parses a profile and returns all errors.
    pub fn from_json(json: &Value) -> Result<Self, Vec<ProfileError>> {
        let body = parse::<NewProfile>(json.to_string().as_bytes(), false, UnknownFields::Refuse)
            .and_then(Parsed::finish)
            .map_err(ProfileError::of_problems)?;
        Self::from_body(body)
    }

    /// A profile of a body that has been read.
    pub fn from_body(body: NewProfile) -> Result<Self, Vec<ProfileError>> {
        let scheme = body.signature.map(|given| read_scheme(&given)).transpose();
        let scheme = scheme.map_err(|error| vec![error])?;
        Self::new(ProfileSpec { name: body.name, headers: body.headers.into_iter().collect(), scheme })
    }
}

impl ProfileError {
    fn of_problems(problems: Problems) -> Vec<Self> {
        let error =
            |problem: aldaba_api::read::Problem| Self { field: problem.loc[1..].to_vec(), why: problem.msg };
        problems.into_list().into_iter().map(error).collect()
    }
}

fn write_scheme(scheme: Scheme) -> ProfileSignature {
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
    ProfileSignature { scheme: name.into(), hash: Some(hash.into()) }
}

/// The words may not have been read from JSON.
fn read_scheme(given: &ProfileSignature) -> Result<Scheme, ProfileError> {
    let wrong = |field: &str, why: &str| Err(ProfileError::new(&["signature", field], why));
    let hash = match given.hash.as_deref() {
        None | Some("sha256") => HashKind::Sha256,
        Some("sha512") => HashKind::Sha512,
        Some(_) => return wrong("hash", "is unknown"),
    };
    match given.scheme.as_str() {
        "standard" if hash == HashKind::Sha256 => Ok(Scheme::Standard),
        "standard" => wrong("hash", "`standard` is always made with sha256"),
        "timestamped" => Ok(Scheme::Timestamped(hash)),
        "hex" => Ok(Scheme::Hex(hash)),
        "base64" => Ok(Scheme::Base64(hash)),
        _ => wrong("scheme", "is unknown"),
    }
}
