//! When certificates expire.

use aldaba_delivery::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The version of a certificate, which old ones leave out.
const VERSION: u8 = 0xa0;

/// When the first of these certificates (DER) expires. Those that cannot be read do not count.
pub fn first_expiry<'a>(certificates: impl IntoIterator<Item = &'a [u8]>) -> Option<Timestamp> {
    certificates.into_iter().filter_map(expiry).min()
}

/// The end of a certificate's validity: in X.509 it comes after the version, the serial number, the algorithm and the issuer.
fn expiry(certificate: &[u8]) -> Option<Timestamp> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut rest, _) = element(certificate)?;
    if *rest.first()? == VERSION {
        rest = element(rest)?.2;
    }
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (SEQUENCE, validity, _) = element(rest)? else { return None };
    let (_, _, after_begin) = element(validity)?;
    let (kind, end, _) = element(after_begin)?;
    time(kind, end)
}

/// The tag and the content of the first element, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk()?;
    let (length, rest) = match usize::from(first) {
        short @ 0..128 => (short, rest),
        long => {
            let (digits, rest) = rest.split_at_checked(long - 128)?;
            if digits.len() > 4 {
                return None;
            }
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// `YYMMDDHHMMSSZ`, or with four digits of the year.
fn time(kind: u8, text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (year, rest) = match kind {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i16 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let part = |place: usize| rest.get(place * 2..place * 2 + 2)?.parse::<i8>().ok();
    let at = DateTime::new(year, part(0)?, part(1)?, part(2)?, part(3)?, part(4)?, 0).ok()?;
    let at = at.to_zoned(TimeZone::UTC).ok()?.timestamp();
    Some(Timestamp::from_millis(at.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn certificate(year: i32) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["example.com".into()]).unwrap();
        params.not_after = date_time_ymd(year, 3, 1);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn the_first_end_of_all_certificates_is_found() {
        let (early, late) = (certificate(2031), certificate(2061));
        assert_eq!(expiry(&early), Some(Timestamp::from_millis(1_930_089_600_000)));
        assert_eq!(expiry(&late), Some(Timestamp::from_millis(2_876_860_800_000)));
        let broken = &early[..40];
        assert_eq!(first_expiry([&late[..], &early, broken]), expiry(&early));
        assert_eq!(first_expiry([broken, &[]]), None);
    }
}
