//! Strings that are planted where secrets and payloads are, and must not come out anywhere else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// The strings that are looked for.
#[derive(Default)]
pub(crate) struct Canaries(Vec<(&'static str, String)>);

impl Canaries {
    /// A new one. `what` says where it is planted.
    pub(crate) fn plant(&mut self, what: &'static str) -> String {
        let canary = format!("canary{:02}{}", self.0.len(), what.replace(' ', ""));
        self.0.push((what, canary.clone()));
        canary
    }

    /// Adds a secret that the server has made.
    pub(crate) fn add(&mut self, what: &'static str, secret: &str) {
        assert!(secret.len() >= 16, "{what} could be anywhere: {secret}");
        self.0.push((what, secret.to_owned()));
    }

    /// What was found where. Each of `outputs` has a name: a log, traces, metrics, mails.
    pub(crate) fn found_in(&self, outputs: &[(&str, &[u8])]) -> Vec<String> {
        let mut found = Vec::new();
        for (output, bytes) in outputs {
            for (what, canary) in &self.0 {
                for form in forms(canary) {
                    if let Some(place) = position(bytes, form.as_bytes()) {
                        let around = &bytes[place.saturating_sub(200)..(place + 200).min(bytes.len())];
                        found.push(format!("{what} in {output}: {}", String::from_utf8_lossy(around)));
                    }
                }
            }
        }
        found
    }
}

/// As it is, and inside of base64 at any place, as in basic authentication.
fn forms(canary: &str) -> Vec<String> {
    let mut forms = vec![canary.to_owned()];
    for before in 0..3 {
        let encoded = STANDARD_NO_PAD.encode(format!("{}{canary}", "x".repeat(before)));
        // The first and the last characters depend on what is beside it.
        let first = [0, 2, 3][before];
        forms.push(encoded[first..encoded.len() - 2].to_owned());
    }
    forms
}

fn position(bytes: &[u8], form: &[u8]) -> Option<usize> {
    bytes.windows(form.len()).position(|window| window == form)
}

#[test]
fn a_canary_is_found_as_it_is_and_in_base64() {
    let mut canaries = Canaries::default();
    let secret = canaries.plant("a secret");
    for before in ["", "a", "ab", "abc"] {
        let encoded = STANDARD_NO_PAD.encode(format!("{before}{secret}:more"));
        let text = format!("authorization: Basic {encoded}");
        assert!(!canaries.found_in(&[("text", text.as_bytes())]).is_empty(), "{before}");
    }
    assert_eq!(canaries.found_in(&[("text", secret.as_bytes())]).len(), 1);
    assert!(canaries.found_in(&[("text", b"nothing here")]).is_empty());
}
