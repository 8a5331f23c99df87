//! The types of sources: how each sender signs, and which headers are forwarded.

use super::settings::{HmacSettings, SourceProblem, SourceSettings};
use crate::Brand;
use aldaba_signature::inbound::{Encoding, Hmac, JsonPath, Place, Recipe, SecretForm, Template, Timestamp};
use aldaba_signature::{HashKind, TimeUnit};

pub(super) const GENERIC: &str = "generic-webhook";
pub(super) const META: &str = "meta";
pub(super) const MICROSOFT_GRAPH: &str = "microsoft-graph";
const STANDARD: &str = "standard-webhooks";
const HMAC: &str = "hmac";
const X_WEBHOOK: &str = "x-webhook-signature";
const BRANDED: &str = "branded";
const TELNYX: &str = "telnyx";

/// All types of sources.
pub const SOURCE_TYPES: [&str; 33] = [
    GENERIC,
    STANDARD,
    "svix",
    HMAC,
    X_WEBHOOK,
    BRANDED,
    "github",
    "stripe",
    "shopify",
    "slack",
    META,
    "zoom",
    MICROSOFT_GRAPH,
    "airwallex",
    "beehiiv",
    "brex",
    "clerk",
    "easypost",
    "guesty",
    "incident-io",
    "lithic",
    "nash",
    "open-ai",
    "pleo",
    "psi-fi",
    "render",
    "replicate",
    "resend",
    "safebase",
    "sardine",
    "stych",
    "tailscale",
    TELNYX,
];

/// Types whose secret is optional. Without it nothing is verified.
const MAY_BE_UNSIGNED: [&str; 2] = ["github", "easypost"];

/// The field of `config` with the sender's secret.
pub fn secret_field(kind: &str) -> &'static str {
    match kind {
        TELNYX => "publicKey",
        MICROSOFT_GRAPH => "clientState",
        _ => "secret",
    }
}

/// Whether senders must authenticate, by a signature or a shared value.
pub(super) fn verifies(kind: &str, has_secret: bool) -> bool {
    kind != GENERIC && (has_secret || !MAY_BE_UNSIGNED.contains(&kind))
}

/// The verification recipe of a source.
pub(super) fn recipe(
    kind: &str,
    settings: &SourceSettings,
    signed: bool,
) -> Result<Recipe, Vec<SourceProblem>> {
    if !SOURCE_TYPES.contains(&kind) {
        let why = format!("must be one of {}", SOURCE_TYPES.join(", "));
        return Err(vec![SourceProblem::new(&["type"], why)]);
    }
    let recipe = match kind {
        // Without an id from the sender, events with equal bytes are the same.
        GENERIC => Recipe::unsigned()
            .with_id(Place::Header("webhook-id".into()))
            .or_id(Place::Header("svix-id".into()))
            .or_id(Place::BodyDigest),
        STANDARD => Recipe::standard(),
        X_WEBHOOK => Recipe::x_webhook_signature(),
        HMAC => Recipe::hmac(hmac(settings.hmac.as_ref().unwrap_or(&HmacSettings::default()))?)
            .with_id(Place::BodyDigest),
        BRANDED => Recipe::branded(&brand(settings)?),
        // Nothing is signed: the body contains a shared secret. The digest is the id for callers that ask
        // for it.
        MICROSOFT_GRAPH => {
            let first = JsonPath::parse("$.value[0].changeType").map(Place::Json);
            let recipe = Recipe::unsigned().with_id(Place::BodyDigest);
            first.into_iter().fold(recipe, Recipe::with_event_type)
        }
        named => Recipe::named(named).unwrap_or_else(Recipe::unsigned),
    };
    let recipe = if !signed && MAY_BE_UNSIGNED.contains(&kind) { without_signature(&recipe) } else { recipe };
    with_places(recipe, settings)
}

/// Whether events have no ids and often equal bytes, so that each is a new event. An owner who configures an
/// id location provides ids.
pub(super) fn has_no_ids(kind: &str, settings: &SourceSettings) -> bool {
    kind == MICROSOFT_GRAPH && settings.event_id_from.is_empty()
}

fn without_signature(recipe: &Recipe) -> Recipe {
    let unsigned = recipe.id_places().iter().cloned().fold(Recipe::unsigned(), Recipe::or_id);
    recipe.event_type_places().iter().cloned().fold(unsigned, Recipe::or_event_type)
}

