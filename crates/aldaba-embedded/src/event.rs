use crate::Error;
use aldaba_delivery::{AppId, MAX_PAYLOAD_DEPTH, MessageId, Timestamp, is_too_deep, names};
use aldaba_engine::{IdempotencyDigest, NewEvent, digest_of};
use aldaba_store::NewMessage;
use bytes::Bytes;
use serde::Serialize;
use std::time::Duration;

/// An event for all matching endpoints.
#[derive(Clone, Debug)]
#[must_use]
pub struct Event {
    event_type: String,
    payload: Bytes,
    /// The exact bytes to send. They need not be JSON.
    is_raw: bool,
    id: Option<String>,
    idempotency_key: Option<String>,
    version: Option<String>,
    channels: Vec<String>,
    tags: Vec<String>,
    deliver_at: Option<Timestamp>,
    payload_kept: Option<Duration>,
}

/// An event that is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// The id, which receivers see as `webhook-id`.
    pub id: MessageId,
    /// `false`: an earlier event with the same idempotency key was accepted; this is its id.
    pub is_new: bool,
}

impl Event {
    /// An event of a type such as `invoice.paid`. The payload is serialized as JSON; these bytes are signed and sent.
    pub fn new(event_type: impl Into<String>, payload: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        let event = Self::of_json(&event_type.into(), payload)?;
        if !event.payload.starts_with(b"{") {
            let why = "must be an object: give it a name in one, or send it with `raw`".into();
            return Err(Error::Invalid { field: "payload", why });
        }
        Ok(event)
    }

    /// An event whose body is sent unchanged, as `application/json`.
    pub fn raw(event_type: impl Into<String>, body: impl Into<String>) -> Self {
        Self::of(event_type.into(), body.into().into(), true)
    }

    /// Whether the payload may be something else than a JSON object.
    pub(crate) fn of_json(event_type: &str, payload: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        let json =
            serde_json::to_vec(payload).map_err(|error| Error::invalid("payload")(error.to_string()))?;
        Ok(Self::of(event_type.to_owned(), json.into(), false))
    }

    /// Sets another event type.
    pub(crate) fn of_type(self, event_type: String) -> Self {
        Self { event_type, ..self }
    }

    fn of(event_type: String, payload: Bytes, is_raw: bool) -> Self {
        Self {
            event_type,
            payload,
            is_raw,
            id: None,
            idempotency_key: None,
            version: None,
            channels: Vec::new(),
            tags: Vec::new(),
            deliver_at: None,
            payload_kept: None,
        }
    }

    /// Sets your own name of the event, unique in the application while the message is kept. A second event with the same
    /// name is [`Error::EventIdTaken`].
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the idempotency key. Sending a second event with the same key within 24 hours (or the builder's setting)
    /// returns the first. Use it to repeat a call whose result was lost. A blank key is rejected.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Sets the channels: only endpoints with one of them, or without channels, get the event.
    pub fn channels<T: Into<String>>(mut self, channels: impl IntoIterator<Item = T>) -> Self {
        self.channels = set(channels);
        self
    }

    /// Sets tags for searching. They do not affect which endpoints get the event.
    pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.tags = set(tags);
        self
    }

    /// Sets the version of the payload's schema.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Sets the time before which nothing is sent, at most 366 days ahead.
    pub fn deliver_at(mut self, moment: impl Into<Timestamp>) -> Self {
        self.deliver_at = Some(moment.into());
        self
    }

    /// Sets how long the payload is kept after the acceptance: an hour to 90 days. A payload is kept while a delivery is
    /// pending. The message itself stays longer; without this option its payload stays as long.
    pub fn payload_retention(mut self, kept: Duration) -> Self {
        self.payload_kept = Some(kept);
        self
    }

