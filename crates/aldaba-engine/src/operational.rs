//! Operational webhooks: what becomes of an organization's endpoints and messages is a message itself, for the
//! organization's own endpoints. They belong to an application of the management organization that is named
//! like the organization.
//!
//! A notice is written in the commit of what it tells of. From there it is accepted like any message, under an
//! event id of its own, so that a crash in between neither loses nor doubles it.

use crate::intake::{Intake, NewEvent, SendError};
use aldaba_delivery::{AppId, EndpointId, OrgId, Timestamp};
use aldaba_store::{
    Application, Change, Done, Endpoint, Error, Notice, NoticeNumber, Order, Page, Store, WhichApplication,
};
use bytes::Bytes;
use parking_lot::RwLock;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// Notices that are taken at a time.
const SLICE: usize = 100;
/// How long to wait before something that failed is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// The event types of operational webhooks.
pub const OPERATIONAL_EVENTS: [&str; 8] = [
    "endpoint.created",
    "endpoint.deleted",
    "endpoint.disabled",
    "endpoint.enabled",
    "endpoint.updated",
    "message.attempt.exhausted",
    "message.attempt.failing",
    "message.attempt.recovered",
];

/// The organization of the applications that operational webhooks belong to.
pub fn management() -> OrgId {
    "org_00000000000SvixManagement00".parse().expect("it is an id")
}

/// The organizations that want to hear, by the application that belongs to each.
#[derive(Clone, Default)]
pub(crate) struct Listeners {
    known: Arc<RwLock<BTreeMap<AppId, OrgId>>>,
    /// There are notices to be sent.
    pub(crate) news: Arc<Notify>,
}

impl Listeners {
    pub(crate) async fn read(store: &dyn Store) -> Result<Self, Error> {
        let listeners = Self::default();
        let mut page = Page { after: None, limit: SLICE };
        loop {
            let found = store.applications(management(), page, Order::Ascending).await?;
            found.iter().for_each(|application| listeners.put(application));
            match found.last() {
                Some(last) if found.len() == SLICE => page.after = Some(last.id),
                _ => return Ok(listeners),
            }
        }
    }

    /// An application is there, or has another name.
    pub(crate) fn put(&self, application: &Application) {
        if application.org != management() {
            return;
        }
        let mut known = self.known.write();
        match application.uid.as_deref().and_then(|uid| uid.parse().ok()) {
            Some(org) => known.insert(application.id, org),
            None => known.remove(&application.id),
        };
    }

    pub(crate) fn remove(&self, application: AppId) {
        self.known.write().remove(&application);
    }

    pub(crate) fn wants(&self, org: OrgId) -> bool {
        let known = self.known.read();
        !known.is_empty() && known.values().any(|listener| *listener == org)
    }

    /// What has become of an endpoint, for those who want to hear of it.
    pub(crate) fn of_endpoint(&self, endpoint: &Endpoint, event: &str, more: Value) -> Vec<Notice> {
        if !self.wants(endpoint.org) {
            return Vec::new();
        }
        let mut data = json!({
            "appId": endpoint.app.to_string(),
            "endpointId": endpoint.id.to_string(),
            "endpointUid": endpoint.config.uid,
        });
        extend(&mut data, more);
        vec![Notice { org: endpoint.org, event: event.into(), body: data.to_string() }]
    }
}

pub(crate) fn extend(data: &mut Value, more: Value) {
    if let (Value::Object(data), Value::Object(more)) = (data, more) {
        data.extend(more);
    }
}

/// RFC 3339.
pub(crate) fn moment(at: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or(jiff::Timestamp::MAX);
    format!("{moment:.6}")
}

/// Sends what is in the store as messages.
pub(crate) struct Operational {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) listeners: Listeners,
}

impl Operational {
    pub(crate) async fn run(self) {
        loop {
            match self.run_once().await {
                Ok(0) => self.listeners.news.notified().await,
                Ok(_) => {}
                Err(Error::Closed) => return,
                Err(error) => {
                    tracing::warn!(%error, "operational webhooks cannot be sent now; trying again");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    /// Sends the oldest notices. How many there were.
    async fn run_once(&self) -> Result<usize, Error> {
        let found = self.store.notices(SLICE).await?;
        let count = found.len();
        let mut sent = Vec::with_capacity(count);
        for (number, notice) in found {
            match self.send(number, notice).await {
                Ok(()) => sent.push(number),
                Err(error) => {
                    self.forget(sent).await?;
                    return Err(error);
                }
            }
        }
        self.forget(sent).await?;
        Ok(count)
    }

    async fn send(&self, number: NoticeNumber, notice: Notice) -> Result<(), Error> {
        let which = WhichApplication { org: management(), key: notice.org.to_string() };
        let data = self.complete(&notice).await?;
        let payload = json!({"type": notice.event, "data": data}).to_string();
        let event_id = Some(format!("notice-{}", number.0));
        let event = NewEvent { event_id, ..NewEvent::new(&notice.event, Bytes::from(payload)) };
        match self.intake.send_uncounted(&which, event).await {
            // It has been sent before a crash, or nobody wants it any more.
            Ok(_) | Err(SendError::EventIdTaken(_) | SendError::NotFound) => Ok(()),
            Err(SendError::Store(error)) => Err(error),
            Err(error) => {
                tracing::warn!(%error, event = notice.event, "an operational webhook cannot be sent");
                Ok(())
            }
        }
    }

    /// With the callers' own names for the things it is about, as they are now.
    async fn complete(&self, notice: &Notice) -> Result<Value, Error> {
        let mut data: Value = serde_json::from_str(&notice.body).unwrap_or_default();
        let text = |data: &Value, name: &str| data[name].as_str().map(str::to_owned);
        let Some(app) = text(&data, "appId") else { return Ok(data) };
        let which = WhichApplication { org: notice.org, key: app.clone() };
        data["appUid"] = self.store.application(which).await?.and_then(|found| found.uid).into();
        let Ok(app) = app.parse::<AppId>() else { return Ok(data) };
        if data.get("endpointUid").is_none()
            && let Some(endpoint) = text(&data, "endpointId")
            && let Ok(id) = endpoint.parse::<EndpointId>()
        {
            let found = self.store.lane_endpoints(vec![id]).await?.pop();
            data["endpointUid"] = found.and_then(|endpoint| endpoint.config.uid).into();
        }
        if let Some(message) = text(&data, "msgId") {
            let found = self.store.message(app, message).await?;
            data["msgEventId"] = found.and_then(|message| message.event_id).into();
        }
        Ok(data)
    }

    async fn forget(&self, notices: Vec<NoticeNumber>) -> Result<(), Error> {
        if notices.is_empty() {
            return Ok(());
        }
        let (answer, answered) = oneshot::channel();
        let done = Done::new(move |result| drop(answer.send(result)));
        self.store.change(Change::ForgetNotices { notices }, None, done);
        answered.await.map_err(|_| Error::Closed)?.map(drop)
    }
}