/// With the locations that the source's owner configured.
fn with_places(mut recipe: Recipe, settings: &SourceSettings) -> Result<Recipe, Vec<SourceProblem>> {
    let ids = places("eventIdFrom", &settings.event_id_from)?;
    let types = places("eventTypeFrom", &settings.event_type_from)?;
    for (number, place) in ids.into_iter().enumerate() {
        recipe = if number == 0 { recipe.with_id(place) } else { recipe.or_id(place) };
    }
    for (number, place) in types.into_iter().enumerate() {
        recipe = if number == 0 { recipe.with_event_type(place) } else { recipe.or_event_type(place) };
    }
    Ok(recipe)
}

fn places(field: &str, texts: &[String]) -> Result<Vec<Place>, Vec<SourceProblem>> {
    let (mut places, mut problems) = (Vec::new(), Vec::new());
    for (number, text) in texts.iter().enumerate() {
        match Place::parse(text) {
            Ok(place) => places.push(place),
            Err(error) => {
                problems.push(SourceProblem::new(&[field, &format!("[{number}]")], error.to_string()));
            }
        }
    }
    if problems.is_empty() { Ok(places) } else { Err(problems) }
}

fn brand(settings: &SourceSettings) -> Result<String, Vec<SourceProblem>> {
    let wrong = |why: String| vec![SourceProblem::new(&["config", "brand"], why)];
    let brand = settings.brand.as_deref();
    let brand =
        brand.ok_or_else(|| wrong("this field is required: the prefix of the sender's headers".into()))?;
    brand.parse::<Brand>().map(|brand| brand.to_string()).map_err(|error| wrong(error.to_string()))
}

fn hmac(settings: &HmacSettings) -> Result<Hmac, Vec<SourceProblem>> {
    let mut problems = Vec::new();
    let mut wrong = |field: &str, why: String| problems.push(SourceProblem::new(&["config", field], why));
    if settings.header.is_empty() {
        wrong("header", "this field is required: the name of the header with the signature".into());
    } else if let Err(error) = Place::header(&settings.header) {
        wrong("header", error.to_string());
    }
    let mut hmac = Hmac::of_body(&settings.header);
    match settings.prefix.as_deref() {
        Some(prefix)
            if prefix.len() > MAX_PREFIX_BYTES || !prefix.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            wrong("prefix", format!("must be at most {MAX_PREFIX_BYTES} printable ASCII characters"));
        }
        prefix => hmac.prefix = prefix.unwrap_or_default().to_owned(),
    }
    let mut one_of = |field: &str, given: &Option<String>, known: &[&str]| {
        let given = given.as_deref()?;
        let place = known.iter().position(|one| *one == given);
        if place.is_none() {
            wrong(field, format!("must be one of {}", known.join(", ")));
        }
        place
    };
    if one_of("algorithm", &settings.algorithm, &ALGORITHMS) == Some(1) {
        hmac.hash = HashKind::Sha512;
    }
    if one_of("encoding", &settings.encoding, &ENCODINGS) == Some(1) {
        hmac.encoding = Encoding::Base64;
    }
    let milliseconds = one_of("timestampUnit", &settings.timestamp_unit, &UNITS) == Some(1);
    if let Some(form) = one_of("secretForm", &settings.secret_form, &FORMS.map(|(name, _)| name)) {
        hmac.secret = FORMS[form].1;
    }
    if let Some(text) = &settings.signed {
        match Template::parse(text) {
            Ok(template) => hmac.signed = template,
            Err(error) => problems.push(SourceProblem::new(&["config", "signed"], error.to_string())),
        }
    }
    let unit = if milliseconds { TimeUnit::Milliseconds } else { TimeUnit::Seconds };
    hmac.timestamp =
        settings.timestamp_header.as_ref().map(|name| Timestamp { header: name.to_ascii_lowercase(), unit });
    if problems.is_empty() { Ok(hmac) } else { Err(problems) }
}

/// The longest signature prefix, in bytes.
const MAX_PREFIX_BYTES: usize = 64;
const ALGORITHMS: [&str; 2] = ["sha256", "sha512"];
const ENCODINGS: [&str; 2] = ["hex", "base64"];
const UNITS: [&str; 2] = ["seconds", "milliseconds"];
const FORMS: [(&str, SecretForm); 6] = [
    ("text", SecretForm::Text),
    ("standard", SecretForm::Standard),
    ("standard-or-text", SecretForm::StandardOrText),
    ("base64", SecretForm::Base64),
    ("hex", SecretForm::Hex),
    ("public-key", SecretForm::PublicKey),
];

