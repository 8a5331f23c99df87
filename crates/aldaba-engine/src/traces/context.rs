//! The W3C trace context: which trace a request belongs to, and which span has caused it.

use crate::Entropy;
use http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The length of a header of version 00. A later version may add fields behind it.
const LENGTH: usize = 55;
const SAMPLED: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceId(pub(crate) [u8; 16]);

impl TraceId {
    pub(crate) fn random(entropy: &dyn Entropy) -> Self {
        let mut id = entropy.bytes();
        // Zero means none.
        id[0] |= 1;
        Self(id)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanId(pub(crate) [u8; 8]);

impl SpanId {
    pub(crate) fn random(entropy: &dyn Entropy) -> Self {
        let mut id = entropy.bytes();
        // Zero means none.
        id[0] |= 1;
        Self(id)
    }
}

/// A `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub(crate) trace: TraceId,
    pub(crate) span: SpanId,
    pub(crate) sampled: bool,
}

impl TraceContext {
    /// The context of a request. One that is not well-formed counts as none, and so do several.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let value = values.next()?;
        if values.next().is_some() {
            return None;
        }
        Self::parse(value.as_bytes())
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let (version, rest) = (hex::<1>(text.get(..2)?)?[0], text.get(LENGTH..)?);
        let is_known = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest[0] == b'-',
        };
        let dashes = [2, 35, 52].iter().all(|place| text[*place] == b'-');
        let (trace, span, flags) = (hex(&text[3..35])?, hex(&text[36..52])?, hex::<1>(&text[53..55])?[0]);
        let is_set = trace != [0; 16] && span != [0; 8];
        (is_known && dashes && is_set).then_some(Self {
            trace: TraceId(trace),
            span: SpanId(span),
            sampled: flags & SAMPLED != 0,
        })
    }

    /// As a header for the next one on the way.
    pub(crate) fn header(&self) -> HeaderValue {
        let mut text = [0; LENGTH];
        text[..3].copy_from_slice(b"00-");
        write_hex(&self.trace.0, &mut text[3..35]);
        text[35] = b'-';
        write_hex(&self.span.0, &mut text[36..52]);
        text[52] = b'-';
        write_hex(&[u8::from(self.sampled) * SAMPLED], &mut text[53..]);
        HeaderValue::from_bytes(&text).expect("hexadecimal digits and dashes are a header value")
    }
}

/// Lower-case digits only, as the standard has it.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    (text.len() == 2 * N).then_some(bytes)
}

fn write_hex(bytes: &[u8], text: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the standard.
    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn parse(text: &str) -> Option<TraceContext> {
        TraceContext::parse(text.as_bytes())
    }

    #[test]
    fn a_traceparent_is_read_and_written_as_the_standard_says() {
        let context = parse(GOOD).expect("well-formed");
        assert!(context.sampled);
        assert_eq!(context.header(), GOOD);
        let unsampled = parse(&format!("{}00", &GOOD[..53])).expect("well-formed");
        assert!(!unsampled.sampled);
        assert!(unsampled.header().as_bytes().ends_with(b"-00"));
        // Other flags are not known, and not passed on.
        assert_eq!(parse(&format!("{}03", &GOOD[..53])).expect("well-formed").header(), GOOD);
    }

    #[test]
    fn a_later_version_may_be_longer_and_is_answered_with_version_00() {
        let later = format!("cc{}-what-comes", &GOOD[2..]);
        assert_eq!(parse(&later).expect("a later version").header(), GOOD);
        assert_eq!(parse(&format!("cc{}", &GOOD[2..])).expect("the same length").header(), GOOD);
        assert_eq!(parse(&format!("cc{}.what", &GOOD[2..])), None);
    }

    #[test]
    fn what_is_no_traceparent_counts_as_none() {
        let zeros =
            |from: usize, to: usize| format!("{}{}{}", &GOOD[..from], "0".repeat(to - from), &GOOD[to..]);
        let bad = [
            String::new(),
            GOOD[..54].to_owned(),
            format!("{GOOD}-more"),
            format!("ff{}", &GOOD[2..]),
            GOOD.to_uppercase(),
            GOOD.replace('-', "_"),
            zeros(3, 35),
            zeros(36, 52),
            format!("{}é{}", &GOOD[..10], &GOOD[12..]),
            " ".repeat(55),
        ];
        for bad in bad {
            assert_eq!(parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn two_headers_count_as_none() {
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert!(TraceContext::of(&headers).is_some());
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert!(TraceContext::of(&headers).is_none());
    }
}
