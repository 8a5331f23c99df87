use super::template::{Placeholder, Template};
use super::{Profile, ProfileHeader, ProfileSpec};
use aldaba_api::MAX_PROFILE_HEADERS;
use aldaba_delivery::names;
use aldaba_signature::Scheme;
use http::HeaderName;

/// The longest template, and the longest name of a header, in bytes.
const MAX_TEMPLATE_BYTES: usize = 512;
const MAX_NAME_BYTES: usize = 64;

/// Headers that belong to the connection, the body or the endpoint's settings.
const RESERVED: [&str; 19] = [
    "accept",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// An error of one field of a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", field.join("."))]
pub struct ProfileError {
    /// The path of the field.
    pub field: Vec<String>,
    pub why: String,
}

impl ProfileError {
    pub(super) fn new(field: &[&str], why: impl Into<String>) -> Self {
        Self { field: field.iter().map(|part| (*part).to_owned()).collect(), why: why.into() }
    }
}

impl Profile {
    pub fn new(spec: ProfileSpec) -> Result<Self, Vec<ProfileError>> {
        let ProfileSpec { name, headers: written, scheme } = spec;
        let mut errors: Vec<_> = names::catalog_name(&name)
            .map_err(|why| ProfileError::new(&["name"], why))
            .err()
            .into_iter()
            .collect();
        if !(1..=MAX_PROFILE_HEADERS).contains(&written.len()) {
            let why = format!("must be 1 to {MAX_PROFILE_HEADERS} headers; there are {}", written.len());
            errors.push(ProfileError::new(&["headers"], why));
        }
        let (mut headers, mut fields) = (Vec::<ProfileHeader>::new(), Vec::new());
        // The rest would repeat the same error.
        for written in written.into_iter().take(MAX_PROFILE_HEADERS) {
            let header = ProfileHeader::new(written, &mut fields).and_then(|header| {
                match headers.iter().find(|other: &&ProfileHeader| other.name == header.name) {
                    None => Ok(header),
                    Some(other) => Err(header.error(format!("is the same header as `{}`", other.written.0))),
                }
            });
            match header {
                Ok(header) => headers.push(header),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            errors.extend(check_signature(&headers, scheme).err());
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let sends_traceparent = headers.iter().any(|header| header.value.contains(Placeholder::Traceparent));
        Ok(Self { name, headers, scheme, fields, sends_traceparent })
    }
}

impl ProfileHeader {
    fn new(written: (String, String), fields: &mut Vec<String>) -> Result<Self, ProfileError> {
        let error = |why: String| ProfileError::new(&["headers", &written.0], why);
        let name = HeaderName::from_bytes(written.0.as_bytes())
            .ok()
            .filter(|name| name.as_str().len() <= MAX_NAME_BYTES)
            .ok_or_else(|| {
                error(format!(
                    "a header name must be 1 to {MAX_NAME_BYTES} letters, digits or characters of !#$%&'*+-.^_`|~"
                ))
            })?;
        if RESERVED.contains(&name.as_str()) {
            return Err(error("belongs to the connection, the body or the endpoint; choose another".into()));
        }
        let template = &written.1;
        if !(1..=MAX_TEMPLATE_BYTES).contains(&template.len()) {
            let length = template.len();
            return Err(error(format!("must be 1 to {MAX_TEMPLATE_BYTES} bytes long; it is {length}")));
        }
        if !template.bytes().all(|byte| matches!(byte, b' '..=b'~')) || template.trim_ascii() != template {
            let why = "must be printable ASCII on one line, without a space at either end";
            return Err(error(why.into()));
        }
        let value = Template::parse(template, fields).map_err(error)?;
        Ok(Self { name, written, value })
    }

    fn error(&self, why: String) -> ProfileError {
        ProfileError::new(&["headers", &self.written.0], why)
    }
}

/// The signature must be sent with everything that a receiver needs to verify it.
fn check_signature(headers: &[ProfileHeader], scheme: Option<Scheme>) -> Result<(), ProfileError> {
    let with_placeholder = |field| headers.iter().find(|header| header.value.contains(field));
    match (scheme, with_placeholder(Placeholder::Signature)) {
        (None, Some(header)) => {
            Err(header.error("uses `{signature}`, but the profile has no `signature`".into()))
        }
        (Some(_), None) => {
            let why = "no header sends it; put `{signature}` into one";
            Err(ProfileError::new(&["signature"], why))
        }
        (Some(Scheme::Standard), Some(_))
            if with_placeholder(Placeholder::Id).is_none()
                || with_placeholder(Placeholder::Timestamp).is_none() =>
        {
            let why = "`standard` signs the message's id and the time as well; send `{id}` (`{eventId}` may be \
                       another) and `{timestamp}` in headers";
            Err(ProfileError::new(&["signature"], why))
        }
        _ => Ok(()),
    }
}
