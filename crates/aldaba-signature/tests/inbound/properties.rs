use crate::samples::{NOW, Sample, samples};
use aldaba_signature::inbound::{Inspector, Place, Recipe, Refusal, Secret};
use aldaba_signature::{HashKind, Scheme, SigningKey};
use proptest::prelude::*;

/// A header with one bit of one character turned, as long as it still is a character that a header may have.
fn turned(text: &str, at: usize, bit: u8) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    let index = at % bytes.len();
    bytes[index] ^= 1 << (bit % 7);
    let visible = (b' '..=b'~').contains(&bytes[index]);
    visible.then(|| String::from_utf8(bytes).expect("ASCII"))
}

/// The same signature in other letters: hexadecimal has two cases, and Stripe's header names versions of which only
/// one is looked at.
fn means_the_same(sample: &Sample, name: &str, before: &str, after: &str) -> bool {
    let hexadecimal = before.eq_ignore_ascii_case(after);
    let other_version = sample.sender == "stripe" && name == "stripe-signature" && {
        let known = |text: &str| text.split(",v0=").next().map(str::to_owned);
        known(before) == known(after) || after.starts_with(known(before).unwrap_or_default().as_str())
    };
    hexadecimal || other_version
}

proptest! {
    #[test]
    fn no_bit_of_a_body_can_be_turned(which in 0..samples().len(), at: usize, bit in 0..8_u8) {
        let mut sample = samples().swap_remove(which);
        let index = at % sample.body.len();
        sample.body[index] ^= 1 << bit;
        let refusal = sample.inspect().unwrap_err();
        prop_assert!(refusal.is_unauthorized(), "{}: {}", sample.sender, refusal);
    }

    #[test]
    fn no_bit_of_a_signed_header_can_be_turned(which in 0..samples().len(), header: usize, at: usize, bit: u8) {
        let mut sample = samples().swap_remove(which);
        let index = header % sample.headers.len();
        let (name, before) = sample.headers[index].clone();
        let unsigned = ["delivery", "event", "topic", "type"].iter().any(|part| name.ends_with(part))
            || (name.ends_with("-id") && !sample.recipe.signs_id());
        prop_assume!(!unsigned);
        let Some(after) = turned(&before, at, bit) else { return Ok(()) };
        prop_assume!(after.trim() == after && !means_the_same(&sample, name, &before, &after));
        sample.headers[index].1 = after;
        let refusal = sample.inspect().unwrap_err();
        prop_assert!(refusal.is_unauthorized(), "{} {}: {}", sample.sender, name, refusal);
    }

    #[test]
    fn a_secret_takes_what_it_signed_and_nothing_else(
        secret: [u8; 24],
        other: [u8; 24],
        id in "[!-~]{1,255}",
        body: Vec<u8>,
        age in -400_i64..400,
    ) {
        prop_assume!(secret != other);
        let key = SigningKey::generate_hmac(secret);
        let keys = std::slice::from_ref(&key);
        let standard = Scheme::Standard.sign(keys, &id, NOW, &body);
        let timestamped = Scheme::Timestamped(HashKind::Sha256).sign(keys, "", NOW, &body);
        let hex = Scheme::Hex(HashKind::Sha256).sign(keys, "", NOW, &body);
        let now = NOW.to_string();
        let headers = [
            ("webhook-id", id.as_str()),
            ("webhook-timestamp", &now),
            ("webhook-signature", &standard),
            ("acme-event-id", &id),
            ("acme-signature", &timestamped),
            ("x-webhook-signature", &hex),
        ];
        let recipes = [
            Recipe::standard(),
            Recipe::svix(),
            Recipe::branded("Acme"),
            Recipe::x_webhook_signature().with_id(Place::Header("acme-event-id".into())),
        ];
        for recipe in recipes {
            let inspector = |key: &SigningKey| {
                let secret = Secret::parse_for(&recipe, &key.public_text()).unwrap();
                Inspector::new(recipe.clone(), [secret]).unwrap()
            };
            let inspected = inspector(&key).inspect(headers.as_slice(), &body, NOW + age);
            let in_window = age.abs() <= 300 || !recipe.has_window();
            prop_assert_eq!(inspected.is_ok(), in_window);
            if let Ok(inspected) = inspected {
                prop_assert_eq!(&inspected.id, &id);
            }
            let other = inspector(&SigningKey::generate_hmac(other));
            prop_assert!(other.inspect(headers.as_slice(), &body, NOW + age).unwrap_err().is_unauthorized());
        }
    }

    #[test]
    fn no_request_causes_a_panic(
        which in 0..samples().len(),
        values in prop::collection::vec(".{0,80}", 3),
        body: Vec<u8>,
        now: i64,
    ) {
        let mut sample = samples().swap_remove(which);
        for (header, value) in sample.headers.iter_mut().zip(values) {
            header.1 = value;
        }
        sample.body = body;
        prop_assert!(sample.inspect_at(now).is_err());
    }

    #[test]
    fn any_json_of_an_unsigned_sender_is_answered(body in "[\\[{\"idtype:,}\\]0-9a ]{0,60}") {
        let place = |text: &str| Place::parse(text).unwrap();
        let recipe = Recipe::unsigned().with_id(place("$.id")).with_event_type(place("$.type"));
        let inspected = Inspector::new(recipe, []).unwrap().inspect(|_: &str| None, body.as_bytes(), 0);
        match inspected {
            Ok(inspected) => prop_assert!(body.contains(&inspected.id)),
            Err(refusal) => prop_assert!(!refusal.is_unauthorized() && refusal != Refusal::NoIdPlace),
        }
    }
}
