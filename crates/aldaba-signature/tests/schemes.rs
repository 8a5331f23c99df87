//! The schemes of other senders, against vectors that Python's `hmac` made.

use aldaba_signature::{HashKind, MAX_SIGNATURES, Scheme, SigningKey, Verifier, VerifyError, VerifyingKey};
use proptest::prelude::*;

const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const NOW: i64 = 1_614_265_330;
const BODY: &[u8] = b"{\"test\": 2432232314}";
const HASHES: [HashKind; 2] = [HashKind::Sha256, HashKind::Sha512];

fn new_key() -> SigningKey {
    SigningKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap()
}

fn old_key() -> SigningKey {
    SigningKey::generate_hmac([2; 24])
}

fn verifier(key: &SigningKey) -> Verifier {
    Verifier::new([VerifyingKey::from(key)])
}

#[test]
fn known_vectors_are_reproduced() {
    let keys = [new_key(), old_key()];
    for (scheme, expected) in [
        (Scheme::Standard, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        (
            Scheme::Timestamped(HashKind::Sha256),
            "t=1614265330,v1=e96203c6de850e7dc1fde7489ef6140b402d3a5a64fe250cd2eef9830fac1cef",
        ),
        (
            Scheme::Timestamped(HashKind::Sha512),
            "t=1614265330,v1=ec1b938365c2b40ea236c418f54711207294293a72c8dbb675f62c85ccda9221cad1d28032acf8e9ac9ab95f\
             ebb538445b32d320971afa963243a88a3564a8d0",
        ),
        (Scheme::Hex(HashKind::Sha256), "e2cb4f5251572539d458bfb8a7adb533b08801e6a794467e06f771debbb0818b"),
        (
            Scheme::Hex(HashKind::Sha512),
            "65804ba1946762f23ef1445e3f23a487d6d34905c5bc30ff25cf3f4dfb5be9706b9fae3ca748e693471f425590c2c8d19a26121d\
             f3608a384aee08be9e0517e0",
        ),
        (Scheme::Base64(HashKind::Sha256), "4stPUlFXJTnUWL+4p621M7CIAeanlEZ+Bvdx3ruwgYs="),
        (
            Scheme::Base64(HashKind::Sha512),
            "ZYBLoZRnYvI+8URePyOkh9bTSQXFvDD/Jc8/Tftb6XBrn648p0jmk0cfQlWQwsjRmiYSHfNgijhK7gi+ngUX4A==",
        ),
    ] {
        assert_eq!(scheme.sign(&keys[..1], ID, NOW, BODY), expected, "{scheme:?}");
    }
}

#[test]
fn a_scheme_that_can_holds_a_signature_of_every_key_and_the_others_that_of_the_first() {
    let keys = [new_key(), old_key()];
    assert_eq!(
        Scheme::Timestamped(HashKind::Sha256).sign(&keys, ID, NOW, BODY),
        "t=1614265330,v1=e96203c6de850e7dc1fde7489ef6140b402d3a5a64fe250cd2eef9830fac1cef,\
         v1=9cc4dbdf12c86efc0cad4c9097d0e8b99a8153b665c9305fe9d595e5b61ef174"
    );
    assert_eq!(Scheme::Standard.sign(&keys, ID, NOW, BODY).split(' ').count(), 2);
    for hash in HASHES {
        for scheme in [Scheme::Hex(hash), Scheme::Base64(hash)] {
            assert_eq!(scheme.sign(&keys, ID, NOW, BODY), scheme.sign(&keys[..1], ID, NOW, BODY));
            assert_eq!(scheme.sign(&[], ID, NOW, BODY), "");
        }
    }
    for key in &keys {
        let header = Scheme::Timestamped(HashKind::Sha512).sign(&keys, ID, NOW, BODY);
        let checked = verifier(key).verify_timestamped(HashKind::Sha512, &header, BODY, NOW);
        assert_eq!(checked, Ok(()), "a receiver with either key takes it");
    }
}

#[test]
fn a_timestamped_header_is_held_to_the_tolerance_and_names_one_time() {
    let key = new_key();
    let header = Scheme::Timestamped(HashKind::Sha256).sign(std::slice::from_ref(&key), ID, NOW, BODY);
    let check = |header: &str, now| verifier(&key).verify_timestamped(HashKind::Sha256, header, BODY, now);
    assert_eq!(check(&header, NOW + 300), Ok(()));
    assert_eq!(check(&header, NOW + 301), Err(VerifyError::TooOld));
    assert_eq!(check(&header, NOW - 301), Err(VerifyError::TooNew));
    assert_eq!(
        check(&header.replace(',', ", "), NOW),
        Ok(()),
        "a space after the comma is none of our business"
    );
    assert_eq!(check(&header.to_uppercase().replace("T=", "t=").replace("V1=", "v1="), NOW), Ok(()));
    assert_eq!(check(&format!("v0=00,{header},v2=1234,x"), NOW), Ok(()));
    // Which of two times was signed could be a matter of opinion.
    assert_eq!(check(&format!("{header},t={NOW}"), NOW), Err(VerifyError::TimestampInvalid));
    for garbage in ["", "t", "v1=00", "t=", "t=+1614265330", &header.replacen("t=", "T=", 1)] {
        assert_eq!(check(garbage, NOW), Err(VerifyError::TimestampInvalid), "{garbage}");
    }
    for none in
        [format!("t={NOW}"), format!("t={NOW},v1=abc"), format!("t={NOW},v1=00"), format!("t={NOW},v2=00")]
    {
        assert_eq!(check(&none, NOW), Err(VerifyError::NoUsableSignature), "{none}");
    }
    let flood = format!(",v1={}", "00".repeat(32)).repeat(MAX_SIGNATURES);
    let late = header.replacen(&format!("t={NOW}"), "", 1);
    assert_eq!(check(&format!("t={NOW}{flood}{late}"), NOW), Err(VerifyError::Mismatch));
}

#[test]
fn a_signature_with_another_hash_is_invalid() {
    let key = new_key();
    let signed = Scheme::Hex(HashKind::Sha256).sign(std::slice::from_ref(&key), ID, NOW, BODY);
    assert_eq!(verifier(&key).verify_hex(HashKind::Sha256, &signed, BODY), Ok(()));
    assert_eq!(
        verifier(&key).verify_hex(HashKind::Sha512, &signed, BODY),
        Err(VerifyError::NoUsableSignature)
    );
    assert_eq!(verifier(&old_key()).verify_hex(HashKind::Sha256, &signed, BODY), Err(VerifyError::Mismatch));
    for none in ["", "0", "zz", &signed[1..], &signed.replacen('e', "é", 1)] {
        let checked = verifier(&key).verify_hex(HashKind::Sha256, none, BODY);
        assert_eq!(checked, Err(VerifyError::NoUsableSignature), "{none}");
    }
}

#[test]
fn a_public_key_checks_what_its_own_half_has_signed_and_no_hmac() {
    let key = SigningKey::generate_ed25519([7; 32]);
    let public = Verifier::new([VerifyingKey::parse(&key.public_text()).unwrap()]);
    let keys = [key];
    let timestamped = Scheme::Timestamped(HashKind::Sha512).sign(&keys, ID, NOW, BODY);
    assert!(timestamped.starts_with("t=1614265330,v1a="));
    assert_eq!(public.verify_timestamped(HashKind::Sha512, &timestamped, BODY, NOW), Ok(()));
    let renamed = timestamped.replace("v1a=", "v1=");
    assert_eq!(
        public.verify_timestamped(HashKind::Sha512, &renamed, BODY, NOW),
        Err(VerifyError::NoUsableSignature)
    );
    let hex = Scheme::Hex(HashKind::Sha256).sign(&keys, ID, NOW, BODY);
    assert_eq!(public.verify_hex(HashKind::Sha256, &hex, BODY), Ok(()));
    // As long as one of Ed25519, but made with a shared secret.
    let hmac = Scheme::Hex(HashKind::Sha512).sign(&[new_key()], ID, NOW, BODY);
    assert_eq!(public.verify_hex(HashKind::Sha512, &hmac, BODY), Err(VerifyError::Mismatch));
}

proptest! {
    #[test]
    fn a_signature_fits_its_own_body_only(secret in any::<[u8; 24]>(), body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let key = SigningKey::generate_hmac(secret);
        let (verifier, keys) = (verifier(&key), [key]);
        let mut other = body.clone();
        other.push(b'!');
        for hash in HASHES {
            let signed = |scheme: Scheme| scheme.sign(&keys, ID, NOW, &body);
            let (time, hex, base64) =
                (signed(Scheme::Timestamped(hash)), signed(Scheme::Hex(hash)), signed(Scheme::Base64(hash)));
            prop_assert_eq!(verifier.verify_timestamped(hash, &time, &body, NOW), Ok(()));
            prop_assert_eq!(verifier.verify_hex(hash, &hex, &body), Ok(()));
            prop_assert_eq!(verifier.verify_base64(hash, &base64, &body), Ok(()));
            prop_assert_eq!(verifier.verify_timestamped(hash, &time, &other, NOW), Err(VerifyError::Mismatch));
            prop_assert_eq!(verifier.verify_hex(hash, &hex, &other), Err(VerifyError::Mismatch));
            prop_assert_eq!(verifier.verify_base64(hash, &base64, &other), Err(VerifyError::Mismatch));
            let moved = time.replacen(&NOW.to_string(), &(NOW + 1).to_string(), 1);
            prop_assert_eq!(verifier.verify_timestamped(hash, &moved, &body, NOW), Err(VerifyError::Mismatch));
        }
    }

    #[test]
    fn no_text_makes_verifying_panic(text in "\\PC*") {
        let verifier = verifier(&new_key());
        prop_assert!(verifier.verify_timestamped(HashKind::Sha256, &text, BODY, NOW).is_err());
        prop_assert!(verifier.verify_hex(HashKind::Sha256, &text, BODY).is_err());
        prop_assert!(verifier.verify_base64(HashKind::Sha512, &text, BODY).is_err());
    }
}
