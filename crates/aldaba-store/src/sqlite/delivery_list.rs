//! Lists of deliveries. None of them has an index of its own among the deliveries: what waits is read
//! lane by lane, what has ended by the messages, and the dead letter is a table of its own.

use super::codes::Code;
use super::deliveries::{kind, owner, status, view};
use super::rows::{self, count, id, moment};
use super::walk::Direction;
use crate::{
    DeliveriesPage, DeliveriesQuery, DeliveryFilter, DeliveryList, DeliveryState, DeliveryStatus, Order,
    Phase, Place, Seq,
};
use aldaba_delivery::{AppId, EndpointId, MessageId, Reason, Timestamp};
use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeMap;

pub(super) fn list(connection: &Connection, query: &DeliveriesQuery) -> rusqlite::Result<DeliveriesPage> {
    let walk = Walk { connection, query, left: query.walk, page: DeliveriesPage::default() };
    match query.list {
        DeliveryList::Of(app, Phase::Pending) => walk.pending(app),
        DeliveryList::Of(app, Phase::Dead) => walk.dead(Owner::Application(app)),
        DeliveryList::DeadLetter(org) => walk.dead(Owner::Organization(*org.as_bytes())),
        DeliveryList::Of(app, phase) => walk.by_message(app, phase),
    }
}

/// What waits in one order.
#[derive(Clone, Copy)]
enum PendingLane {
    Of(EndpointId),
    /// All that the application has dispatched: the addresses may be very many.
    Dispatched,
}

const OF_ENDPOINT: &str = "INDEXED BY delivery_lane WHERE state = 0 AND endpoint = ?1";
const DISPATCHED: &str = "INDEXED BY delivery_dispatched_due WHERE dispatched > 0 AND state = 0 AND app = ?1";

#[derive(Clone, Copy)]
enum Owner {
    Application(AppId),
    Organization([u8; 20]),
}

struct Walk<'c> {
    connection: &'c Connection,
    query: &'c DeliveriesQuery,
    /// How many more deliveries may be looked at.
    left: usize,
    page: DeliveriesPage,
}

