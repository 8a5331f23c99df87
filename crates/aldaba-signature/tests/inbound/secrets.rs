use crate::samples::{NOW, sample_of, samples};
use aldaba_signature::inbound::{
    Inspector, MAX_SECRETS, Recipe, Secret, SecretError, SecretForm, SetupError,
};
use aldaba_signature::{KeyError, SigningKey, VerifyingKey};

#[test]
fn a_secret_is_read_in_its_form_or_refused_with_the_reason() {
    let long = "a".repeat(1025);
    let weak = format!("whpk_{}=", "A".repeat(43));
    for (form, text, error) in [
        (SecretForm::Text, "", SecretError::Empty),
        (SecretForm::Text, " a", SecretError::Spaces),
        (SecretForm::Text, "a\n", SecretError::Spaces),
        (SecretForm::Text, &long, SecretError::TooLong),
        (SecretForm::AsciiText, "sécret", SecretError::NotAscii),
        (SecretForm::Standard, "whsec_", SecretError::Empty),
        (SecretForm::Standard, "whsec_a!", SecretError::Base64),
        (SecretForm::Standard, "secret", SecretError::Key(KeyError::Prefix("`whsec_` or `whpk_`"))),
        (SecretForm::Standard, "whpk_AAAA", SecretError::Key(KeyError::PublicLength(3))),
        (SecretForm::Standard, &weak, SecretError::Key(KeyError::PublicInvalid)),
        (SecretForm::StandardOrText, "whsec_a!", SecretError::Base64),
        (SecretForm::Base64, "a!", SecretError::Base64),
        (SecretForm::Hex, "abc", SecretError::Hex),
        (SecretForm::PublicKey, "AAAA", SecretError::Key(KeyError::PublicLength(3))),
    ] {
        assert_eq!(Secret::read(form, text).map(|_| ()), Err(error), "{form:?} {text}");
    }
    for (form, text) in [
        (SecretForm::Text, "sécret"),
        (SecretForm::Text, "whsec_not base64"),
        (SecretForm::AsciiText, "secret"),
        (SecretForm::Standard, "whsec_AAAA"),
        (SecretForm::StandardOrText, "secret"),
        (SecretForm::Base64, "AAAA"),
        (SecretForm::Hex, "00fF"),
    ] {
        assert!(Secret::read(form, text).is_ok(), "{form:?} {text}");
    }
    assert!(Secret::text("whsec_test_secret").is_ok() && Secret::standard("whsec_test_secret").is_err());
}

/// The same bytes in four forms are the same key.
#[test]
fn the_form_of_a_secret_determines_its_bytes() {
    let sample = sample_of("x-webhook");
    let bytes = "31f290f6bf06298aab4f08d43c3f082cf648a362da2da4b0";
    let key = SigningKey::parse(sample.secret).unwrap();
    for secret in [
        Secret::standard(sample.secret),
        Secret::read(SecretForm::Base64, sample.secret.strip_prefix("whsec_").unwrap()),
        Secret::read(SecretForm::Hex, bytes),
        Ok(Secret::from(VerifyingKey::from(&key))),
    ] {
        let inspector = Inspector::new(sample.recipe.clone(), [secret.unwrap()]).unwrap();
        assert!(inspector.inspect(sample.headers.as_slice(), &sample.body, 0).is_ok());
    }
    let text = Inspector::new(sample.recipe.clone(), [Secret::text(sample.secret).unwrap()]).unwrap();
    assert!(text.inspect(sample.headers.as_slice(), &sample.body, 0).unwrap_err().is_unauthorized());
}

/// The libraries of Standard Webhooks and of Svix take such secrets, so that senders may hand them out.
#[test]
fn a_secret_in_sloppy_base64_is_the_same_secret() {
    let bytes = [b'x'; 25];
    let signed =
        SigningKey::parse("whsec_eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eA==").unwrap().sign("msg_1", NOW, b"{}");
    let headers: &[(&str, &str)] =
        &[("webhook-id", "msg_1"), ("webhook-timestamp", "1614265330"), ("webhook-signature", &signed)];
    for ending in ["eA==", "eA", "eA=", "eB==", "eP"] {
        let text = format!("{}{ending}", "eHh4".repeat(bytes.len() / 3));
        for (form, text) in [(SecretForm::Standard, format!("whsec_{text}")), (SecretForm::Base64, text)] {
            let secret = Secret::read(form, &text).unwrap();
            let inspector = Inspector::new(Recipe::standard(), [secret]).unwrap();
            assert_eq!(inspector.verify(headers, b"{}", NOW), Ok(()), "{form:?} {text}");
        }
    }
    for text in ["whsec_eHh4e", "whsec_eH-_", "whsec_eHh4\neHh4", "whsec_e===", "whsec_===="] {
        assert!(Secret::standard(text).is_err(), "{text}");
    }
}

#[test]
fn an_inspector_needs_secrets_where_they_are_used_and_takes_none_elsewhere() {
    for sample in samples() {
        let secret = Secret::parse_for(&sample.recipe, sample.secret).unwrap();
        let with = |count| Inspector::new(sample.recipe.clone(), vec![secret.clone(); count]).map(|_| ());
        assert_eq!(with(0), Err(SetupError::NoSecret));
        assert_eq!(with(MAX_SECRETS), Ok(()));
        assert_eq!(with(MAX_SECRETS + 1), Err(SetupError::TooManySecrets));
        let unsigned = Inspector::new(Recipe::unsigned(), [secret.clone()]).map(|_| ());
        assert_eq!(unsigned, Err(SetupError::SecretUnused));
    }
}

#[test]
fn no_secret_shows_itself() {
    for sample in samples() {
        let secret = Secret::parse_for(&sample.recipe, sample.secret).unwrap();
        let shown = format!("{secret:?} {:?}", sample.inspector());
        let hidden = sample.secret.trim_start_matches("whsec_");
        assert!(!shown.contains(hidden), "{}", sample.sender);
        let bytes = format!("{:?}", hidden.as_bytes());
        assert!(!shown.contains(bytes.trim_matches(['[', ']'])), "{}", sample.sender);
    }
    let error = Secret::standard("whsec_marker!").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("marker"));
}

/// `main` shows the error that it returns in this way, and so does `unwrap`.
#[test]
fn debug_output_of_errors_shows_the_message() {
    for error in [SecretError::Empty, SecretError::Spaces, SecretError::Key(KeyError::PublicLength(3))] {
        assert_eq!(format!("{error:?}"), error.to_string());
    }
    assert_eq!(format!("{:?}", SetupError::NoSecret), SetupError::NoSecret.to_string());
}
