//! The dead letter: deliveries that ended without success, and how to send them again.

use crate::application::find_endpoint;
use crate::{Application, Delivery, Error};
use aldaba_delivery::{EndpointId, MessageId, ReplayId, Timestamp};
use aldaba_engine::{NewReplay, NewResend};
use aldaba_store::{
    AuditAction, DeliveriesQuery, DeliveryFilter, DeliveryList, Order, Phase, ReplayFilter, ReplayKind,
    ReplayState,
};

/// The maximum number of deliveries that one page examines.
const WALK: usize = 10_000;
/// The number of deliveries that a recovery opens per second.
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

/// The progress of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// The id, for [`Application::recovery`].
    pub id: ReplayId,
    /// Whether it is running, or how it ended.
    pub state: ReplayState,
    /// The number of deliveries that it has opened.
    pub opened: u64,
}

impl Application {
    /// Lists up to `limit` deliveries that ended without success, newest first, after a position.
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
            // Reads one more, to know whether another page follows.
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

    /// Makes one manual attempt now, in any state of the delivery. `true`: the receiver accepted it, and the delivery is
    /// delivered. `false`: only the history has changed.
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

    /// Starts a new round for every delivery to an endpoint that died and whose message was accepted since a moment.
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

    /// The progress of a recovery of this application.
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
