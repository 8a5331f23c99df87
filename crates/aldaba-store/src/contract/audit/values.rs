//! What a change has made of the fields of a thing. Secrets are never part of it, and what is long is cut.

use super::AuditEntry;
use crate::{ApiKey, Application, Change, EventType, EventTypeWrite, OwnPolicy, OwnProfile, SourceConfig};
use aldaba_delivery::{ApiKeyId, AppId, EndpointId, OrgId, SourceId};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// What is shown in the place of a secret.
pub const MASK: &str = "***";

/// A field that has another value now. A value is null where there was none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// As callers know it.
    pub field: String,
    pub before: Value,
    pub after: Value,
    /// A value is longer than what is kept of it: then it is the beginning of a text.
    pub cut: bool,
}

impl FieldChange {
    /// Bytes of JSON that are kept of one value.
    pub const MAX_VALUE_BYTES: usize = 4096;
    /// Bytes of JSON that are kept of all values of one entry.
    pub const MAX_ENTRY_BYTES: usize = 32 * 1024;

    /// A secret that was set, changed or taken away.
    pub fn secret(field: impl Into<String>, before: bool, after: bool) -> Self {
        let shown = |is_there: bool| if is_there { json!(MASK) } else { Value::Null };
        Self { field: field.into(), before: shown(before), after: shown(after), cut: false }
    }

    pub(crate) fn write(changes: &[Self]) -> String {
        let shown = changes.iter().map(|change| {
            let Self { field, before, after, cut } = change;
            json!([field, before, after, cut])
        });
        Value::from_iter(shown).to_string()
    }

    /// `None`: it is nothing that was written so.
    pub(crate) fn read(text: &str) -> Option<Vec<Self>> {
        let all: Vec<(String, Value, Value, bool)> = serde_json::from_str(text).ok()?;
        Some(all.into_iter().map(|(field, before, after, cut)| Self { field, before, after, cut }).collect())
    }
}

/// The fields of a thing, as callers know them, with their values. None of them is a secret, but a URL may hold one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldValues(Vec<(Cow<'static, str>, Value)>);

