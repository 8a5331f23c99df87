//! Headers as they come: repeated, empty, with spaces, with more than ASCII in them.

use crate::samples::{Sample, sample_of, samples};
use aldaba_signature::inbound::{Found, Headers, Inspector, Place, Recipe, Refusal};
use aldaba_signature::{MAX_SIGNATURES, VerifyError};

/// The headers that the signature needs, by what the names of the presets end with.
fn is_signed(sample: &Sample, name: &str) -> bool {
    let covered = name.contains("signature") || name.contains("hmac") || name.contains("timestamp");
    covered || (sample.recipe.signs_id() && name.ends_with("-id"))
}

#[test]
fn a_header_that_comes_twice_is_refused_even_if_both_are_alike() {
    for sample in samples() {
        for (name, value) in &sample.headers {
            let mut twice = sample.clone();
            twice.headers.push((name, value.clone()));
            let refusal = twice.inspect().unwrap_err();
            if is_signed(&sample, name) {
                assert_eq!(refusal, Refusal::Unclear((*name).into()), "{}", sample.sender);
                assert!(refusal.is_unauthorized());
            } else {
                assert_eq!(refusal, Refusal::PlaceUnclear((*name).into()), "{}", sample.sender);
                assert!(!refusal.is_unauthorized());
            }
        }
    }
}

#[test]
fn headers_that_the_recipe_does_not_use_are_not_checked() {
    for mut sample in samples() {
        sample.headers.extend([("x-other", "a".into()), ("x-other", String::new()), ("x-other", "ü".into())]);
        assert_eq!(sample.inspect(), Ok(sample.expected()), "{}", sample.sender);
    }
}

#[test]
fn an_empty_header_counts_as_absent_and_values_are_trimmed() {
    for sample in samples() {
        for index in 0..sample.headers.len() {
            let with = |value: String| {
                let mut changed = sample.clone();
                changed.headers[index].1 = value;
                changed.inspect()
            };
            let (name, value) = &sample.headers[index];
            assert_eq!(with(format!(" \t{value}  ")), Ok(sample.expected()), "{} {name}", sample.sender);
            let mut without = sample.clone();
            without.headers.remove(index);
            assert_eq!(with(String::new()), without.inspect(), "{} {name}", sample.sender);
            assert_eq!(with(" \t ".into()), without.inspect(), "{} {name}", sample.sender);
        }
    }
}

#[test]
fn an_invalid_signature_is_refused() {
    for sample in samples() {
        let signature =
            sample.headers.iter().position(|(name, _)| name.contains("signature") || name.contains("hmac"));
        let signature = signature.unwrap();
        let long = "a".repeat(100_000);
        for value in ["x", "ü", "v1", "v1,", "sha256=", "t=,v1=", "v0=zz", "==", "\u{0}", long.as_str()] {
            let mut changed = sample.clone();
            changed.headers[signature].1 = value.into();
            let refusal = changed.inspect().unwrap_err();
            assert!(refusal.is_unauthorized(), "{} {value:?}: {refusal}", sample.sender);
        }
    }
}

#[test]
fn a_timestamp_is_digits() {
    for sender in ["standard", "svix", "slack", "zoom", "airwallex", "telnyx"] {
        let sample = sample_of(sender);
        let timestamp = sample.headers.iter().position(|(name, _)| name.contains("timestamp")).unwrap();
        let huge = "9".repeat(30);
        for value in
            ["soon", "-1614265330", "+1614265330", "1614265330.0", "1614265330 0", "٣", huge.as_str()]
        {
            let mut changed = sample.clone();
            changed.headers[timestamp].1 = value.into();
            let refusal = Refusal::Signature(VerifyError::TimestampInvalid);
            assert_eq!(changed.inspect(), Err(refusal), "{sender} {value}");
        }
    }
}

/// A hostile list costs no more than [`MAX_SIGNATURES`] checks: what comes after is not looked at.
#[test]
fn of_ten_thousand_signatures_the_first_few_are_looked_at() {
    for (sender, name, separator, wrong) in [
        ("standard", "webhook-signature", " ", "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
        ("stripe", "stripe-signature", ",", "v1=00"),
        ("github", "x-hub-signature-256", ",", "sha256=00"),
        ("shopify", "x-shopify-hmac-sha256", ",", "AAAA"),
        ("slack", "x-slack-signature", ",", "v0=00"),
    ] {
        let sample = sample_of(sender);
        let right = sample.clone().header(name).clone();
        let list = |before: usize, after: usize| {
            let many = |count| vec![wrong; count];
            let mut changed = sample.clone();
            let texts = [many(before), vec![right.as_str()], many(after)].concat();
            *changed.header(name) = texts.join(separator);
            changed.inspect()
        };
        assert_eq!(list(5, 10_000), Ok(sample.expected()), "{sender}");
        let late = list(MAX_SIGNATURES + 1, 10_000).unwrap_err();
        assert!(late.is_unauthorized(), "{sender}: {late}");
    }
}

#[test]
fn a_closure_is_asked_for_names_in_lower_case() {
    let sample = sample_of("github");
    let headers = |name: &str| {
        assert_eq!(name, name.to_ascii_lowercase());
        sample.headers.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str())
    };
    assert_eq!(sample.inspector().inspect(headers, &sample.body, 0), Ok(sample.expected()));
    let upper = Recipe::unsigned().with_id(Place::Header("X-GitHub-Delivery".into()));
    let inspector = Inspector::new(upper, []).unwrap();
    assert_eq!(inspector.inspect(headers, b"", 0).unwrap().id, sample.id);
    assert_eq!(Headers::find(&headers, "x-other"), Found::Absent);
}

#[test]
fn nothing_that_came_is_quoted_in_a_refusal() {
    let mut sample = sample_of("branded");
    *sample.header("zeltapay-event-id") = "marker marker".into();
    assert!(!format!("{0} {0:?}", sample.inspect().unwrap_err()).contains("marker"));
    *sample.header("zeltapay-signature") = "t=1794757495,v1=marker".into();
    assert!(!format!("{0} {0:?}", sample.inspect().unwrap_err()).contains("marker"));
}

#[cfg(feature = "http")]
mod header_map {
    use super::*;
    use http::{HeaderMap, HeaderName, HeaderValue};

    fn map(sample: &Sample) -> HeaderMap {
        let pairs = sample
            .headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
        pairs.collect()
    }

    #[test]
    fn a_header_map_tells_once_twice_and_unreadable_apart() {
        for sample in samples() {
            let headers = map(&sample);
            let inspect = |headers: &HeaderMap| sample.inspector().inspect(headers, &sample.body, sample.now);
            assert_eq!(inspect(&headers), Ok(sample.expected()), "{}", sample.sender);
            for (name, value) in &sample.headers {
                let mut twice = headers.clone();
                twice.append(*name, HeaderValue::from_str(value).unwrap());
                let mut unreadable = headers.clone();
                unreadable.insert(*name, HeaderValue::from_bytes(b"caf\xe9").unwrap());
                for refusal in [inspect(&twice), inspect(&unreadable)] {
                    let unclear = match is_signed(&sample, name) {
                        true => Refusal::Unclear((*name).into()),
                        false => Refusal::PlaceUnclear((*name).into()),
                    };
                    assert_eq!(refusal, Err(unclear), "{} {name}", sample.sender);
                }
            }
        }
        let headers = HeaderMap::new();
        assert_eq!(Headers::get(&&headers, "x-other"), None);
        assert_eq!(Headers::find(&&headers, "not a name"), Found::Absent);
    }
}
