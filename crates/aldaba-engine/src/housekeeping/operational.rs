//! Operational webhooks: messages to an organization about its own endpoints and messages. They are sent to
//! an application of the management organization that has the organization's id as its uid.
//!
//! A notice is stored in the commit of the event that it reports. From there it is accepted like any
//! message, under an event id of its own, so a crash in between neither loses nor duplicates it.
//! Organizations are served round robin, a page of notices each. An organization whose notices cannot be
//! sent backs off and delays no other.

mod backoff;

use crate::housekeeping::background::{self, Background, StoreClosed, Task};
use crate::intake::{Intake, NewEvent, SendError, SendReceipt};
use aldaba_delivery::{AppId, EndpointId, OrgId, Timestamp};
use aldaba_store::{
    Application, ApplicationRef, Change, Done, Endpoint, Error, Notice, NoticeNumber, Order, Page, Store,
};
use backoff::OrganizationBackoff;
use bytes::Bytes;
use futures_util::FutureExt;
use parking_lot::RwLock;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::{JoinError, JoinSet};

/// Notices of one organization per commit; applications or organizations per read.
const PAGE_SIZE: usize = 100;
/// Organizations that are served concurrently, so that their commits are batched.
const MAX_CONCURRENT_ORGANIZATIONS: usize = 8;
/// The delay before the next pass after one failed.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The event types about alerts of the rules.
pub(crate) const ALERT_FIRING: &str = "alert.firing";
pub(crate) const ALERT_RESOLVED: &str = "alert.resolved";

/// The event types of operational webhooks.
pub const OPERATIONAL_EVENTS: [&str; 11] = [
    ALERT_FIRING,
    ALERT_RESOLVED,
    "endpoint.created",
    "endpoint.deleted",
    "endpoint.disabled",
    "endpoint.enabled",
    "endpoint.updated",
    "message.attempt.exhausted",
    "message.attempt.failing",
    "message.attempt.recovered",
    Notice::LEFT_OUT,
];

/// The organization that owns the applications for operational webhooks.
pub fn management() -> OrgId {
    "org_00000000000SvixManagement00".parse().expect("it is an id")
}

/// The organizations that receive operational webhooks.
#[derive(Clone, Default)]
pub(crate) struct OperationalListeners {
    index: Arc<RwLock<ListenerIndex>>,
    /// Signals that there are notices to send.
    pub(crate) notices_pending: Arc<Notify>,
}

/// Every endpoint change and every attempt queries it, so a query is one lookup.
#[derive(Default)]
struct ListenerIndex {
    by_application: HashMap<AppId, OrgId>,
    by_organization: HashMap<OrgId, AppId>,
}

impl ListenerIndex {
    fn forget(&mut self, application: AppId) {
        if let Some(org) = self.by_application.remove(&application)
            && self.by_organization.get(&org) == Some(&application)
        {
            self.by_organization.remove(&org);
        }
    }
}

impl OperationalListeners {
    pub(crate) async fn read(store: &dyn Store) -> Result<Self, Error> {
        let listeners = Self::default();
        let mut page = Page { after: None, limit: PAGE_SIZE };
        loop {
            let found = store.applications(management(), page, Order::Ascending).await?;
            found.iter().for_each(|application| listeners.put(application));
            match found.last() {
                Some(last) if found.len() == PAGE_SIZE => page.after = Some(last.id),
                _ => return Ok(listeners),
            }
        }
    }

    /// An application was created, or its uid changed.
    pub(crate) fn put(&self, application: &Application) {
        if application.org != management() {
            return;
        }
        let mut index = self.index.write();
        index.forget(application.id);
        if let Some(org) = application.uid.as_deref().and_then(|uid| uid.parse().ok()) {
            index.by_application.insert(application.id, org);
            index.by_organization.insert(org, application.id);
        }
    }

    pub(crate) fn remove(&self, application: AppId) {
        self.index.write().forget(application);
    }

    /// Whether the organization hears of its endpoints and deliveries. The management organization does not: what it is told
    /// goes out through endpoints of its own, and each failure of theirs would be told again.
    pub(crate) fn wants(&self, org: OrgId) -> bool {
        org != management() && self.wants_alerts(org)
    }

    /// Whether the organization hears of its alerts; those of the management organization are the server's.
    pub(crate) fn wants_alerts(&self, org: OrgId) -> bool {
        self.index.read().by_organization.contains_key(&org)
    }

