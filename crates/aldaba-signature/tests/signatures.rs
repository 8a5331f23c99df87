//! Against known vectors, against another implementation, and against tampering.

use aldaba_signature::{
    KeyError, MAX_SIGNATURES, SigningKey, Verifier, VerifyError, VerifyingKey, signature_header,
};
use proptest::prelude::*;
use standardwebhooks::{
    HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook, WebhookError,
};
use std::time::Duration;

const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const NOW: i64 = 1_614_265_330;

fn verifier(keys: &[SigningKey]) -> Verifier {
    Verifier::new(keys.iter().map(VerifyingKey::from))
}

/// The vector that Standard Webhooks and its libraries publish.
#[test]
fn the_published_hmac_vector_is_reproduced() {
    let key = SigningKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let signature = key.sign(ID, NOW, b"{\"test\": 2432232314}");
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

/// RFC 8032, 7.1, test 1: its seed and public key.
#[test]
fn a_known_ed25519_seed_gives_its_public_key() {
    let seed = [
        0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4, 0x44,
        0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
    ];
    let key = SigningKey::generate_ed25519(seed);
    assert_eq!(key.public_text(), "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=");
    assert_eq!(
        &*key.secret_text(),
        "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2DXWpgBgrEKt9VL/tPJZAc6DuFy89qmIyWvAhpo9wdRGg=="
    );
    assert!(key.sign(ID, NOW, b"{}").starts_with("v1a,"));
}

#[test]
fn an_invalid_key_is_refused_with_the_reason() {
    let secret = |bytes: usize| format!("whsec_{}", "A".repeat(bytes / 3 * 4));
    for (text, error) in [
        ("", KeyError::Prefix("`whsec_` or `whsk_`")),
        ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", KeyError::Prefix("`whsec_` or `whsk_`")),
        ("whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", KeyError::Prefix("`whsec_` or `whsk_`")),
        ("WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", KeyError::Prefix("`whsec_` or `whsk_`")),
        ("whsec_", KeyError::SecretLength(0)),
        ("whsec_not base64", KeyError::Base64),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", KeyError::Base64),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", KeyError::Base64),
        (&secret(21), KeyError::SecretLength(21)),
        (&secret(78), KeyError::SecretLength(78)),
        ("whsk_AAAA", KeyError::PairLength(3)),
        (&format!("whsk_{}==", "A".repeat(86)), KeyError::PairMismatch),
    ] {
        assert_eq!(SigningKey::parse(text).unwrap_err(), error, "{text}");
    }
    for length in [24, 27, 72, 75] {
        assert!(SigningKey::parse(&secret(length)).is_ok());
    }
    for (text, error) in [
        ("whsk_AAAA", KeyError::Prefix("`whsec_` or `whpk_`")),
        ("whpk_AAAA", KeyError::PublicLength(3)),
        ("whpk_*", KeyError::Base64),
        // The identity: a key under which anything can be signed.
        ("whpk_AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", KeyError::PublicInvalid),
    ] {
        assert_eq!(VerifyingKey::parse(text).unwrap_err(), error, "{text}");
    }
}

#[test]
fn debug_output_shows_no_key() {
    let keys = [SigningKey::generate_hmac([7; 24]), SigningKey::generate_ed25519([7; 32])];
    let shown = format!("{keys:?} {:?}", verifier(&keys));
    let expected = "[SigningKey(hmac), SigningKey(ed25519)] Verifier { keys: [VerifyingKey(hmac), \
                    VerifyingKey(ed25519)], tolerance: 300s }";
    assert_eq!(shown, expected);
}

#[test]
fn the_header_holds_one_signature_per_key_in_order() {
    let keys = [SigningKey::generate_ed25519([1; 32]), SigningKey::generate_hmac([2; 24])];
    let header = signature_header(&keys, ID, NOW, b"body");
    assert_eq!(header, format!("{} {}", keys[0].sign(ID, NOW, b"body"), keys[1].sign(ID, NOW, b"body")));
    assert_eq!(signature_header(&[], ID, NOW, b"body"), "");
}

