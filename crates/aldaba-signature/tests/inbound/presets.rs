use crate::samples::{NOW, Sample, sample_of, samples};
use aldaba_signature::inbound::{Inspector, PRESETS, Place, Recipe, Refusal, Secret};
use aldaba_signature::{HashKind, Scheme, SigningKey, VerifyError};
use std::time::Duration;

#[test]
fn a_request_of_every_sender_is_taken_with_its_id_and_type() {
    for sample in samples() {
        assert_eq!(sample.inspect(), Ok(sample.expected()), "{}", sample.sender);
    }
}

#[test]
fn every_preset_has_a_sample_and_a_name() {
    for name in PRESETS {
        assert_eq!(Recipe::named(name), Some(sample_of(name).recipe), "{name}");
    }
    for name in ["clerk", "resend", "open-ai", "replicate"] {
        assert_eq!(Recipe::named(name), Some(Recipe::svix()), "{name} sends through Svix");
    }
    for name in ["", "branded", "Stripe", "nobody"] {
        assert_eq!(Recipe::named(name), None, "{name}");
    }
}

#[test]
fn another_secret_or_body_is_refused() {
    for sample in samples() {
        let other = match sample.sender {
            "standard" | "svix" => "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            "telnyx" => "E5j2LG0aRXxRumpLXz29L2n8qTIWIY3ImX5Ba9F9k8o=",
            _ => "another secret",
        };
        let inspected =
            sample.inspector_with(other).inspect(sample.headers.as_slice(), &sample.body, sample.now);
        assert_eq!(inspected, Err(Refusal::Signature(VerifyError::Mismatch)), "{}", sample.sender);

        let mut changed = sample.clone();
        changed.body.push(b' ');
        assert_eq!(changed.inspect(), Err(Refusal::Signature(VerifyError::Mismatch)), "{}", sample.sender);
    }
}

#[test]
fn a_window_holds_where_the_signature_covers_a_timestamp_and_nowhere_else() {
    for sample in samples() {
        let windowless = ["github", "shopify", "x-webhook", "meta", "easypost"].contains(&sample.sender);
        assert_eq!(sample.recipe.has_window(), !windowless, "{}", sample.sender);
        for (age, refusal) in [(301, VerifyError::TooOld), (-302, VerifyError::TooNew)] {
            let inspected = sample.inspect_at(sample.now + age);
            let expected = if windowless { Ok(sample.expected()) } else { Err(Refusal::Signature(refusal)) };
            assert_eq!(inspected, expected, "{} at {age}", sample.sender);
        }
        for age in [299, -299] {
            assert_eq!(sample.inspect_at(sample.now + age), Ok(sample.expected()), "{}", sample.sender);
        }
        let patient = sample.inspector().with_tolerance(Duration::from_secs(3600));
        let inspected = patient.inspect(sample.headers.as_slice(), &sample.body, sample.now + 3599);
        assert_eq!(inspected, Ok(sample.expected()), "{}", sample.sender);
    }
}

#[test]
fn a_recipe_knows_whether_the_id_is_signed() {
    for sample in samples() {
        let unsigned = ["github", "shopify", "branded"].contains(&sample.sender);
        assert_eq!(sample.recipe.signs_id(), !unsigned, "{}", sample.sender);
    }
    assert!(!Recipe::unsigned().signs_id());
}

#[test]
fn a_request_without_its_signature_or_time_is_unauthorized() {
    for sample in samples() {
        for (name, _) in &sample.headers {
            let mut without = sample.clone();
            without.headers.retain(|(other, _)| other != name);
            let inspected = without.inspect();
            if name.ends_with("-id") || name.ends_with("-delivery") {
                let place = Place::header(name).unwrap();
                assert_eq!(inspected, Err(Refusal::NoId(vec![place])), "{} without {name}", sample.sender);
            } else if ["event", "topic", "type"].iter().any(|part| name.ends_with(part)) {
                assert_eq!(inspected.unwrap().event_type, None, "{} without {name}", sample.sender);
            } else {
                assert_eq!(inspected, Err(Refusal::Missing((*name).into())), "{}", sample.sender);
            }
        }
    }
}

#[test]
fn a_stripe_secret_is_its_whole_text() {
    let sample = sample_of("stripe");
    let decoded = Secret::text("test_secret").unwrap();
    let inspector = Inspector::new(Recipe::stripe(), [decoded]).unwrap();
    let inspected = inspector.inspect(sample.headers.as_slice(), &sample.body, NOW);
    assert_eq!(inspected, Err(Refusal::Signature(VerifyError::Mismatch)));
}

/// From Slack's documentation: a slash command, whose body is a form and has no event id.
#[test]
fn a_request_of_slack_that_is_no_event_holds_and_has_no_id() {
    let body = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&\
        channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=\
        https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=\
        398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let headers: &[(&str, &str)] = &[
        ("X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"),
        ("X-Slack-Request-Timestamp", "1531420618"),
    ];
    let inspector = sample_of("slack").inspector();
    assert_eq!(inspector.verify(headers, body, 1_531_420_618), Ok(()));
    assert_eq!(inspector.inspect(headers, body, 1_531_420_618), Err(Refusal::BodyNotJson));
}

#[test]
fn a_slack_event_without_an_inner_one_has_the_outer_type() {
    let mut sample = sample_of("slack");
    sample.body = br#"{"type": "app_rate_limited", "event_id": "Ev1"}"#.to_vec();
    *sample.header("x-slack-signature") = sign_hex("v0=", sample.secret, "v0:1614265330:", &sample.body);
    assert_eq!(sample.inspect().unwrap().event_type.as_deref(), Some("app_rate_limited"));
}