    /// The notice of an endpoint event, if its organization receives them.
    pub(crate) fn endpoint_notices(&self, endpoint: &Endpoint, event: &str, more: Value) -> Vec<Notice> {
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

/// Formats as RFC 3339.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    let rfc3339 = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or(jiff::Timestamp::MAX);
    format!("{rfc3339:.6}")
}

/// Sends the stored notices as messages.
#[derive(Clone)]
pub(crate) struct OperationalSender {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) listeners: OperationalListeners,
    pub(crate) background: Background,
}

/// The result of sending one organization's notices.
type SendOutcome = (OrgId, Result<(), SendError>);

impl Task for OperationalSender {
    const NAME: &'static str = background::OPERATIONAL;

    async fn run(&mut self) -> StoreClosed {
        let mut backoff = OrganizationBackoff::default();
        loop {
            match self.run_pass(&mut backoff).await {
                Ok(0) => {
                    tokio::select! {
                        () = self.listeners.notices_pending.notified() => {}
                        () = backoff.next_expiry() => {}
                    }
                }
                Ok(_) => {}
                Err(Error::Closed) => return StoreClosed,
                Err(error) => {
                    tracing::warn!(%error, "operational webhooks cannot be sent; retrying");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }
}

impl OperationalSender {
    /// Serves every organization that has notices and is not backing off. Returns their number.
    async fn run_pass(&self, backoff: &mut OrganizationBackoff) -> Result<usize, Error> {
        backoff.expire();
        let (mut organizations, mut after, mut sending) = (0, None, JoinSet::new());
        loop {
            let found = self.store.notice_organizations(after, PAGE_SIZE).await?;
            for org in found.iter().copied() {
                if backoff.is_waiting(org) {
                    continue;
                }
                if sending.len() == MAX_CONCURRENT_ORGANIZATIONS {
                    finish_send(sending.join_next().await, backoff)?;
                }
                organizations += 1;
                sending.spawn(self.clone().send_one(org));
            }
            match found.last() {
                Some(last) if found.len() == PAGE_SIZE => after = Some(*last),
                _ => break,
            }
        }
        while !sending.is_empty() {
            finish_send(sending.join_next().await, backoff)?;
        }
        Ok(organizations)
    }

    /// Sends notices of one organization. A panic affects only that organization.
    async fn send_one(self, org: OrgId) -> SendOutcome {
        let sent = AssertUnwindSafe(self.send_slice(org)).catch_unwind().await;
        let sent = sent.unwrap_or_else(|panic| {
            self.background.panicked(background::OPERATIONAL, &*panic);
            Err(SendError::Store(Error::Failed("sending notices panicked".into())))
        });
        (org, sent)
    }

    /// Sends the oldest notices of an organization. An error: some are still to be sent.
    async fn send_slice(&self, org: OrgId) -> Result<(), SendError> {
        let found = self.store.notices(org, PAGE_SIZE).await?;
        let numbers: Vec<_> = found.iter().map(|(number, _)| *number).collect();
        let mut uids = HashMap::new();
        let mut events = Vec::with_capacity(found.len());
        for (number, notice) in found {
            events.push(event(number, &notice.event, &self.complete(&notice, &mut uids).await?));
        }
        let which = ApplicationRef { org: management(), key: org.to_string() };
        let results = match self.intake.send_own(&which, &events).await {
            Ok(results) => results,
            // The organization no longer receives them.
            Err(SendError::NotFound) => return Ok(self.forget(org, numbers).await?),
            Err(error) => return Err(error),
        };
        let (mut sent, mut left) = (Vec::with_capacity(numbers.len()), None);
        for (number, result) in numbers.into_iter().zip(results) {
            match error_to_retry(result) {
                None => sent.push(number),
                Some(error) => left = Some(error),
            }
        }
        self.forget(org, sent).await?;
        left.map_or(Ok(()), Err)
    }

    /// Adds the callers' own names of the resources, as they are now. Uids of applications are reused
    /// between notices.
    async fn complete(
        &self,
        notice: &Notice,
        uids: &mut HashMap<String, Option<String>>,
    ) -> Result<Value, Error> {
        let mut data: Value = serde_json::from_str(&notice.body).unwrap_or_default();
        let text = |data: &Value, name: &str| data[name].as_str().map(str::to_owned);
        let Some(app) = text(&data, "appId") else { return Ok(data) };
        let uid = match uids.get(&app) {
            Some(uid) => uid.clone(),
            None => {
                let which = ApplicationRef { org: notice.org, key: app.clone() };
                let uid = self.store.application(which).await?.and_then(|found| found.uid);
                uids.insert(app.clone(), uid.clone());
                uid
            }
        };
        data["appUid"] = uid.into();
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
            data["msgEventId"] = found.and_then(|message| message.content.event_id).as_deref().into();
        }
        Ok(data)
    }

    async fn forget(&self, org: OrgId, notices: Vec<NoticeNumber>) -> Result<(), Error> {
        if notices.is_empty() {
            return Ok(());
        }
        let (answer, answered) = oneshot::channel();
        let done = Done::new(move |result| drop(answer.send(result)));
        self.store.change(Change::ForgetNotices { org, notices }, None, done);
        answered.await.map_err(|_| Error::Closed)?.map(drop)
    }
}

fn event(number: NoticeNumber, event_type: &str, data: &Value) -> NewEvent {
    let mut payload = json!({"type": event_type, "data": data});
    // Chat services read a `text` beside all else.
    if let Some(text) = payload["data"].as_object_mut().and_then(|data| data.remove("text")) {
        payload["text"] = text;
    }
    let payload = payload.to_string();
    let event_id = Some(format!("notice-{}", number.0).into());
    NewEvent { event_id, ..NewEvent::new(event_type, Bytes::from(payload)) }
}

/// The error for which a notice must be kept and sent later. `None`: it is done. No notice is dropped after
/// a temporary error.
fn error_to_retry(result: Result<SendReceipt, SendError>) -> Option<SendError> {
    match result {
        // Taken: it was sent before, and a crash or an error prevented its removal. Not found: the
        // organization no longer receives it.
        Ok(_) | Err(SendError::EventIdTaken(_) | SendError::NotFound) => None,
        Err(error) => Some(error),
    }
}

/// Handles the end of one send. An error affects all organizations.
fn finish_send(
    send_one: Option<Result<SendOutcome, JoinError>>,
    backoff: &mut OrganizationBackoff,
) -> Result<(), Error> {
    match send_one {
        Some(Ok((org, Ok(())))) => backoff.reset(org),
        Some(Ok((_, Err(SendError::Store(Error::Closed))))) => return Err(Error::Closed),
        Some(Ok((org, Err(error)))) => {
            let pause = backoff.back_off(org);
            tracing::warn!(%error, %org, ?pause, "operational webhooks of an organization cannot be sent; backing off");
        }
        Some(Err(panic)) => return Err(Error::Failed(format!("sending notices panicked: {panic}"))),
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_delivery::MessageId;

    const MOMENT: Timestamp = Timestamp::from_millis(1_780_000_000_000);

    #[test]
    fn only_notices_that_were_sent_or_never_can_be_are_removed() {
        let message = MessageId::first_at(MOMENT);
        for over in [
            Ok(SendReceipt::Repeated { message }),
            Ok(SendReceipt::New { message, at: MOMENT, deliver_at: None }),
            Err(SendError::EventIdTaken(message)),
            Err(SendError::NotFound),
        ] {
            assert_eq!(error_to_retry(over.clone()), None, "{over:?}");
        }
        for error in [
            SendError::Unsettled,
            SendError::Store(Error::Busy),
            SendError::Store(Error::Full),
            SendError::Store(Error::Timeout),
            SendError::Store(Error::Closed),
        ] {
            assert_eq!(error_to_retry(Err(error.clone())), Some(error));
        }
    }

    fn application(id: u8, uid: Option<OrgId>) -> Application {
        Application {
            id: AppId::from_bytes([id; 20]),
            org: management(),
            uid: uid.map(|uid| uid.to_string()),
            name: String::new(),
            throttle_rate: None,
            alert_email: None,
            metadata: "{}".into(),
            created_at: MOMENT,
            updated_at: MOMENT,
        }
    }

    #[test]
    fn an_organization_receives_webhooks_while_an_application_has_its_id_as_uid() {
        let (listeners, org, other) =
            (OperationalListeners::default(), OrgId::first_at(MOMENT), OrgId::last_at(MOMENT));
        listeners.put(&application(1, Some(org)));
        assert!(listeners.wants(org) && !listeners.wants(other));
        listeners.put(&application(1, Some(other)));
        assert!(!listeners.wants(org) && listeners.wants(other), "its uid changed");
        // Another application took the uid before the first one was deleted.
        listeners.put(&application(2, Some(other)));
        listeners.remove(AppId::from_bytes([1; 20]));
        assert!(listeners.wants(other));
        listeners.put(&application(2, None));
        assert!(!listeners.wants(other));
        let elsewhere = Application { org, ..application(3, Some(org)) };
        listeners.put(&elsewhere);
        assert!(!listeners.wants(org), "only those of the management organization count");
    }
}