#[test]
fn a_receiver_with_the_old_or_the_new_key_takes_a_message_signed_with_both() {
    let [new, old, other] = [1, 2, 3].map(|n| SigningKey::generate_hmac([n; 24]));
    let header = signature_header(&[new.clone(), old.clone()], ID, NOW, b"body");
    let check = |keys: &[SigningKey]| verifier(keys).verify(ID, &NOW.to_string(), &header, b"body", NOW);
    assert_eq!(check(std::slice::from_ref(&new)), Ok(()));
    assert_eq!(check(std::slice::from_ref(&old)), Ok(()));
    assert_eq!(check(&[other.clone(), old]), Ok(()));
    assert_eq!(check(&[other]), Err(VerifyError::Mismatch));
    assert_eq!(check(&[]), Err(VerifyError::NoUsableSignature));
}

#[test]
fn a_shared_secret_never_vouches_for_a_public_key_scheme() {
    let hmac = SigningKey::generate_hmac([1; 24]);
    let ed25519 = SigningKey::generate_ed25519([1; 32]);
    let now = NOW.to_string();
    let signed = hmac.sign(ID, NOW, b"body");
    assert_eq!(
        verifier(std::slice::from_ref(&ed25519)).verify(ID, &now, &signed, b"body", NOW),
        Err(VerifyError::NoUsableSignature)
    );
    let renamed = signed.replacen("v1,", "v1a,", 1);
    assert_eq!(
        verifier(&[hmac, ed25519]).verify(ID, &now, &renamed, b"body", NOW),
        Err(VerifyError::NoUsableSignature)
    );
}

#[test]
fn timestamps_are_held_to_the_tolerance() {
    let key = SigningKey::generate_hmac([1; 24]);
    let check = |sent: &str, now: i64| {
        let seconds = sent.parse().unwrap_or(0);
        let signed = key.sign(ID, seconds, b"body");
        verifier(std::slice::from_ref(&key)).verify(ID, sent, &signed, b"body", now)
    };
    assert_eq!(check(&NOW.to_string(), NOW + 300), Ok(()));
    assert_eq!(check(&NOW.to_string(), NOW + 301), Err(VerifyError::TooOld));
    assert_eq!(check(&NOW.to_string(), NOW - 300), Ok(()));
    assert_eq!(check(&NOW.to_string(), NOW - 301), Err(VerifyError::TooNew));
    for garbage in ["", " 1", "+1", "-1", "1.5", "1e3", "NaN", "99999999999999999999"] {
        assert_eq!(check(garbage, 0), Err(VerifyError::TimestampInvalid), "{garbage:?}");
    }
    assert_eq!(check(&i64::MAX.to_string(), i64::MIN), Err(VerifyError::TooNew));
    assert_eq!(check("0", i64::MAX), Err(VerifyError::TooOld));
    let patient = verifier(std::slice::from_ref(&key)).with_tolerance(Duration::MAX);
    assert_eq!(patient.verify(ID, "0", &key.sign(ID, 0, b""), b"", i64::MAX), Ok(()));
}

#[test]
fn garbage_among_the_signatures_is_passed_over_up_to_a_bound() {
    let key = SigningKey::generate_hmac([1; 24]);
    let good = key.sign(ID, NOW, b"body");
    let check = |header: &str| {
        verifier(std::slice::from_ref(&key)).verify(ID, &NOW.to_string(), header, b"body", NOW)
    };
    assert_eq!(check(&format!("v2,abc nonsense , v1, v1a,xx v1,AAAA {good}")), Ok(()));
    for none in ["", " ", "v1", "v1,", &good.replacen("v1,", "v2,", 1), &good.replacen("v1,", "v1 ,", 1)] {
        assert_eq!(check(none), Err(VerifyError::NoUsableSignature), "{none:?}");
    }
    let flood = "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= ".repeat(MAX_SIGNATURES);
    assert_eq!(check(&format!("{flood}{good}")), Err(VerifyError::Mismatch));
}

