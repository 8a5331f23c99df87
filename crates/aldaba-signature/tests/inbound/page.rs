//! The table of docs/verification.md against the recipes.

use crate::samples::{sample_of, samples};
use aldaba_signature::TimeUnit;
use aldaba_signature::inbound::{Hmac, Inspector, PRESETS, Place, Recipe, Secret, Template, Timestamp};
use std::error::Error;

const THIS: &str = include_str!("page.rs");
const PAGE: &str = include_str!("../../../../docs/verification.md");

/// The cells of a sender's row.
fn row(sender: &str) -> Vec<&'static str> {
    let line = PAGE.lines().find(|line| line.starts_with(&format!("| `{sender}` |")));
    let line = line.unwrap_or_else(|| panic!("{sender} has no row"));
    line.trim_matches('|').split(" | ").map(str::trim).collect()
}

#[test]
fn the_page_on_verification_matches_the_recipes() {
    for sample in samples() {
        let cells = row(sample.sender);
        let [_, headers, _, id, event_type, old, _] = cells[..] else { panic!("{cells:?}") };
        for (name, _) in &sample.headers {
            assert!(
                headers.contains(&format!("`{name}`")) || event_type.contains(name),
                "{} {name}",
                sample.sender
            );
        }
        let shown = |place: &Place| match place {
            Place::Header(name) => format!("`{name}`"),
            Place::Json(path) => format!("`{path}`"),
            Place::BodyDigest => "the body's digest".to_owned(),
        };
        assert!(id.starts_with(&shown(&sample.recipe.id_places()[0])), "{}: {id}", sample.sender);
        for place in sample.recipe.event_type_places() {
            assert!(event_type.contains(&shown(place)), "{}: {event_type}", sample.sender);
        }
        assert_eq!(old == "refused", sample.recipe.has_window(), "{}: {old}", sample.sender);
        assert_eq!(!id.contains("**not signed**"), sample.recipe.signs_id(), "{}: {id}", sample.sender);
    }
    assert!(PRESETS.iter().all(|name| row(name).len() == 7));
}

/// What the page shows in Rust is in this file too, and so it builds.
#[test]
fn the_page_on_verification_shows_code_that_builds() {
    let squeezed = |text: &str| -> String { text.split_whitespace().collect() };
    let mut shown = THIS.split("// shown\n").skip(1);
    for _ in 0..2 {
        let (snippet, _) = shown.next().unwrap().split_once("// end\n").unwrap();
        assert!(
            squeezed(PAGE).contains(&squeezed(snippet)),
            "docs/verification.md does not show:\n{snippet}"
        );
    }
}

#[test]
#[expect(clippy::needless_borrows_for_generic_args, reason = "the page has it so, for a map of headers")]
fn the_first_example_of_the_page_takes_a_request_of_stripe() -> Result<(), Box<dyn Error>> {
    let sample = sample_of("stripe");
    let (body, now) = (sample.body.clone(), sample.now);
    let headers = |name: &str| {
        let header = sample.headers.iter().find(|(other, _)| *other == name);
        header.map(|(_, value)| value.as_str())
    };
    // shown
    let recipe = Recipe::stripe();
    let secret = Secret::parse_for(&recipe, "whsec_test_secret")?;
    let inspector = Inspector::new(recipe, [secret])?;
    let event = inspector.inspect(&headers, &body, now)?; // event.id, event.event_type
    // end
    assert_eq!(event, sample.expected());
    Ok(())
}

#[test]
fn the_example_of_a_signature_of_ones_own_can_be_set_up() -> Result<(), Box<dyn Error>> {
    // shown
    let recipe = Recipe::hmac(Hmac {
        prefix: "v1=".into(),
        signed: Template::parse("{timestamp}.{body}")?,
        timestamp: Some(Timestamp { header: "X-Acme-Time".into(), unit: TimeUnit::Seconds }),
        ..Hmac::of_body("X-Acme-Signature")
    })
    .with_id(Place::parse("$.event.id")?)
    .with_event_type(Place::parse("header:X-Acme-Event")?);
    // end
    assert!(recipe.has_window() && recipe.signs_id());
    assert!(Inspector::new(recipe, [Secret::text("secret")?]).is_ok());
    Ok(())
}

/// The places and the template that the page shows can be read.
#[test]
fn the_places_on_the_page_on_verification_exist() {
    for text in
        ["$.event.id", "header:X-Acme-Event", "$.data.id", "$.list[0]['a name']", "body-digest", "$.id"]
    {
        assert!(PAGE.contains(text) && Place::parse(text).is_ok(), "{text}");
    }
    let template = "{timestamp}.{body}";
    assert!(PAGE.contains(template) && Template::parse(template).is_ok());
}