    /// Checks the event and converts it for the engine.
    pub(crate) fn checked(self, app: AppId, longest_payload: usize) -> Result<NewEvent, Error> {
        names::name(&self.event_type).map_err(Error::invalid("event_type"))?;
        if self.payload.len() > longest_payload {
            let why = format!("is {} bytes long; {longest_payload} are allowed", self.payload.len());
            return Err(Error::Invalid { field: "payload", why });
        }
        if !self.is_raw && is_too_deep(&self.payload) {
            let why = format!("is nested more than {MAX_PAYLOAD_DEPTH} levels deep");
            return Err(Error::Invalid { field: "payload", why });
        }
        if let Some(id) = &self.id {
            names::uid(id, "msg_").map_err(Error::invalid("id"))?;
        }
        if let Some(version) = &self.version {
            names::version(version).map_err(Error::invalid("version"))?;
        }
        if self.idempotency_key.as_deref().is_some_and(|key| key.trim().is_empty()) {
            let why = "is blank: give one that names what is told, or none".into();
            return Err(Error::Invalid { field: "idempotency_key", why });
        }
        if self.payload_kept.is_some_and(|kept| !NewMessage::PAYLOAD_RETENTION.contains(&kept)) {
            let why = "must be an hour to 90 days".into();
            return Err(Error::Invalid { field: "payload_retention", why });
        }
        check_all("channels", &self.channels, NewMessage::MAX_CHANNELS, names::channel)?;
        check_all("tags", &self.tags, NewMessage::MAX_TAGS, names::tag)?;
        Ok(NewEvent {
            version: self.version.as_deref().map(Into::into),
            channels: self.channels,
            tags: self.tags,
            event_id: self.id.map(Into::into),
            deliver_at: self.deliver_at,
            payload_kept: self.payload_kept,
            once: self.idempotency_key.map(|key| once(app, &key)).unwrap_or_default(),
            ..NewEvent::new(&self.event_type, self.payload)
        })
    }
}

/// A separate namespace from the keys of a server's callers on the same folder.
fn once(app: AppId, key: &str) -> IdempotencyDigest {
    let digest: Option<[u8; 16]> =
        digest_of(format!("program\0{app}\0{key}").as_bytes()).first_chunk().copied();
    digest.map(Into::into)
}

/// Sorted, without duplicates.
pub(crate) fn set<T: Into<String>>(items: impl IntoIterator<Item = T>) -> Vec<String> {
    let mut items: Vec<String> = items.into_iter().map(Into::into).collect();
    items.sort_unstable();
    items.dedup();
    items
}

pub(crate) fn check_all(
    field: &'static str,
    items: &[String],
    most: usize,
    check: impl Fn(&str) -> Result<(), String>,
) -> Result<(), Error> {
    if items.len() > most {
        return Err(Error::Invalid {
            field,
            why: format!("may be {most} at most; they are {}", items.len()),
        });
    }
    let wrong = items.iter().find_map(|item| check(item).err().map(|why| format!("`{item}` {why}")));
    wrong.map_or(Ok(()), |why| Err(Error::Invalid { field, why }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(event: Event) -> &'static str {
        match event.checked(AppId::from_bytes([1; 20]), 100) {
            Err(Error::Invalid { field, .. }) => field,
            other => panic!("{other:?}"),
        }
    }

    fn event() -> Event {
        Event::new("a.b", &json!({"n": 1})).unwrap()
    }

    #[test]
    fn input_that_the_api_refuses_is_refused_here() {
        assert!(Event::new("a", &json!([1])).is_err(), "a list is no object");
        assert_eq!(refused(Event::new("a b", &json!({})).unwrap()), "event_type");
        assert_eq!(refused(Event::new("", &json!({})).unwrap()), "event_type");
        assert_eq!(refused(Event::raw("a", "x".repeat(101))), "payload");
        assert_eq!(refused(event().id("msg_1")), "id");
        assert_eq!(refused(event().id("a\nb")), "id");
        assert_eq!(refused(event().version("x".repeat(33))), "version");
        assert_eq!(refused(event().channels(["ok", "no good"])), "channels");
        assert_eq!(refused(event().channels((0..11).map(|n| n.to_string()))), "channels");
        assert_eq!(refused(event().tags(["ñ"])), "tags");
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(128), "]".repeat(128));
        let deep: Box<serde_json::value::RawValue> = serde_json::from_str(&deep).unwrap();
        let deep = Event::new("a", &deep).unwrap();
        assert!(matches!(deep.checked(AppId::from_bytes([1; 20]), 1000), Err(Error::Invalid { .. })));
    }

    #[test]
    fn a_key_is_one_of_its_application() {
        let [one, two] = [1, 2].map(|byte| AppId::from_bytes([byte; 20]));
        assert_eq!(once(one, "key"), once(one, "key"));
        assert_ne!(once(one, "key"), once(two, "key"));
        assert_ne!(once(one, "key"), once(one, "other"));
        assert!(event().checked(one, 100).unwrap().once.is_none());
    }

    #[test]
    fn lists_are_sorted_and_without_repeats() {
        let event = event().channels(["b", "a", "b"]).checked(AppId::from_bytes([1; 20]), 100).unwrap();
        assert_eq!(event.channels, ["a", "b"]);
    }
}
