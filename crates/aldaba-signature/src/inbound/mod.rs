//! The description of a sender: how it signs, and the places of its events' id and type.
//!
//! A [`Recipe`] describes one sender; an [`Inspector`] is a recipe with secrets. It checks the signature first, and
//! parses the body only after that.
//!
//! ```
//! use aldaba_signature::inbound::{Inspector, Recipe, Secret};
//!
//! let recipe = Recipe::stripe();
//! let secret = Secret::parse_for(&recipe, "whsec_test_secret")?;
//! let inspector = Inspector::new(recipe, [secret])?;
//!
//! let signed = "t=1492774577,v1=b26b308f4073c5a94ca5042d200526d7a9c25c607e09ad4fe3380bb107a50e2f";
//! let headers = |name: &str| (name == "stripe-signature").then_some(signed);
//! let body = br#"{"id": "evt_1", "type": "charge.succeeded"}"#;
//! let event = inspector.inspect(&headers, body, 1_492_774_600)?;
//! assert_eq!((event.id.as_str(), event.event_type.as_deref()), ("evt_1", Some("charge.succeeded")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod challenge;
mod headers;
mod identity;
mod inspector;
mod named;
mod path;
mod place;
mod presets;
mod recipe;
mod refusal;
mod secret;
mod template;

pub use headers::{Found, Headers};
pub use identity::{Inspected, MAX_EVENT_TYPE, MAX_ID};
pub use inspector::{Arrival, Inspector, MAX_SECRETS, SetupError};
pub use named::PRESETS;
pub use path::{JsonPath, MAX_PATH, MAX_STEPS, PathError};
pub use place::{MAX_HEADER_NAME, Place, PlaceError};
pub use recipe::{Encoding, Hmac, Recipe, Timestamp};
pub use refusal::Refusal;
pub use secret::{MAX_SECRET_TEXT, Secret, SecretError, SecretForm};
pub use template::{MAX_TEMPLATE, Template, TemplateError};
