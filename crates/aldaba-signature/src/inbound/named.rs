use super::Recipe;

/// The names for [`Recipe::named`].
pub const PRESETS: &[&str] = &[
    "standard",
    "svix",
    "stripe",
    "github",
    "shopify",
    "slack",
    "x-webhook",
    "meta",
    "zoom",
    "airwallex",
    "easypost",
    "tailscale",
    "telnyx",
];

/// Senders that use Svix and its recipe.
const THROUGH_SVIX: &[&str] = &[
    "beehiiv",
    "brex",
    "clerk",
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
];

impl Recipe {
    /// A recipe by its sender's name: one of [`PRESETS`], or a sender that uses Svix, such as `clerk` or `resend`.
    /// `branded` is not included, because it needs the brand.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "standard" => Self::standard(),
            "svix" => Self::svix(),
            "stripe" => Self::stripe(),
            "github" => Self::github(),
            "shopify" => Self::shopify(),
            "slack" => Self::slack(),
            "x-webhook" => Self::x_webhook_signature(),
            "meta" => Self::meta(),
            "zoom" => Self::zoom(),
            "airwallex" => Self::airwallex(),
            "easypost" => Self::easypost(),
            "tailscale" => Self::tailscale(),
            "telnyx" => Self::telnyx(),
            name if THROUGH_SVIX.contains(&name) => Self::svix(),
            _ => return None,
        })
    }
}
