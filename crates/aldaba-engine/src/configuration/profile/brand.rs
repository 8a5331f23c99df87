use http::HeaderName;
use std::fmt;
use std::str::FromStr;

const MAX_CHARS: usize = 32;

/// The header prefix of the `branded` profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brand(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a brand is 1 to {MAX_CHARS} letters, digits and signs that a header's name may hold")]
pub struct BrandError;

impl Default for Brand {
    fn default() -> Self {
        Self("Aldaba".into())
    }
}

impl FromStr for Brand {
    type Err = BrandError;

    fn from_str(text: &str) -> Result<Self, BrandError> {
        let fits = text.len() <= MAX_CHARS && HeaderName::from_bytes(text.as_bytes()).is_ok();
        if fits { Ok(Self(text.to_owned())) } else { Err(BrandError) }
    }
}

impl fmt::Display for Brand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