fn sign_hex(prefix: &str, secret: &str, head: &str, body: &[u8]) -> String {
    use hmac::{KeyInit, Mac};
    let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(head.as_bytes());
    mac.update(body);
    mac.finalize().into_bytes().iter().fold(prefix.to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

#[test]
fn svix_is_taken_under_both_of_its_names_and_the_id_is_the_signed_one() {
    let svix = sample_of("svix");
    let renamed = |sample: &Sample| {
        let headers = sample.headers.iter().map(|(name, value)| {
            let name = match *name {
                "svix-id" => "webhook-id",
                "svix-timestamp" => "webhook-timestamp",
                _ => "webhook-signature",
            };
            (name, value.clone())
        });
        Sample { headers: headers.collect(), ..sample.clone() }
    };
    let webhook = renamed(&svix);
    assert_eq!(webhook.inspect(), Ok(svix.expected()));

    // An attacker adds the other header to a recorded request, so that it looks like a new event.
    let mut replayed = webhook.clone();
    replayed.headers.push(("svix-id", "msg_another".into()));
    assert_eq!(replayed.inspect(), Ok(svix.expected()));
    let mut replayed = svix.clone();
    replayed.headers.push(("webhook-id", "msg_another".into()));
    assert_eq!(replayed.inspect(), Ok(svix.expected()));

    // Which of two sets counts is decided by the signature.
    let mut mixed = webhook;
    mixed.headers.push(("svix-signature", "v1,AAAA".into()));
    assert_eq!(mixed.inspect(), Err(Refusal::Missing("svix-timestamp".into())));
    let standard = Sample { recipe: Recipe::standard(), ..svix };
    assert_eq!(standard.inspect(), Err(Refusal::Missing("webhook-signature".into())));
}

#[test]
fn while_a_secret_is_replaced_both_are_taken() {
    for sample in samples() {
        let others: &[&str] = match sample.sender {
            "standard" | "svix" => &["whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"],
            "telnyx" => &["E5j2LG0aRXxRumpLXz29L2n8qTIWIY3ImX5Ba9F9k8o="],
            _ => &["another", "a third"],
        };
        let secrets = others.iter().chain([&sample.secret]);
        let secrets = secrets.map(|text| Secret::parse_for(&sample.recipe, text).unwrap());
        let inspector = Inspector::new(sample.recipe.clone(), secrets).unwrap();
        let inspected = inspector.inspect(sample.headers.as_slice(), &sample.body, sample.now);
        assert_eq!(inspected, Ok(sample.expected()), "{}", sample.sender);
    }
}

/// What our own schemes sign, symmetric and not, is taken by the recipes that are made for them.
#[test]
fn signatures_of_this_crate_are_accepted() {
    let keys = [SigningKey::generate_hmac([5; 24]), SigningKey::generate_ed25519([6; 32])];
    let body = br#"{"type": "invoice.paid"}"#;
    for key in keys {
        let key_text = key.public_text();
        let keys = std::slice::from_ref(&key);
        let check = |recipe: Recipe, headers: &[(&str, String)], id: &str, event_type: Option<&str>| {
            let secret = Secret::parse_for(&recipe, &key_text).unwrap();
            let inspector = Inspector::new(recipe, [secret]).unwrap();
            let inspected = inspector.inspect(headers, body, NOW + 10).unwrap();
            assert_eq!((inspected.id.as_str(), inspected.event_type.as_deref()), (id, event_type));
            let refused = inspector.inspect(headers, b"{}", NOW + 10);
            assert_eq!(refused, Err(Refusal::Signature(VerifyError::Mismatch)));
        };
        for (recipe, prefix) in [(Recipe::standard(), "webhook"), (Recipe::svix(), "svix")] {
            let names = ["id", "timestamp", "signature"].map(|name| format!("{prefix}-{name}"));
            let signature = Scheme::Standard.sign(keys, "msg_1", NOW, body);
            let values = ["msg_1".to_owned(), NOW.to_string(), signature];
            let headers: Vec<_> = names.iter().map(String::as_str).zip(values).collect();
            check(recipe, &headers, "msg_1", Some("invoice.paid"));
        }
        let timestamped = Scheme::Timestamped(HashKind::Sha256).sign(keys, "", NOW, body);
        let headers = [
            ("acme-signature", timestamped),
            ("acme-event-id", "m1".into()),
            ("acme-event-type", "a.b".into()),
        ];
        check(Recipe::branded("Acme"), &headers, "m1", Some("a.b"));
        let hex = Scheme::Hex(HashKind::Sha256).sign(keys, "", NOW, body);
        let headers = [("x-webhook-signature", hex), ("x-webhook-event", "invoice.paid".into())];
        let recipe = Recipe::x_webhook_signature().with_id("$.type".parse().unwrap());
        check(recipe, &headers, "invoice.paid", Some("invoice.paid"));
    }
}

/// The library that Standard Webhooks publishes, as the sender.
#[test]
fn signatures_of_the_published_library_are_accepted() {
    let text = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    let library = standardwebhooks::Webhook::new(text).unwrap();
    let body = br#"{"type": "contact.created", "data": {"id": "1f81eb52"}}"#;
    let signature = library.sign("msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", 1_674_087_231, body).unwrap();
    let headers = [
        ("webhook-id", "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk"),
        ("webhook-timestamp", "1674087231"),
        ("webhook-signature", &signature),
    ];
    let secret = Secret::standard(text).unwrap();
    let inspector = Inspector::new(Recipe::standard(), [secret]).unwrap();
    let inspected = inspector.inspect(headers.as_slice(), body, 1_674_087_231).unwrap();
    assert_eq!(inspected.id, "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk");
    assert_eq!(inspected.event_type.as_deref(), Some("contact.created"));
}