fn key() -> impl Strategy<Value = SigningKey> {
    prop_oneof![
        any::<[u8; 24]>().prop_map(SigningKey::generate_hmac),
        any::<[u8; 32]>().prop_map(SigningKey::generate_ed25519),
    ]
}

proptest! {
    #[test]
    fn a_key_survives_its_text(key in key()) {
        let again = SigningKey::parse(&key.secret_text()).unwrap();
        prop_assert_eq!(again.public_text(), key.public_text());
        prop_assert_eq!(again.is_asymmetric(), key.is_asymmetric());
        prop_assert!(VerifyingKey::parse(&key.public_text()).is_ok());
    }

    #[test]
    fn a_signature_fits_its_own_message_only(
        key in key(),
        id in "[a-z0-9_]{1,30}",
        body in proptest::collection::vec(any::<u8>(), 0..200),
        flipped in any::<proptest::sample::Index>(),
    ) {
        let signed = key.sign(&id, NOW, &body);
        let verifier = Verifier::new([VerifyingKey::parse(&key.public_text()).unwrap()]);
        let now = NOW.to_string();
        prop_assert_eq!(verifier.verify(&id, &now, &signed, &body, NOW), Ok(()));
        let mut tampered = body.clone();
        tampered.push(0);
        let at = flipped.index(tampered.len());
        tampered[at] ^= 1;
        prop_assert_eq!(verifier.verify(&id, &now, &signed, &tampered, NOW), Err(VerifyError::Mismatch));
        prop_assert_eq!(verifier.verify("other!", &now, &signed, &body, NOW), Err(VerifyError::Mismatch));
        let later = (NOW + 1).to_string();
        prop_assert_eq!(verifier.verify(&id, &later, &signed, &body, NOW), Err(VerifyError::Mismatch));
    }

    #[test]
    fn the_other_implementation_signs_alike(
        secret in any::<[u8; 24]>(),
        id in "[a-zA-Z0-9_]{1,40}",
        timestamp in 0i64..=4_000_000_000,
        body in ".{0,300}",
    ) {
        let key = SigningKey::generate_hmac(secret);
        let other = Webhook::new(&key.secret_text()).unwrap();
        let theirs = other.sign(&id, timestamp, body.as_bytes()).unwrap();
        prop_assert_eq!(&key.sign(&id, timestamp, body.as_bytes()), &theirs);
        let verifier = Verifier::new([VerifyingKey::from(&key)]);
        prop_assert_eq!(verifier.verify(&id, &timestamp.to_string(), &theirs, body.as_bytes(), timestamp), Ok(()));
    }

    #[test]
    fn no_text_makes_parsing_or_verifying_panic(text in "\\PC*", header in "\\PC*") {
        let _ = SigningKey::parse(&text);
        let _ = SigningKey::parse(&format!("whsk_{text}"));
        let _ = VerifyingKey::parse(&format!("whpk_{text}"));
        let verifier = Verifier::new([VerifyingKey::from(&SigningKey::generate_hmac([0; 24]))]);
        prop_assert!(verifier.verify(&text, &text, &header, text.as_bytes(), NOW).is_err());
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the other library reads the clock itself")]
fn the_other_implementation_takes_our_header_and_no_other() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let now = i64::try_from(now).unwrap();
    let keys = [SigningKey::generate_ed25519([1; 32]), SigningKey::generate_hmac([2; 24])];
    let other = Webhook::new(&keys[1].secret_text()).unwrap();
    let mut headers = http::HeaderMap::new();
    headers.insert(HEADER_WEBHOOK_ID, ID.parse().unwrap());
    headers.insert(HEADER_WEBHOOK_TIMESTAMP, now.to_string().parse().unwrap());
    headers.insert(HEADER_WEBHOOK_SIGNATURE, signature_header(&keys, ID, now, b"body").parse().unwrap());
    assert!(other.verify(b"body", &headers).is_ok());
    assert!(matches!(other.verify(b"Body", &headers), Err(WebhookError::InvalidSignature)));
}