impl Walk<'_> {
    fn filter(&self) -> &DeliveryFilter {
        &self.query.filter
    }

    fn is_full(&self) -> bool {
        self.page.found.len() >= self.query.limit
    }

    /// Counts one that is about to be looked at; `false`: enough were.
    fn goes_on(&mut self, last: Option<Place>) -> bool {
        if self.left == 0 {
            self.page.stopped = last;
            return false;
        }
        self.left -= 1;
        true
    }

    fn find(&mut self, place: Place, app: AppId, status: DeliveryStatus) -> rusqlite::Result<()> {
        self.page.found.push((place, view(self.connection, app, status)?));
        Ok(())
    }

    /// The list has nothing more for the filter from this moment on.
    fn is_over(&self, at: Timestamp) -> bool {
        match self.query.order {
            Order::Ascending => self.filter().before.is_some_and(|before| at >= before),
            Order::Descending => self.filter().after.is_some_and(|after| at <= after),
        }
    }

    /// Where the reading of a list by moments begins: only what lies beyond it is on the page.
    fn first_moment(&self) -> (i64, i64) {
        let from = match self.query.from {
            Some(Place::Moment(from, Seq(seq))) => Some((from.millis(), seq)),
            _ => None,
        };
        match self.query.order {
            Order::Ascending => {
                let bound = self.filter().after.map(|after| (after.millis(), i64::MAX));
                from.max(bound).unwrap_or((i64::MIN, i64::MIN))
            }
            Order::Descending => {
                let bound = self.filter().before.map(|before| (before.millis(), i64::MIN));
                from.into_iter().chain(bound).min().unwrap_or((i64::MAX, i64::MAX))
            }
        }
    }

    fn dead(mut self, owner: Owner) -> rusqlite::Result<DeliveriesPage> {
        let connection = self.connection;
        let (column, owned_by) = match (owner, self.filter().endpoint) {
            (_, Some(endpoint)) => ("endpoint", *endpoint.as_bytes()),
            (Owner::Application(app), None) => ("app", *app.as_bytes()),
            (Owner::Organization(org), None) => ("org", org),
        };
        let mut statement = connection.prepare_cached(&dead_statement(column, self.query.order))?;
        let (at, seq) = self.first_moment();
        let mut rows = statement.query((owned_by, at, seq, count(self.query.walk).saturating_add(1)))?;
        let mut last = self.query.from;
        while let Some(row) = rows.next()?
            && !self.is_full()
        {
            if !self.goes_on(last) {
                break;
            }
            let (at, seq) = (moment(row, 0)?, Seq(row.get(1)?));
            if self.is_over(at) {
                break;
            }
            let place = Place::Moment(at, seq);
            last = Some(place);
            let app = id(row, 2)?;
            let owned = match owner {
                Owner::Application(owner) => app == owner,
                Owner::Organization(org) => row.get::<_, [u8; 20]>(3)? == org && self.is_there(app)?,
            };
            if owned
                && self.reason_fits(Some(Code::from_code(row.get(4)?)?))
                && self.type_fits(row.get_ref(5)?.as_str().ok())
                && let Some(status) = status(connection, seq)?
                && Phase::Dead.has(status.state)
            {
                self.find(place, app, status)?;
            }
        }
        Ok(self.page)
    }

    /// What a deleted application leaves in the dead letter is not shown.
    fn is_there(&self, app: AppId) -> rusqlite::Result<bool> {
        self.connection
            .prepare_cached("SELECT 1 FROM application WHERE id = ?1 AND deleted = 0")?
            .exists((app.as_bytes(),))
    }

    /// The lanes of the application, merged: the work grows with their number, not with what waits.
    fn pending(mut self, app: AppId) -> rusqlite::Result<DeliveriesPage> {
        let connection = self.connection;
        let mut of_endpoint = connection.prepare_cached(&pending_statement(self.query.order, OF_ENDPOINT))?;
        let mut dispatched = connection.prepare_cached(&pending_statement(self.query.order, DISPATCHED))?;
        let mut next = |lane: PendingLane, (at, seq): (i64, i64)| {
            let (statement, key) = match lane {
                PendingLane::Of(endpoint) => (&mut of_endpoint, *endpoint.as_bytes()),
                PendingLane::Dispatched => (&mut dispatched, *app.as_bytes()),
            };
            statement.query_row((key, at, seq), rows::delivery).optional()
        };
        let from = match (self.query.from, self.query.order) {
            (Some(Place::Moment(at, Seq(seq))), _) => (at.millis(), seq),
            (_, Order::Ascending) => (i64::MIN, i64::MIN),
            (_, Order::Descending) => (i64::MAX, i64::MAX),
        };
        let mut heads = BTreeMap::new();
        for lane in self.lanes(app)? {
            if let Some(head) = next(lane, from)? {
                heads.insert(turn(&head), (lane, head));
            }
        }
        let mut last = self.query.from;
        while !self.is_full() {
            let first = match self.query.order {
                Order::Ascending => heads.pop_first(),
                Order::Descending => heads.pop_last(),
            };
            let Some(((at, seq), (lane, head))) = first else { break };
            if !self.goes_on(last) {
                break;
            }
            if let Some(follower) = next(lane, (at, seq))? {
                heads.insert(turn(&follower), (lane, follower));
            }
            let place = Place::Moment(Timestamp::from_millis(at), Seq(seq));
            last = Some(place);
            if self.filter().includes(head.message.created_at())
                && self.reason_fits(None)
                && self.type_of_fits(app, head.message)?
            {
                self.find(place, app, head)?;
            }
        }
        Ok(self.page)
    }

    fn lanes(&self, app: AppId) -> rusqlite::Result<Vec<PendingLane>> {
        if let Some(endpoint) = self.filter().endpoint {
            let owned = owner(self.connection, endpoint)? == Some(app);
            return Ok(owned.then_some(PendingLane::Of(endpoint)).into_iter().collect());
        }
        let mut endpoints = self.connection.prepare_cached(
            "SELECT id FROM endpoint INDEXED BY endpoint_app WHERE app = ?1 AND deleted = 0 AND direct = 0",
        )?;
        let lanes = endpoints.query_map((app.as_bytes(),), |row| id(row, 0).map(PendingLane::Of))?;
        lanes.chain([Ok(PendingLane::Dispatched)]).collect()
    }

    fn by_message(mut self, app: AppId, phase: Phase) -> rusqlite::Result<DeliveriesPage> {
        let connection = self.connection;
        let (from, first) = self.first_message();
        let (messages, deliveries) = message_statements(self.query.order, self.filter().event_type.is_some());
        let mut messages = connection.prepare_cached(&messages)?;
        let mut deliveries = connection.prepare_cached(&deliveries)?;
        let mut messages = messages.query((app.as_bytes(), from.as_bytes()))?;
        let mut last = self.query.from;
        while let Some(row) = messages.next()? {
            let message: MessageId = id(row, 0)?;
            if self.is_over(message.created_at()) {
                break;
            }
            // A message without deliveries is work too.
            if self.is_full() || !self.goes_on(last) {
                break;
            }
            let (near, far) = match self.query.order {
                Order::Ascending => (Seq(i64::MIN), Seq(i64::MAX)),
                Order::Descending => (Seq(i64::MAX), Seq(i64::MIN)),
            };
            let fits = self.filter().includes(message.created_at());
            if fits && self.type_fits(row.get_ref(1)?.as_str().ok()) {
                let Seq(after) = if message == from { first } else { near };
                let mut rows = deliveries.query((message.as_bytes(), after))?;
                while let Some(row) = rows.next()? {
                    if self.is_full() || !self.goes_on(last) {
                        return Ok(self.page);
                    }
                    let status = rows::delivery(row)?;
                    let place = Place::Message(message, status.seq);
                    last = Some(place);
                    let on_it = self.filter().endpoint.is_none_or(|endpoint| endpoint == status.endpoint);
                    if on_it && phase.has(status.state) && self.reason_fits(status.state.reason()) {
                        self.find(place, app, status)?;
                    }
                }
            }
            last = Some(Place::Message(message, far));
        }
        Ok(self.page)
    }

    /// The message from which on (or down to which) a list by messages is read, and the number of its
    /// delivery that was the last one.
    fn first_message(&self) -> (MessageId, Seq) {
        let from = match self.query.from {
            Some(Place::Message(message, seq)) => Some((message, seq)),
            _ => None,
        };
        match self.query.order {
            Order::Ascending => {
                let bound = self.filter().after.map(|after| (MessageId::first_at(after), Seq(i64::MIN)));
                from.max(bound).unwrap_or((MessageId::from_bytes([0; 20]), Seq(i64::MIN)))
            }
            Order::Descending => {
                let bound = self.filter().before.map(|before| (MessageId::first_at(before), Seq(i64::MAX)));
                let start = (MessageId::from_bytes([u8::MAX; 20]), Seq(i64::MAX));
                from.into_iter().chain(bound).min().unwrap_or(start)
            }
        }
    }

    fn reason_fits(&self, reason: Option<Reason>) -> bool {
        self.filter().reason.is_none_or(|wanted| reason == Some(wanted))
    }

    fn type_fits(&self, event_type: Option<&str>) -> bool {
        self.filter().event_type.as_deref().is_none_or(|wanted| event_type == Some(wanted))
    }

    fn type_of_fits(&self, app: AppId, message: MessageId) -> rusqlite::Result<bool> {
        if self.filter().event_type.is_none() {
            return Ok(true);
        }
        Ok(self.type_fits(
            kind(self.connection, app, message)?.as_ref().map(|(event_type, _)| event_type.as_str()),
        ))
    }
}

