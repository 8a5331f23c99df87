//! Operational webhooks: what becomes of an organization's endpoints and messages is a message itself, for the
//! organization's own endpoints. They belong to an application of the management organization that is named
//! like the organization.
//!
//! A notice is written in the commit of what it tells of. From there it is accepted like any message, under an
//! event id of its own, so that a crash in between neither loses nor doubles it. Organizations take turns, a slice
//! of notices each, and whoever's cannot be sent now rests: nobody waits for another one.

mod resting;

use crate::housekeeping::background::{self, Background, StoreClosed, Task};
use crate::intake::{Intake, NewEvent, SendError, Sent};
use aldaba_delivery::{AppId, EndpointId, OrgId, Timestamp};
use aldaba_store::{
    Application, ApplicationRef, Change, Done, Endpoint, Error, Notice, NoticeNumber, Order, Page, Store,
};
use bytes::Bytes;
use futures_util::FutureExt;
use parking_lot::RwLock;
use resting::Resting;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::{JoinError, JoinSet};

/// Notices of one organization that go into one commit; applications or organizations that are read at a time.
const SLICE: usize = 100;
/// Organizations that have their turn at the same time: their commits become one.
const AT_ONCE: usize = 8;
/// How long to wait before the organizations are looked at again if that has failed.
const AGAIN: Duration = Duration::from_secs(1);