/// The sender's own headers, which are forwarded unless the source lists others.
pub(super) fn sender_headers(kind: &str, settings: &SourceSettings) -> Vec<String> {
    let of_hmac = settings
        .hmac
        .iter()
        .flat_map(|hmac| [Some(&hmac.header), hmac.timestamp_header.as_ref()].into_iter().flatten().cloned());
    let named: &[&str] = match kind {
        "github" => &[
            "x-github-event",
            "x-github-delivery",
            "x-github-hook-id",
            "x-github-hook-installation-target-id",
            "x-github-hook-installation-target-type",
            "x-hub-signature",
            "x-hub-signature-256",
        ],
        "stripe" => &["stripe-signature"],
        "shopify" => &[
            "x-shopify-topic",
            "x-shopify-hmac-sha256",
            "x-shopify-shop-domain",
            "x-shopify-api-version",
            "x-shopify-webhook-id",
            "x-shopify-event-id",
            "x-shopify-triggered-at",
        ],
        "slack" => {
            &["x-slack-signature", "x-slack-request-timestamp", "x-slack-retry-num", "x-slack-retry-reason"]
        }
        META => &["x-hub-signature", "x-hub-signature-256"],
        "zoom" => &["x-zm-signature", "x-zm-request-timestamp", "x-zm-trackingid"],
        "airwallex" => &["x-signature", "x-timestamp"],
        "easypost" => &["x-hmac-signature"],
        "tailscale" => &["tailscale-webhook-signature"],
        "telnyx" => &["telnyx-signature-ed25519", "telnyx-timestamp"],
        _ => &[],
    };
    let of_brand = settings
        .brand
        .iter()
        .flat_map(|brand| ["signature", "event-id", "event-type"].map(|part| format!("{brand}-{part}")));
    named.iter().map(|name| (*name).to_owned()).chain(of_hmac).chain(of_brand).collect()
}

/// The event type of events without one.
pub(super) fn event_type(kind: &str) -> String {
    format!("{kind}.event")
}

/// Maps a sender's event type to allowed characters: `orders/create` becomes `orders.create`.
pub(super) fn to_event_type(event_type: &str) -> String {
    let sign = |sign: char| match sign {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => sign,
        '/' => '.',
        _ => '_',
    };
    event_type.chars().map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_delivery::names;

    #[test]
    fn every_type_has_a_recipe_that_says_where_the_id_is() {
        let hmac = HmacSettings { header: "x-signature".into(), ..HmacSettings::default() };
        let settings =
            SourceSettings { brand: Some("Zeltapay".into()), hmac: Some(hmac), ..SourceSettings::default() };
        for kind in SOURCE_TYPES {
            let recipe = recipe(kind, &settings, true).unwrap();
            assert!(!recipe.id_places().is_empty(), "{kind}");
            let unsigned = [GENERIC, MICROSOFT_GRAPH].contains(&kind);
            assert_eq!(recipe.is_signed(), !unsigned, "{kind}");
            assert_eq!(verifies(kind, true), recipe.is_signed() || kind == MICROSOFT_GRAPH, "{kind}");
            names::name(&event_type(kind)).unwrap();
        }
        assert!(recipe("cron", &settings, true).unwrap_err()[0].why.contains("github"));
        assert!(!recipe("github", &settings, false).unwrap().is_signed() && !verifies("github", false));
        assert!(recipe("stripe", &settings, false).unwrap().is_signed(), "its secret is required");
    }

    #[test]
    fn the_documentation_names_every_type() {
        let documented = include_str!("../../../../../docs/inbound.md");
        for kind in SOURCE_TYPES {
            assert!(documented.contains(&format!("`{kind}`")), "docs/inbound.md lacks `{kind}`");
        }
    }

    #[test]
    fn an_event_type_with_other_characters_is_mapped() {
        for (given, mapped_to) in
            [("orders/create", "orders.create"), ("a b:c", "a_b_c"), ("push", "push"), ("año", "a_o")]
        {
            assert_eq!(to_event_type(given), mapped_to);
            names::name(mapped_to).unwrap();
        }
    }
}