impl FieldValues {
    pub(crate) fn new<const N: usize>(fields: [(&'static str, Value); N]) -> Self {
        Self(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    fn members(object: Value) -> Self {
        match object {
            Value::Object(members) => {
                Self(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
            }
            _ => Self::default(),
        }
    }

    fn get(&self, field: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name == field).map(|(_, value)| value)
    }

    /// The fields that had another value `before`.
    fn changed_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a str> {
        let names = self.0.iter().map(|(name, _)| &**name);
        let gone = before.0.iter().map(|(name, _)| &**name).filter(|name| self.get(name).is_none());
        names.chain(gone).filter(|name| {
            let value = |of: &Self| of.get(name).filter(|value| !is_nothing(value)).cloned();
            value(self) != value(before)
        })
    }
}

/// What a field has that nobody has given.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// JSON that is stored as text.
pub(crate) fn stored(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Names the fields of a struct as callers know them, with what is shown of those that are no JSON themselves. All fields of
/// the struct are named, so that a new one cannot be forgotten: those that are no part of an entry come last.
macro_rules! audited {
    ($type:ident { $($field:ident: $name:literal $(= $shown:expr)?),+ $(; $($other:ident),+)? }) => {
        impl $type {
            /// The names, as callers know them, of what is not as it was `before`.
            pub fn changed_since(&self, before: &Self) -> Vec<&'static str> {
                let fields = [$(($name, self.$field != before.$field)),+];
                fields.into_iter().filter_map(|(name, changed)| changed.then_some(name)).collect()
            }
        }

        impl From<&$type> for FieldValues {
            fn from($type { $($field,)+ $($($other: _),+)? }: &$type) -> Self {
                Self::new([$(($name, audited!(@shown $field $($shown)?))),+])
            }
        }
    };
    (@shown $field:ident) => {
        json!($field)
    };
    (@shown $field:ident $shown:expr) => {
        $shown
    };
}

/// Defines what callers set of a thing, each field once: its name as callers know it, its type, what a new one has, and what the audit
/// log shows of a value that is no JSON itself.
macro_rules! audited_config {
    (
        $(#[$about:meta])*
        pub struct $type:ident {
            $($(#[$doc:meta])* $name:literal $field:ident: $kind:ty = $default:expr $(, shown as $shown:expr)?;)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $type {
            $($(#[$doc])* pub $field: $kind,)+
        }

        impl Default for $type {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        $crate::contract::audit::audited!($type { $($field: $name $(= $shown)?),+ });
    };
}
pub(crate) use {audited, audited_config};

audited!(Application {
    uid: "uid",
    name: "name",
    throttle_rate: "throttleRate",
    alert_email: "alertEmail",
    metadata: "metadata" = stored(metadata);
    id, org, created_at, updated_at
});

audited!(EventType {
    description: "description",
    archived: "archived",
    deprecated: "deprecated",
    validate: "validate",
    schemas: "schemas" = schemas.as_deref().map_or(Value::Null, stored),
    feature_flags: "featureFlags",
    group_name: "groupName";
    id, org, name, created_at, updated_at
});

audited!(SourceConfig {
    uid: "uid",
    name: "name",
    metadata: "metadata" = stored(metadata),
    kind: "type",
    settings: "settings" = stored(settings)
});

impl From<&ApiKey> for FieldValues {
    fn from(key: &ApiKey) -> Self {
        Self::new([
            ("name", json!(key.name)),
            ("prefix", json!(key.prefix)),
            ("scope", json!(key.scope.name())),
            ("appId", json!(key.app.map(|app| app.to_string()))),
            ("expiresAt", json!(key.expires_at.map(|moment| moment.millis()))),
        ])
    }
}

impl From<&OwnPolicy> for FieldValues {
    fn from(own: &OwnPolicy) -> Self {
        Self::members(own.policy.to_json())
    }
}

impl From<&OwnProfile> for FieldValues {
    fn from(own: &OwnProfile) -> Self {
        Self::members(stored(&own.body))
    }
}

/// A thing that a change is about, which the store reads before it makes the change.
#[derive(Clone, Copy, Debug)]
pub enum AuditSubject<'a> {
    Application(AppId),
    Endpoint(AppId, EndpointId),
    EventType(OrgId, &'a str),
    Policy(OrgId, &'a str),
    Profile(OrgId, &'a str),
    ApiKey(OrgId, ApiKeyId),
    Source(SourceId),
}

impl Change {
    /// What was there before, if the change is about a thing that may have been there.
    pub fn subject(&self) -> Option<AuditSubject<'_>> {
        Some(match self {
            Self::UpdateApplication { application, .. } => AuditSubject::Application(application.id),
            Self::DeleteApplication { app, .. } => AuditSubject::Application(*app),
            Self::UpdateEndpoint { endpoint, .. } => AuditSubject::Endpoint(endpoint.app, endpoint.id),
            Self::DeleteEndpoint { app, endpoint, .. } => AuditSubject::Endpoint(*app, *endpoint),
            Self::ReplacePolicy { policy } => AuditSubject::Policy(policy.org, &policy.policy.name),
            Self::DeletePolicy { org, name } => AuditSubject::Policy(*org, name),
            Self::ReplaceProfile { profile } => AuditSubject::Profile(profile.org, &profile.name),
            Self::DeleteProfile { org, name } => AuditSubject::Profile(*org, name),
            Self::RenameApiKey { org, id, .. } | Self::RevokeApiKey { org, id } => {
                AuditSubject::ApiKey(*org, *id)
            }
            Self::UpdateSource { source, .. } => AuditSubject::Source(source.id),
            Self::DeleteSource { source, .. } => AuditSubject::Source(*source),
            Self::WriteEventTypes(change) => match &change.writes[..] {
                [EventTypeWrite { name, .. }] => AuditSubject::EventType(change.org, name),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// What the fields of its thing are after it, where it says so.
    fn after(&self, before: Option<&FieldValues>) -> Option<FieldValues> {
        Some(match self {
            Self::CreateApplication { application, .. } | Self::UpdateApplication { application, .. } => {
                application.into()
            }
            Self::CreateEndpoint { endpoint, .. } | Self::UpdateEndpoint { endpoint, .. } => {
                (&endpoint.config).into()
            }
            Self::CreatePolicy { policy } | Self::ReplacePolicy { policy } => policy.into(),
            Self::CreateProfile { profile } | Self::ReplaceProfile { profile } => profile.into(),
            Self::CreateApiKey { key, .. } => key.into(),
            Self::RenameApiKey { name, .. } => {
                let mut values = before?.clone();
                values
                    .0
                    .iter_mut()
                    .filter(|(field, _)| field == "name")
                    .for_each(|(_, value)| *value = json!(name));
                values
            }
            Self::CreateSource { source, .. } | Self::UpdateSource { source, .. } => (&source.config).into(),
            Self::WriteEventTypes(change) => match &change.writes[..] {
                [EventTypeWrite { now: Some(now), .. }] => now.into(),
                _ => return None,
            },
            _ => return None,
        })
    }
}

impl AuditEntry {
    /// The same, with the values of the fields before and after the change. `before` is what the store has found of
    /// [`Change::subject`].
    #[must_use]
    pub fn with_values_of(&self, change: &Change, before: Option<&FieldValues>) -> Self {
        let mut entry = self.clone();
        let after = change.after(before);
        entry.say(before, after.as_ref());
        entry
    }

    /// The same of an application that is made with something else.
    #[must_use]
    pub fn with_values_of_new(&self, application: &Application) -> Self {
        let mut entry = self.clone();
        entry.say(None, Some(&application.into()));
        entry
    }

    fn say(&mut self, before: Option<&FieldValues>, after: Option<&FieldValues>) {
        let (nothing, action) = (FieldValues::default(), &mut self.action);
        let (before, after) = (before.unwrap_or(&nothing), after.unwrap_or(&nothing));
        for field in after.changed_since(before) {
            if !action.fields.iter().any(|known| known == field) {
                action.fields.push(field.to_owned());
            }
        }
        let mut room = FieldChange::MAX_ENTRY_BYTES;
        for field in &action.fields {
            if action.changes.iter().any(|change| change.field == *field) {
                continue;
            }
            let values = (before.get(field), after.get(field));
            action.changes.push(match values {
                // It is known by its name alone: a secret.
                (None, None) => FieldChange::secret(field, true, true),
                (before, after) => {
                    let mut cut = false;
                    let mut kept = |value: Option<&Value>| {
                        let (value, was_cut) =
                            bounded(shown(field, value.cloned().unwrap_or_default()), &mut room);
                        cut |= was_cut;
                        value
                    };
                    let (before, after) = (kept(before), kept(after));
                    FieldChange { field: field.clone(), before, after, cut }
                }
            });
        }
    }
}

/// Without what may be secret in it.
fn shown(field: &str, value: Value) -> Value {
    match value {
        Value::String(url) if field == "url" => masked_url(&url).into(),
        Value::Object(members) if field == "settings" => Value::Object(
            members
                .into_iter()
                .map(|(name, value)| (name.clone(), shown(&name, value)))
                .collect::<Map<_, _>>(),
        ),
        value => value,
    }
}

/// User, password and query of a URL are often secrets.
fn masked_url(url: &str) -> String {
    let (start, query) = match url.split_once('?') {
        Some((start, _)) => (start, format!("?{MASK}")),
        None => (url.split('#').next().unwrap_or(url), String::new()),
    };
    let Some((scheme, rest)) = start.split_once("://") else { return format!("{start}{query}") };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match host.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{MASK}@{host}{path}{query}"),
        None => format!("{scheme}://{host}{path}{query}"),
    }
}

/// The value, or the beginning of its text if it is too long.
fn bounded(value: Value, room: &mut usize) -> (Value, bool) {
    let most = FieldChange::MAX_VALUE_BYTES.min(*room);
    let length = value.to_string().len();
    if length <= most {
        *room -= length;
        return (value, false);
    }
    let mut text = match value {
        Value::String(text) => text,
        value => value.to_string(),
    };
    text.truncate(text.floor_char_boundary(most));
    text.push('…');
    *room -= most;
    (text.into(), true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EndpointConfig;
    use crate::{Actor, AuditAction};
    use aldaba_delivery::Timestamp;

    fn entry() -> AuditEntry {
        let org = OrgId::from_bytes([1; 20]);
        AuditEntry::new(
            Timestamp::from_millis(1),
            [0; 15],
            &Actor::program(org),
            AuditAction::new("endpoint.update", "ep"),
        )
    }

    fn said(before: Option<&EndpointConfig>, after: Option<&EndpointConfig>) -> Vec<FieldChange> {
        let mut entry = entry();
        entry.say(before.map(FieldValues::from).as_ref(), after.map(FieldValues::from).as_ref());
        assert_eq!(
            entry.action.fields,
            entry.action.changes.iter().map(|change| change.field.clone()).collect::<Vec<_>>()
        );
        assert_eq!(
            FieldChange::read(&FieldChange::write(&entry.action.changes)).as_ref(),
            Some(&entry.action.changes)
        );
        entry.action.changes
    }

    fn change(field: &str, before: Value, after: Value) -> FieldChange {
        FieldChange { field: field.into(), before, after, cut: false }
    }

    #[test]
    fn only_what_has_another_value_is_kept() {
        let before = EndpointConfig::new("https://example.com/a", "standard");
        let after = EndpointConfig { disabled: true, channels: vec!["x".into()], ..before.clone() };
        let expected =
            [change("disabled", json!(false), json!(true)), change("channels", json!([]), json!(["x"]))];
        assert_eq!(said(Some(&before), Some(&after)), expected);
        assert_eq!(said(Some(&before), Some(&before)), []);
    }

    #[test]
    fn what_was_made_has_no_values_before_and_what_was_deleted_none_after() {
        let config = EndpointConfig::new("https://example.com/a", "standard");
        let made = said(None, Some(&config));
        assert!(made.iter().all(|change| change.before.is_null() && !change.after.is_null()), "{made:?}");
        assert!(made.contains(&change("url", Value::Null, json!("https://example.com/a"))), "{made:?}");
        assert!(
            made.iter().all(|change| change.field != "uid" && change.field != "metadata"),
            "nobody gave them"
        );
        let deleted = said(Some(&config), None);
        assert!(
            deleted.iter().all(|change| change.after.is_null() && !change.before.is_null()),
            "{deleted:?}"
        );
    }

    #[test]
    fn user_password_and_query_of_a_url_are_masked() {
        for (url, shown) in [
            ("https://example.com/a/b", "https://example.com/a/b"),
            ("https://example.com?key=s3cret", "https://example.com?***"),
            ("https://user:pa@ss@example.com:8443/a?x=1#y", "https://***@example.com:8443/a?***"),
            ("https://example.com/a#token=1", "https://example.com/a"),
        ] {
            assert_eq!(masked_url(url), shown);
        }
        let url = |query: &str| EndpointConfig::new(format!("https://example.com/?key={query}"), "standard");
        let masked = json!("https://example.com/?***");
        assert_eq!(said(Some(&url("a")), Some(&url("b"))), [change("url", masked.clone(), masked)]);
    }

    #[test]
    fn a_field_that_is_known_by_its_name_alone_is_a_secret() {
        let mut entry = entry();
        entry.action.fields.push("config".into());
        entry.say(None, None);
        assert_eq!(entry.action.changes, [change("config", json!(MASK), json!(MASK))]);
    }

    #[test]
    fn long_values_are_cut_and_say_so_and_all_together_have_a_limit() {
        let long = |length: usize| EndpointConfig {
            description: "ñ".repeat(length),
            ..EndpointConfig::new("https://example.com/", "standard")
        };
        let cut = said(Some(&long(1)), Some(&long(10_000)));
        let [FieldChange { before, after: Value::String(after), cut: true, .. }] = &cut[..] else {
            panic!("{cut:?}")
        };
        assert_eq!((before, after.len()), (&json!("ñ"), FieldChange::MAX_VALUE_BYTES + "…".len()));
        let many = |sign: &str| {
            FieldValues((0..100).map(|n| (format!("f{n}").into(), json!(sign.repeat(4000)))).collect())
        };
        let mut entry = entry();
        entry.say(Some(&many("a")), Some(&many("b")));
        let kept = FieldChange::write(&entry.action.changes);
        assert!(kept.len() < FieldChange::MAX_ENTRY_BYTES + 100 * 64, "{}", kept.len());
        assert!(!entry.action.changes[0].cut && entry.action.changes[99].cut);
    }
}
