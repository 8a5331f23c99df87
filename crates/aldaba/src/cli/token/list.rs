//! The list of API keys, as text.

use super::keys::rfc3339;
use aldaba_store::ApiKey;
use std::fmt::Write as _;

/// The columns of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyRow {
    id: String,
    name: String,
    prefix: String,
    scope: String,
    app: String,
    created_at: String,
    expires_at: String,
    last_used_at: String,
}

impl KeyRow {
    pub(super) fn of_store(key: &ApiKey) -> Self {
        Self {
            id: key.id.to_string(),
            name: key.name.clone(),
            prefix: key.prefix.clone(),
            scope: key.scope.name().to_owned(),
            app: key.app.map(|app| app.to_string()).unwrap_or_default(),
            created_at: rfc3339(key.created_at),
            expires_at: key.expires_at.map(rfc3339).unwrap_or_default(),
            last_used_at: key.last_used_at.map(rfc3339).unwrap_or_default(),
        }
    }

    pub(super) fn of_api(key: aldaba_client::ApiKey) -> Self {
        Self {
            id: key.id,
            name: key.name,
            prefix: key.prefix,
            scope: key.scope.to_string(),
            app: key.app_id.unwrap_or_default(),
            created_at: key.created_at,
            expires_at: key.expires_at.unwrap_or_default(),
            last_used_at: key.last_used_at.unwrap_or_default(),
        }
    }

    pub(super) fn of_created(key: aldaba_client::CreatedApiKey) -> Self {
        Self {
            id: key.id,
            name: key.name,
            prefix: key.prefix,
            scope: key.scope.to_string(),
            app: key.app_id.unwrap_or_default(),
            created_at: key.created_at,
            expires_at: key.expires_at.unwrap_or_default(),
            last_used_at: key.last_used_at.unwrap_or_default(),
        }
    }

    pub(super) fn about(&self) -> String {
        let app = if self.app.is_empty() { "all applications" } else { &self.app };
        let end = if self.expires_at.is_empty() { "never" } else { &*minute(&self.expires_at) };
        format!(
            "API key {} ({}, `{}`): scope {}, for {app}, expires {end}. It is shown this once",
            self.prefix, self.id, self.name, self.scope
        )
    }
}

/// To the minute, which is enough for a list.
pub(super) fn minute(moment: &str) -> String {
    match moment.get(..16) {
        Some(minute) => format!("{}Z", minute.replace('T', " ")),
        None => moment.to_owned(),
    }
}

/// Whether the key has expired. Moments in UTC compare as their texts do, up to the second.
fn has_expired(expires_at: &str, now: &str) -> bool {
    const SECOND: usize = "2026-01-31T12:34:56".len();
    match (expires_at.get(..SECOND), now.get(..SECOND)) {
        (Some(end), Some(now)) => end <= now,
        _ => false,
    }
}

/// `now`, written like the keys' moments.
pub(super) fn table(keys: &[KeyRow], now: &str) -> String {
    let head = ["PREFIX", "SCOPE", "APPLICATION", "CREATED", "EXPIRES", "LAST USED", "ID", "NAME"];
    let or = |text: String, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { text };
    let row = |key: &KeyRow| {
        [
            key.prefix.clone(),
            key.scope.clone(),
            or(key.app.clone(), "all"),
            minute(&key.created_at),
            match has_expired(&key.expires_at, now) {
                true => format!("{} (expired)", minute(&key.expires_at)),
                false => or(minute(&key.expires_at), "never"),
            },
            or(minute(&key.last_used_at), "never"),
            key.id.clone(),
            key.name.clone(),
        ]
    };
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(keys.iter().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn api_key(json: &Value) -> KeyRow {
        KeyRow::of_api(serde_json::from_value(json.clone()).unwrap())
    }

    #[test]
    fn a_list_shows_what_there_is_and_what_there_is_not() {
        let key = api_key(&json!({
            "id": "key_1", "name": "the shop", "prefix": "abcd1234", "scope": "send", "appId": null,
            "createdAt": "2026-01-31T12:34:56.000000Z", "expiresAt": null, "lastUsedAt": null,
        }));
        assert_eq!(
            table(&[key], "2026-02-01T00:00:00Z"),
            "PREFIX    SCOPE  APPLICATION  CREATED            EXPIRES  LAST USED  ID     NAME\n\
             abcd1234  send   all          2026-01-31 12:34Z  never    never      key_1  the shop\n"
        );
    }

    #[test]
    fn a_key_that_has_expired_is_marked() {
        let key = |end: &str| {
            api_key(&json!({
                "id": "key_1", "name": "the shop", "prefix": "a", "scope": "send", "appId": null,
                "createdAt": "", "expiresAt": end, "lastUsedAt": null,
            }))
        };
        let shown = |end: &str| table(&[key(end)], "2026-02-01T00:00:00.5Z").contains("(expired)");
        assert!(shown("2026-01-31T12:34:56.000000Z") && shown("2026-02-01T00:00:00Z"));
        assert!(!shown("2026-02-01T00:00:01.000000Z") && !shown(""));
    }
}