fn turn(delivery: &DeliveryStatus) -> (i64, i64) {
    let due_at = match delivery.state {
        DeliveryState::Waiting { due_at } => due_at.millis(),
        _ => 0,
    };
    (due_at, delivery.seq.0)
}

/// Two searches, as for a lane's refill: SQLite uses only the first part of a pair for a search.
fn dead_statement(column: &str, order: Order) -> String {
    let Direction { beyond, word, .. } = Direction::of(order);
    let select = format!(
        "SELECT settled_at, seq, app, org, reason, event_type FROM dead_letter
         INDEXED BY dead_letter_{column} WHERE {column} = ?1"
    );
    format!(
        "{select} AND settled_at = ?2 AND seq {beyond} ?3
         UNION ALL {select} AND settled_at {beyond} ?2
         ORDER BY settled_at {word}, seq {word} LIMIT ?4"
    )
}

fn pending_statement(order: Order, which: &str) -> String {
    let Direction { beyond, word, .. } = Direction::of(order);
    let select = format!("SELECT {} FROM delivery {which}", rows::DELIVERY);
    format!(
        "{select} AND due_at = ?2 AND seq {beyond} ?3
         UNION ALL {select} AND due_at {beyond} ?2
         ORDER BY due_at {word}, seq {word} LIMIT 1"
    )
}

/// The messages of an application, and the deliveries of one. Without their types, messages are read
/// from the index alone.
fn message_statements(order: Order, with_type: bool) -> (String, String) {
    let Direction { beyond, from, word } = Direction::of(order);
    let event_type = if with_type { "event_type" } else { "''" };
    (
        format!(
            "SELECT id, {event_type} FROM message INDEXED BY message_app WHERE app = ?1 AND id {from} ?2
             ORDER BY id {word}"
        ),
        format!(
            "SELECT {} FROM delivery INDEXED BY delivery_message WHERE message = ?1 AND seq {beyond} ?2
             ORDER BY seq {word}",
            rows::DELIVERY
        ),
    )
}

#[cfg(test)]
mod tests;
