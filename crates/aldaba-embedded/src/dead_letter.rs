//! What could not be delivered, and how it goes out again.

use crate::application::find_endpoint;
use crate::{Application, Delivery, Error};
use aldaba_delivery::{EndpointId, MessageId, ReplayId, Timestamp};
use aldaba_engine::{NewReplay, NewResend};
use aldaba_store::{
    AuditAction, DeliveriesQuery, DeliveryFilter, DeliveryList, Order, Phase, ReplayFilter, ReplayKind,
    ReplayState,
};

/// Deliveries that one page looks at, at most.
const WALK: usize = 10_000;
/// Deliveries that a recovery opens in a second.
const RATE: u32 = 500;

/// A position in the dead letter, from which a later page continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetterPosition(aldaba_store::DeliveryPosition);

/// The former name of [`DeadLetterPosition`].
#[deprecated(note = "use `DeadLetterPosition`")]
pub type Place = DeadLetterPosition;

/// A page of the dead letter, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetterPage {
    /// Deliveries that ended without success.
    pub deliveries: Vec<Delivery>,
    /// The position of the next page; `None` on the last page.
    pub next: Option<DeadLetterPosition>,
}

/// How far a recovery has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// To ask for it again: [`Application::recovery`].
    pub id: ReplayId,
    /// Whether it still runs, and how it ended.
    pub state: ReplayState,
    /// Deliveries that go out again.
    pub opened: u64,
}

impl Application {
    /// Up to `limit` deliveries that ended without success, the newest first, beyond a place.
    pub async fn dead_letter(
        &self,
        from: Option<DeadLetterPosition>,
        limit: usize,
    ) -> Result<DeadLetterPage, Error> {
        let query = DeliveriesQuery {
            list: DeliveryList::Of(self.id(), Phase::Dead),
            filter: DeliveryFilter::default(),
            from: from.map(|DeadLetterPosition(position)| position),
            order: Order::Descending,
            // One more, to know whether there is one.
            limit: limit.saturating_add(1),
            walk: WALK,
        };
        let store = self.aldaba().engine().store().clone();
        let mut page = self.aldaba().run(async move { Ok(store.delivery_list(query).await?) }).await?;
        let more = page.found.len() > limit;
        page.found.truncate(limit);
        let last = page.found.last().map(|(place, _)| *place);
        let next =
            if more { last.or(from.map(|DeadLetterPosition(position)| position)) } else { page.stopped };
        let deliveries = page.found.into_iter().map(|(_, view)| view.into()).collect();
        Ok(DeadLetterPage { deliveries, next: next.map(DeadLetterPosition) })
    }

    /// One attempt by hand, now, whatever the delivery's state. `true`: the receiver took it, and the delivery counts
    /// as delivered. `false`: nothing has changed but the history.
    pub async fn resend(&self, message: MessageId, endpoint: EndpointId) -> Result<bool, Error> {
        let (app, engine, actor) = (self.id(), self.aldaba().engine().clone(), self.aldaba().actor().clone());
        let resending = async move {
            let found = engine.store().message(app, message.to_string()).await?;
            let message = found.ok_or(Error::NotFound("message"))?;
            let endpoint = find_endpoint(&engine, app, endpoint.to_string()).await?;
            let action = AuditAction::new("message.resend", &message.id).of_app(app).at_endpoint(endpoint.id);
            let audit = engine.entry(&actor, action);
            let made = engine.resend(NewResend { endpoint, message, audit, once: None }).await?;
            Ok(made.is_delivered())
        };
        self.aldaba().run(resending).await
    }

    /// Gives everything a new round that was accepted from a moment on and has died at an endpoint: it goes out as if
    /// it had just been accepted.
    pub async fn recover(
        &self,
        endpoint: EndpointId,
        since: impl Into<Timestamp>,
    ) -> Result<Recovery, Error> {
        let (app, since) = (self.id(), since.into());
        let (engine, actor) = (self.aldaba().engine().clone(), self.aldaba().actor().clone());
        let starting = async move {
            let endpoint = find_endpoint(&engine, app, endpoint.to_string()).await?;
            let filter = ReplayFilter { since, dead: true, ..ReplayFilter::nothing(engine.clock().now()) };
            let (org, endpoint, kind) = (endpoint.org, endpoint.id, ReplayKind::Recover);
            let new = NewReplay { org, app, endpoint, kind, filter, rate: RATE };
            Ok(engine.replays().start(&actor, new, None).await?)
        };
        self.aldaba().run(starting).await.map(Recovery::from)
    }

    /// How far a recovery of this application has come.
    pub async fn recovery(&self, id: ReplayId) -> Result<Option<Recovery>, Error> {
        let (app, org) = (self.id(), self.aldaba().actor().org);
        let store = self.aldaba().engine().store().clone();
        let found = self.aldaba().run(async move { Ok(store.replay(org, id).await?) }).await?;
        Ok(found.filter(|replay| replay.app == app).map(Recovery::from))
    }
}

impl From<aldaba_store::Replay> for Recovery {
    fn from(replay: aldaba_store::Replay) -> Self {
        Self { id: replay.id, state: replay.state, opened: replay.opened }
    }
}
