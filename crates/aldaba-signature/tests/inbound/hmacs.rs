//! Signatures that nobody has made a preset for.

use crate::samples::NOW;
use aldaba_signature::inbound::{
    Encoding, Hmac, Inspector, Place, PlaceError, Recipe, Refusal, Secret, SecretForm, SetupError, Template,
    Timestamp,
};
use aldaba_signature::{HashKind, Scheme, SigningKey, TimeUnit, VerifyError};

const BODY: &[u8] = br#"{"number": 7}"#;
const SIGNATURE: &str =
    "sig:buh6oIMSw+1CQoHl4feiycF7RqRmdtDVMdwvZhQEfTW+7GzdZQR7Fg+2eq6lJZOCDwkwpYIdoRwKi7gru1jEzw==";

fn template(text: &str) -> Template {
    Template::parse(text).unwrap()
}

fn timestamp(header: &str, unit: TimeUnit) -> Option<Timestamp> {
    Some(Timestamp { header: header.into(), unit })
}

fn inspector(recipe: Recipe, secret: &str) -> Inspector {
    let secret = Secret::parse_for(&recipe, secret).unwrap();
    Inspector::new(recipe, [secret]).unwrap()
}

/// A sender that signs everything, with Python's `hmac` as the signer.
#[test]
fn a_template_joins_its_parts() {
    let recipe = Recipe::hmac(Hmac {
        prefix: "sig:".into(),
        hash: HashKind::Sha512,
        encoding: Encoding::Base64,
        signed: template("{{{timestamp}}}|{body}|{id}"),
        timestamp: timestamp("X-Sent-Ms", TimeUnit::Milliseconds),
        secret: SecretForm::Hex,
        ..Hmac::of_body("X-Sig")
    })
    .with_id(Place::Header("X-Message".into()));
    assert!(recipe.signs_id() && recipe.has_window());
    let inspector = inspector(recipe, "00ff10");
    let headers = [("x-sig", SIGNATURE), ("x-sent-ms", "1614265330999"), ("x-message", "m-1")];
    let inspected = inspector.inspect(headers.as_slice(), BODY, NOW).unwrap();
    assert_eq!((inspected.id.as_str(), inspected.event_type), ("m-1", None));
    for (name, value) in [("x-message", "m-2"), ("x-sent-ms", "1614265330998")] {
        let changed = headers.map(|header| if header.0 == name { (name, value) } else { header });
        let refused = inspector.inspect(changed.as_slice(), BODY, NOW);
        assert_eq!(refused, Err(Refusal::Signature(VerifyError::Mismatch)), "{name}");
    }
    // Milliseconds are no seconds: those would lie in the year 53124.
    let seconds = inspector.inspect(headers.as_slice(), BODY, 1_614_265_330_999);
    assert_eq!(seconds, Err(Refusal::Signature(VerifyError::TooOld)));
}

#[test]
fn a_signature_without_the_prefix_is_invalid() {
    let key = SigningKey::generate_hmac([1; 24]);
    let hex = Scheme::Hex(HashKind::Sha256).sign(std::slice::from_ref(&key), "", 0, BODY);
    let recipe =
        Recipe::hmac(Hmac { prefix: "v1=".into(), secret: SecretForm::Standard, ..Hmac::of_body("x-sig") });
    let inspector = inspector(recipe.with_id(Place::BodyDigest), &key.public_text());
    let check = |value: &str| inspector.verify([("x-sig", value)].as_slice(), BODY, 0);
    assert_eq!(check(&format!("v1={hex}")), Ok(()));
    assert_eq!(check(&format!("v0=00,v1={}", hex.to_uppercase())), Ok(()));
    assert_eq!(check(&format!("v1=00, v1={hex}")), Ok(()));
    for value in [hex.clone(), format!("V1={hex}"), format!("v1= {hex}"), format!("v1={hex};v1={hex}")] {
        assert_eq!(check(&value), Err(Refusal::Signature(VerifyError::NoUsableSignature)), "{value}");
    }
    assert_eq!(check(&format!("v1={}", &hex[..62])), Err(Refusal::Signature(VerifyError::NoUsableSignature)));
}

