//! The recipes that senders document.

use super::recipe::{Check, Handshake};
use super::{Encoding, Hmac, JsonPath, Place, Recipe, SecretForm, Template, Timestamp};
use crate::{HashKind, TimeUnit};

impl Recipe {
    /// Standard Webhooks, `v1` and `v1a`: `webhook-id`, `webhook-timestamp`, `webhook-signature`. The type is `type` of
    /// the body, if present.
    pub fn standard() -> Self {
        Self::standard_webhooks(&["webhook"])
    }

    /// The same with the names of Svix, or those of Standard Webhooks if `svix-signature` is absent.
    pub fn svix() -> Self {
        Self::standard_webhooks(&["svix", "webhook"])
    }

    fn standard_webhooks(prefixes: &[&str]) -> Self {
        let recipe =
            Self::with_check(Check::Standard(prefixes.iter().map(|&prefix| prefix.into()).collect()));
        let ids = prefixes.iter().map(|prefix| header(&format!("{prefix}-id")));
        Self { id: ids.collect(), ..recipe }.with_event_type(json("$.type"))
    }

    /// `Stripe-Signature`. The secret is the text that Stripe shows, including `whsec_`.
    pub fn stripe() -> Self {
        Self::timestamped("stripe-signature", HashKind::Sha256, SecretForm::Text)
            .with_id(json("$.id"))
            .with_event_type(json("$.type"))
    }

    /// `X-Hub-Signature-256` over the body. The id is an unsigned header, and there is no replay window.
    pub fn github() -> Self {
        Self::hub_signature().with_id(header("x-github-delivery")).with_event_type(header("x-github-event"))
    }

    /// `X-Shopify-Hmac-Sha256` over the body, in base64. The id is an unsigned header, and there is no replay window.
    pub fn shopify() -> Self {
        Self::hmac(Hmac { encoding: Encoding::Base64, ..Hmac::of_body("x-shopify-hmac-sha256") })
            .with_id(header("x-shopify-webhook-id"))
            .with_event_type(header("x-shopify-topic"))
    }

    /// `X-Slack-Signature` over `v0:<timestamp>:<body>`.
    pub fn slack() -> Self {
        Self::version_zero("x-slack-signature", "x-slack-request-timestamp", Handshake::Slack)
            .with_id(json("$.event_id"))
            .with_event_type(json("$.event.type"))
            .or_event_type(json("$.type"))
    }

    /// Aldaba's profile `x-webhook`: hexadecimal SHA-256 of the body in `X-Webhook-Signature`, without id and time. The
    /// id is the body's digest; set a better one with [`Recipe::with_id`].
    pub fn x_webhook_signature() -> Self {
        Self::hmac(Hmac { secret: SecretForm::StandardOrText, ..Hmac::of_body("x-webhook-signature") })
            .with_id(Place::BodyDigest)
            .with_event_type(header("x-webhook-event"))
    }

    /// Aldaba's profile `branded`: `<Brand>-Event-Id`, `<Brand>-Event-Type`, and `<Brand>-Signature` in Stripe's format.
    /// The id is not signed, but old messages are rejected.
    pub fn branded(brand: &str) -> Self {
        Self::timestamped(&format!("{brand}-signature"), HashKind::Sha256, SecretForm::StandardOrText)
            .with_id(header(&format!("{brand}-event-id")))
            .with_event_type(header(&format!("{brand}-event-type")))
    }

    /// Facebook, Instagram, WhatsApp: `X-Hub-Signature-256` with the app's secret. Meta's notifications have no id, so
    /// the id is the body's digest, and there is no replay window.
    pub fn meta() -> Self {
        Self::hub_signature().with_id(Place::BodyDigest).with_event_type(json("$.object"))
    }

    /// `x-zm-signature` over `v0:<timestamp>:<body>`. Zoom's events have no id: it is the body's digest.
    pub fn zoom() -> Self {
        Self::version_zero("x-zm-signature", "x-zm-request-timestamp", Handshake::Zoom)
            .with_id(Place::BodyDigest)
            .with_event_type(json("$.event"))
    }

    /// `x-signature` over the timestamp in milliseconds and the body, without a separator.
    pub fn airwallex() -> Self {
        Self::hmac(Hmac {
            signed: template("{timestamp}{body}"),
            timestamp: Some(Timestamp { header: "x-timestamp".into(), unit: TimeUnit::Milliseconds }),
            ..Hmac::of_body("x-signature")
        })
        .with_id(json("$.id"))
        .with_event_type(json("$.name"))
    }

    /// `X-Hmac-Signature` over the body, without a replay window. EasyPost normalizes non-ASCII secrets; they are
    /// rejected here.
    pub fn easypost() -> Self {
        Self::hmac(Hmac {
            prefix: "hmac-sha256-hex=".into(),
            secret: SecretForm::AsciiText,
            ..Hmac::of_body("x-hmac-signature")
        })
        .with_id(json("$.id"))
        .with_event_type(json("$.description"))
    }

    /// `Tailscale-Webhook-Signature`, in Stripe's format. A body is a list of events without ids: the id is the body's
    /// digest, the type that of the first event.
    pub fn tailscale() -> Self {
        Self::timestamped("tailscale-webhook-signature", HashKind::Sha256, SecretForm::Text)
            .with_id(Place::BodyDigest)
            .with_event_type(json("$[0].type"))
    }

    /// `telnyx-signature-ed25519` over `<timestamp>|<body>`. The secret is the account's public key, in base64.
    pub fn telnyx() -> Self {
        Self::hmac(Hmac {
            encoding: Encoding::Base64,
            signed: template("{timestamp}|{body}"),
            timestamp: Some(Timestamp { header: "telnyx-timestamp".into(), unit: TimeUnit::Seconds }),
            secret: SecretForm::PublicKey,
            ..Hmac::of_body("telnyx-signature-ed25519")
        })
        .with_id(json("$.data.id"))
        .with_event_type(json("$.data.event_type"))
    }

    fn hub_signature() -> Self {
        Self::hmac(Hmac { prefix: "sha256=".into(), ..Hmac::of_body("x-hub-signature-256") })
    }

    fn version_zero(signature: &str, timestamp: &str, handshake: Handshake) -> Self {
        let recipe = Self::hmac(Hmac {
            prefix: "v0=".into(),
            signed: template("v0:{timestamp}:{body}"),
            timestamp: Some(Timestamp { header: timestamp.into(), unit: TimeUnit::Seconds }),
            ..Hmac::of_body(signature)
        });
        Self { handshake: Some(handshake), ..recipe }
    }
}

fn header(name: &str) -> Place {
    Place::Header(name.into())
}

fn json(path: &str) -> Place {
    Place::Json(JsonPath::parse(path).expect("the paths of presets are tested"))
}

fn template(text: &str) -> Template {
    Template::parse(text).expect("the templates of presets are tested")
}