/// The event types of operational webhooks.
pub const OPERATIONAL_EVENTS: [&str; 9] = [
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

/// The organization of the applications that operational webhooks belong to.
pub fn management() -> OrgId {
    "org_00000000000SvixManagement00".parse().expect("it is an id")
}

/// The organizations that want to hear.
#[derive(Clone, Default)]
pub(crate) struct Listeners {
    known: Arc<RwLock<Known>>,
    /// There are notices to be sent.
    pub(crate) news: Arc<Notify>,
}

/// Every change of an endpoint and every attempt asks about its organization, so that is one look.
#[derive(Default)]
struct Known {
    by_application: HashMap<AppId, OrgId>,
    by_organization: HashMap<OrgId, AppId>,
}

impl Known {
    fn forget(&mut self, application: AppId) {
        if let Some(org) = self.by_application.remove(&application)
            && self.by_organization.get(&org) == Some(&application)
        {
            self.by_organization.remove(&org);
        }
    }
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
        known.forget(application.id);
        if let Some(org) = application.uid.as_deref().and_then(|uid| uid.parse().ok()) {
            known.by_application.insert(application.id, org);
            known.by_organization.insert(org, application.id);
        }
    }

    pub(crate) fn remove(&self, application: AppId) {
        self.known.write().forget(application);
    }

    pub(crate) fn wants(&self, org: OrgId) -> bool {
        self.known.read().by_organization.contains_key(&org)
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
#[derive(Clone)]
pub(crate) struct Operational {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) listeners: Listeners,
    pub(crate) background: Background,
}

/// What became of an organization's turn.
type Turn = (OrgId, Result<(), SendError>);

impl Task for Operational {
    const NAME: &'static str = background::OPERATIONAL;

    async fn run(&mut self) -> StoreClosed {
        let mut resting = Resting::default();
        loop {
            match self.round(&mut resting).await {
                Ok(0) => {
                    tokio::select! {
                        () = self.listeners.news.notified() => {}
                        () = resting.one_wakes() => {}
                    }
                }
                Ok(_) => {}
                Err(Error::Closed) => return StoreClosed,
                Err(error) => {
                    tracing::warn!(%error, "operational webhooks cannot be sent now; trying again");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }
}

impl Operational {
    /// Gives every organization that has notices and does not rest one turn. How many there were.
    async fn round(&self, resting: &mut Resting) -> Result<usize, Error> {
        resting.wake();
        let (mut turns, mut after, mut at_work) = (0, None, JoinSet::new());
        loop {
            let found = self.store.notice_organizations(after, SLICE).await?;
            for org in found.iter().copied() {
                if resting.rests(org) {
                    continue;
                }
                if at_work.len() == AT_ONCE {
                    ended(at_work.join_next().await, resting)?;
                }
                turns += 1;
                at_work.spawn(self.clone().turn(org));
            }
            match found.last() {
                Some(last) if found.len() == SLICE => after = Some(*last),
                _ => break,
            }
        }
        while !at_work.is_empty() {
            ended(at_work.join_next().await, resting)?;
        }
        Ok(turns)
    }

    /// A panic concerns the one organization, and none of the others waits for it.
    async fn turn(self, org: OrgId) -> Turn {
        let sent = AssertUnwindSafe(self.send_slice(org)).catch_unwind().await;
        let sent = sent.unwrap_or_else(|panic| {
            self.background.panicked(background::OPERATIONAL, &*panic);
            Err(SendError::Store(Error::Failed("sending its notices panicked".into())))
        });
        (org, sent)
    }

    /// Sends the oldest notices of an organization. An error: some of them are still to be sent.
    async fn send_slice(&self, org: OrgId) -> Result<(), SendError> {
        let found = self.store.notices(org, SLICE).await?;
        let numbers: Vec<_> = found.iter().map(|(number, _)| *number).collect();
        let mut uids = HashMap::new();
        let mut events = Vec::with_capacity(found.len());
        for (number, notice) in found {
            events.push(event(number, &notice.event, &self.complete(&notice, &mut uids).await?));
        }
        let which = ApplicationRef { org: management(), key: org.to_string() };
        let results = match self.intake.send_own(&which, &events).await {
            Ok(results) => results,
            // Nobody wants them any more.
            Err(SendError::NotFound) => return Ok(self.forget(org, numbers).await?),
            Err(error) => return Err(error),
        };
        let (mut sent, mut left) = (Vec::with_capacity(numbers.len()), None);
        for (number, result) in numbers.into_iter().zip(results) {
            match still_to_send(result) {
                None => sent.push(number),
                Some(error) => left = Some(error),
            }
        }
        self.forget(org, sent).await?;
        left.map_or(Ok(()), Err)
    }

    /// With the callers' own names for the things it is about, as they are now. What is known of applications
    /// already is handed on from one notice to the next.
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
    let payload = json!({"type": event_type, "data": data}).to_string();
    let event_id = Some(format!("notice-{}", number.0).into());
    NewEvent { event_id, ..NewEvent::new(event_type, Bytes::from(payload)) }
}

/// Why a notice must be kept and sent later; `None`: it need not be. Nothing is given up that may pass.
fn still_to_send(result: Result<Sent, SendError>) -> Option<SendError> {
    match result {
        // Taken: it was sent before, and a crash or an error has come before it was forgotten. Not found: there is
        // nobody who wants it any more.
        Ok(_) | Err(SendError::EventIdTaken(_) | SendError::NotFound) => None,
        Err(error) => Some(error),
    }
}

/// A turn has ended. An error is about all organizations.
fn ended(turn: Option<Result<Turn, JoinError>>, resting: &mut Resting) -> Result<(), Error> {
    match turn {
        Some(Ok((org, Ok(())))) => resting.goes_on(org),
        Some(Ok((_, Err(SendError::Store(Error::Closed))))) => return Err(Error::Closed),
        Some(Ok((org, Err(error)))) => {
            let pause = resting.lie_down(org);
            tracing::warn!(%error, %org, ?pause, "operational webhooks of an organization cannot be sent now");
        }
        Some(Err(panic)) => return Err(Error::Failed(format!("a turn has panicked: {panic}"))),
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
    fn only_what_was_sent_or_can_never_be_is_forgotten() {
        let message = MessageId::first_at(MOMENT);
        for over in [
            Ok(Sent::Before { message }),
            Ok(Sent::New { message, at: MOMENT, deliver_at: None }),
            Err(SendError::EventIdTaken(message)),
            Err(SendError::NotFound),
        ] {
            assert_eq!(still_to_send(over.clone()), None, "{over:?}");
        }
        for error in [
            SendError::Unsettled,
            SendError::Store(Error::Busy),
            SendError::Store(Error::Full),
            SendError::Store(Error::Timeout),
            SendError::Store(Error::Closed),
        ] {
            assert_eq!(still_to_send(Err(error.clone())), Some(error));
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
    fn an_organization_wants_to_hear_as_long_as_an_application_is_named_like_it() {
        let (listeners, org, other) = (Listeners::default(), OrgId::first_at(MOMENT), OrgId::last_at(MOMENT));
        listeners.put(&application(1, Some(org)));
        assert!(listeners.wants(org) && !listeners.wants(other));
        listeners.put(&application(1, Some(other)));
        assert!(!listeners.wants(org) && listeners.wants(other), "it has another name");
        // Another one has taken the name before the first has gone.
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
