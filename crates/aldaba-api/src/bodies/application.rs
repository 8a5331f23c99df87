//! Applications: customers of yours, each with endpoints and messages of its own.

#[cfg(feature = "server")]
use crate::read::{count, moment, short_strings, text, uid};
use crate::{Metadata, Timestamp, request, resource, response};

resource! {
    ($)
    new {
        /// A new application, or a whole one: a customer of yours.
        NewApplication "ApplicationIn" =
            {"name": "My first customer", "throttleRate": 100, "metadata": {"plan": "basic"}}
    }
    patch {
        /// Fields of an application that change; null clears one.
        ApplicationPatch "ApplicationPatch" = {"name": "My first customer, renamed"}
    }
    shown {
        /// An application.
        Application "ApplicationOut" of ApplicationState
    }
    each application_fields;
    first {
        /// Such as `app_…`.
        required id: String = text();
    }
    fields {
        /// For people.
        stored required name: String = text().bytes(4096).filled();
        /// Your own name for it, that does wherever its id does.
        stored omitted uid: String = uid("app_");
        /// Requests a second at most, to all of its endpoints together.
        stored nullable throttle_rate / omitted rate_limit: u32 = count();
        /// Names and values of your own.
        stored map metadata: Metadata = short_strings();
    }
    once {}
    last {
        /// Where its people are told that something is wrong; absent where nobody is.
        omitted alert_email: String = text();
        /// When it was made.
        required created_at: Timestamp = moment();
        /// When it was last changed.
        required updated_at: Timestamp = moment();
    }
}

impl NewApplication {
    /// With a name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// With a name, and an own name for it.
    pub fn with_uid(name: impl Into<String>, uid: impl Into<String>) -> Self {
        Self { uid: Some(uid.into()), ..Self::new(name) }
    }
}

request! {
    /// Where an application's people are told that something is wrong.
    AlertEmail "AlertEmailIn" = {"email": "people@example.com"} {
        /// Null: nowhere.
        cleared email: String = text().email();
    }
}

response! {
    /// Where an application's people are told that something is wrong, and whether they are.
    AlertEmailState "AlertEmailOut" of AlertEmailStateView {
        /// Null: nowhere.
        nullable email: String;
        /// Whether the server can send mails.
        required mail_configured: bool;
        /// What to do where it cannot.
        omitted note: String;
    }
}