/// `acme` of docs/profiles.md, with the signature that stands there.
#[test]
fn a_profile_of_ones_own_is_taken() {
    let recipe = Recipe::hmac(Hmac {
        prefix: "sha512=".into(),
        hash: HashKind::Sha512,
        secret: SecretForm::Standard,
        ..Hmac::of_body("X-Acme-Signature")
    })
    .with_id(Place::parse("header:X-Acme-Delivery").unwrap());
    assert!(!recipe.signs_id() && !recipe.has_window());
    let inspector = inspector(recipe, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let headers = [
        ("x-acme-delivery", "msg_3M9KlX4MZz10D6NByhC8p0MEFnG"),
        (
            "x-acme-signature",
            "sha512=47ef2a66c609ed0dcba9b8faf84f39a46f5b25f99908791a2bc83f85e38b1e7db540ea5d0fd1bd899e01498f246b42b4\
             eeca86de7bb34a6cc3a071c2f9e54878",
        ),
    ];
    let body = br#"{"jobId": "job-7", "status": "completed"}"#;
    assert_eq!(inspector.inspect(headers.as_slice(), body, 0).unwrap().id, "msg_3M9KlX4MZz10D6NByhC8p0MEFnG");
}

#[test]
fn a_timestamped_header_may_have_any_name_and_either_hash() {
    let keys = [SigningKey::generate_hmac([1; 24]), SigningKey::generate_ed25519([2; 32])];
    for hash in [HashKind::Sha256, HashKind::Sha512] {
        let header = Scheme::Timestamped(hash).sign(&keys, "", NOW, BODY);
        for key in &keys {
            let recipe = Recipe::timestamped("X-Any", hash, SecretForm::Standard).with_id(Place::BodyDigest);
            let inspector = inspector(recipe, &key.public_text());
            assert_eq!(inspector.verify([("x-any", &header)].as_slice(), BODY, NOW), Ok(()));
        }
    }
}

#[test]
fn a_recipe_that_cannot_be_is_refused_when_it_is_set_up() {
    let set_up = |recipe: Recipe| {
        let secret = Secret::text("a").unwrap();
        Inspector::new(recipe, [secret]).map(|_| ()).unwrap_err()
    };
    let plain = || Hmac::of_body("x-sig");
    let id = Place::parse("header:x-id").unwrap();
    let with_id = || Recipe::hmac(Hmac { signed: template("{id}.{body}"), ..plain() });
    assert_eq!(set_up(with_id()), SetupError::SignedIdPlace);
    assert_eq!(set_up(with_id().with_id(Place::BodyDigest)), SetupError::SignedIdPlace);
    assert_eq!(set_up(with_id().with_id("$.id".parse().unwrap())), SetupError::SignedIdPlace);
    assert_eq!(set_up(with_id().with_id(id.clone()).or_id(id.clone())), SetupError::SignedIdPlace);
    let timed = Recipe::hmac(Hmac { signed: template("{timestamp}.{body}"), ..plain() });
    assert_eq!(set_up(timed.with_id(id.clone())), SetupError::TimestampPlace);
    let loose = Recipe::hmac(Hmac { timestamp: timestamp("x-time", TimeUnit::Seconds), ..plain() });
    assert_eq!(set_up(loose.with_id(id)), SetupError::TimestampUnsigned);
    for recipe in [
        Recipe::hmac(Hmac::of_body("")),
        Recipe::hmac(Hmac::of_body("x sig")),
        Recipe::hmac(plain()).with_id(Place::Header("x\r\n".into())),
        Recipe::hmac(plain()).with_event_type(Place::Header("ü".into())),
        Recipe::timestamped("", HashKind::Sha256, SecretForm::Text),
        Recipe::branded("two words"),
        Recipe::hmac(Hmac {
            signed: template("{timestamp}{body}"),
            timestamp: timestamp("x time", TimeUnit::Seconds),
            ..plain()
        }),
    ] {
        assert_eq!(set_up(recipe), SetupError::HeaderName(PlaceError::HeaderName));
    }
}
