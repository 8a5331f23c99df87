//! Lists of deliveries. None of them has an index of its own: waiting deliveries are read lane by lane, settled ones by their
//! messages, and the dead letter is a table of its own.

use crate::operations::delivery::{self, one, view};
use crate::operations::transaction::{InOrder, ReadingExt, statements, values};
use crate::operations::{Reading, Result, application, endpoint, message};
use crate::{
    DeliveriesPage, DeliveriesQuery, DeliveryFilter, DeliveryList, DeliveryPosition, DeliveryState,
    DeliveryStatus, Order, Phase, Seq,
};
use aldaba_delivery::{AppId, EndpointId, MessageId, OrgId, Reason, Timestamp};
use std::collections::BTreeMap;

/// Rows that one statement reads.
const PAGE_ROWS: usize = 64;

/// SQLite uses only the first part of a pair for a search, so there are two searches.
fn by_moment(select: &str, moment: &str, beyond: &str, word: &str, limit: &str) -> String {
    format!(
        "{select} AND {moment} = ?2 AND seq {beyond} ?3
         UNION ALL {select} AND {moment} {beyond} ?2
         ORDER BY {moment} {word}, seq {word} LIMIT {limit}"
    )
}

fn dead(column: &str) -> String {
    format!("SELECT settled_at, seq, app, org, reason, event_type FROM dead_letter WHERE {column} = ?1")
}

fn pending(which: &str) -> String {
    format!("SELECT {} FROM delivery WHERE {which} = ?1 AND state = 0", delivery::COLUMNS)
}

statements! {
    DEAD_OF_ENDPOINT[order] = by_moment(&dead("endpoint"), "settled_at", order.beyond, order.word, "?4");
    DEAD_OF_APPLICATION[order] = by_moment(&dead("app"), "settled_at", order.beyond, order.word, "?4");
    DEAD_OF_ORGANIZATION[order] = by_moment(&dead("org"), "settled_at", order.beyond, order.word, "?4");
    PENDING_OF_ENDPOINT[order] = by_moment(&pending("endpoint"), "due_at", order.beyond, order.word, "1");
    PENDING_DISPATCHED[order] =
        by_moment(&pending("dispatched > 0 AND app"), "due_at", order.beyond, order.word, "1");
    ENDPOINTS = "SELECT id FROM endpoint WHERE app = ?1 AND deleted = 0 AND direct = 0 ORDER BY id";
    FIRST_MESSAGES[order] = format!(
        "SELECT id FROM message WHERE app = ?1 AND id {} ?2 ORDER BY id {} LIMIT ?3", order.from, order.word
    );
    MESSAGES[order] = format!(
        "SELECT id FROM message WHERE app = ?1 AND id {} ?2 ORDER BY id {} LIMIT ?3", order.beyond, order.word
    );
    ROUNDS[order] = format!(
        "SELECT {} FROM delivery WHERE message = ?1 AND seq {} ?2 ORDER BY seq {}",
        delivery::COLUMNS, order.beyond, order.word
    );
}

pub(crate) fn list(reading: &dyn Reading, query: &DeliveriesQuery) -> Result<DeliveriesPage> {
    let walk = Walk { reading, query, left: query.walk, page: DeliveriesPage::default() };
    match query.list {
        DeliveryList::Of(app, Phase::Pending) => walk.pending(app),
        DeliveryList::Of(app, Phase::Dead) => walk.dead(DeadLetterOf::Application(app)),
        DeliveryList::DeadLetter(org) => walk.dead(DeadLetterOf::Organization(org)),
        DeliveryList::Of(app, phase) => walk.by_message(app, phase),
    }
}

/// Waiting deliveries in one order.
#[derive(Clone, Copy)]
enum Lane {
    Of(EndpointId),
    /// All that the application has dispatched: the addresses may be very many.
    Dispatched,
}

#[derive(Clone, Copy)]
enum DeadLetterOf {
    Application(AppId),
    Organization(OrgId),
}

/// A row of the dead letter: moment and number, application and organization, reason and event type.
type DeadRow = ((Timestamp, Seq), (AppId, OrgId), (Reason, String));

struct Walk<'r> {
    reading: &'r dyn Reading,
    query: &'r DeliveriesQuery,
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

    /// Counts one that is about to be looked at. `false`: enough were.
    fn goes_on(&mut self, last: Option<DeliveryPosition>) -> bool {
        if self.left == 0 {
            self.page.stopped = last;
            return false;
        }
        self.left -= 1;
        true
    }

    fn find(&mut self, place: DeliveryPosition, app: AppId, status: DeliveryStatus) -> Result<()> {
        self.page.found.push((place, view(self.reading, app, status)?));
        Ok(())
    }

    /// The list has nothing more for the filter from this moment on.
    fn is_over(&self, at: Timestamp) -> bool {
        match self.query.order {
            Order::Ascending => self.filter().before.is_some_and(|before| at >= before),
            Order::Descending => self.filter().after.is_some_and(|after| at <= after),
        }
    }

    /// Where a list by moments begins: only what lies beyond it is on the page.
    fn first_moment(&self) -> (Timestamp, Seq) {
        let from = match self.query.from {
            Some(DeliveryPosition::Moment(at, seq)) => Some((at, seq)),
            _ => None,
        };
        match self.query.order {
            Order::Ascending => {
                let bound = self.filter().after.map(|after| (after, Seq(i64::MAX)));
                from.max(bound).unwrap_or((Timestamp::MIN, Seq(i64::MIN)))
            }
            Order::Descending => {
                let bound = self.filter().before.map(|before| (before, Seq(i64::MIN)));
                from.into_iter().chain(bound).min().unwrap_or((Timestamp::MAX, Seq(i64::MAX)))
            }
        }
    }

    fn dead(mut self, owner: DeadLetterOf) -> Result<DeliveriesPage> {
        let (reading, order) = (self.reading, self.query.order);
        let by = |statement: &'static InOrder| statement.by(order);
        let (mut at, mut seq) = self.first_moment();
        let mut last = self.query.from;
        loop {
            let rows = PAGE_ROWS;
            let page: Vec<DeadRow> = match (owner, self.filter().endpoint) {
                (_, Some(endpoint)) => {
                    reading.all(by(&DEAD_OF_ENDPOINT), values![endpoint, at, seq, rows])?
                }
                (DeadLetterOf::Application(app), None) => {
                    reading.all(by(&DEAD_OF_APPLICATION), values![app, at, seq, rows])?
                }
                (DeadLetterOf::Organization(org), None) => {
                    reading.all(by(&DEAD_OF_ORGANIZATION), values![org, at, seq, rows])?
                }
            };
            let is_last = page.len() < rows;
            for ((moment, number), (app, org), (reason, event_type)) in page {
                if self.is_full() || !self.goes_on(last) || self.is_over(moment) {
                    return Ok(self.page);
                }
                (at, seq) = (moment, number);
                let place = DeliveryPosition::Moment(at, seq);
                last = Some(place);
                let owned = match owner {
                    DeadLetterOf::Application(owner) => app == owner,
                    // What a deleted application leaves in the dead letter is not shown.
                    DeadLetterOf::Organization(owner) => {
                        org == owner && application::exists(reading, app, owner)?
                    }
                };
                if owned
                    && self.reason_fits(Some(reason))
                    && self.type_fits(Some(&event_type))
                    && let Some(status) = one(reading, seq)?
                    && Phase::Dead.has(status.state)
                {
                    self.find(place, app, status)?;
                }
            }
            if is_last {
                return Ok(self.page);
            }
        }
    }

    /// The lanes of the application, merged: the work grows with their number, not with what waits.
    fn pending(mut self, app: AppId) -> Result<DeliveriesPage> {
        let (reading, order) = (self.reading, self.query.order);
        let next = |lane: Lane, (at, seq): (Timestamp, Seq)| -> Result<Option<DeliveryStatus>> {
            match lane {
                Lane::Of(endpoint) => reading.one(PENDING_OF_ENDPOINT.by(order), values![endpoint, at, seq]),
                Lane::Dispatched => reading.one(PENDING_DISPATCHED.by(order), values![app, at, seq]),
            }
        };
        let from = match (self.query.from, order) {
            (Some(DeliveryPosition::Moment(at, seq)), _) => (at, seq),
            (_, Order::Ascending) => (Timestamp::MIN, Seq(i64::MIN)),
            (_, Order::Descending) => (Timestamp::MAX, Seq(i64::MAX)),
        };
        let mut heads = BTreeMap::new();
        for lane in self.lanes(app)? {
            if let Some(head) = next(lane, from)? {
                heads.insert(turn(&head), (lane, head));
            }
        }
        let mut last = self.query.from;
        while !self.is_full() {
            let first = match order {
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
            let place = DeliveryPosition::Moment(at, seq);
            last = Some(place);
            if self.filter().includes(head.message.created_at())
                && self.reason_fits(None)
                && self.message_fits(app, head.message)?
            {
                self.find(place, app, head)?;
            }
        }
        Ok(self.page)
    }

    fn lanes(&self, app: AppId) -> Result<Vec<Lane>> {
        if let Some(endpoint) = self.filter().endpoint {
            let owned = endpoint::owner(self.reading, endpoint)? == Some(app);
            return Ok(owned.then_some(Lane::Of(endpoint)).into_iter().collect());
        }
        let endpoints: Vec<EndpointId> = self.reading.all(&ENDPOINTS, values![app])?;
        Ok(endpoints.into_iter().map(Lane::Of).chain([Lane::Dispatched]).collect())
    }

    fn by_message(mut self, app: AppId, phase: Phase) -> Result<DeliveriesPage> {
        let (reading, order) = (self.reading, self.query.order);
        let (near, far) = match order {
            Order::Ascending => (Seq(i64::MIN), Seq(i64::MAX)),
            Order::Descending => (Seq(i64::MAX), Seq(i64::MIN)),
        };
        let (from, mut last) = (self.first_message(), self.query.from);
        let mut cursor = from.map_or(bound(near), |(message, _)| message);
        // The first message may have deliveries beyond the one that was the last.
        let mut statement = &FIRST_MESSAGES;
        loop {
            let messages: Vec<MessageId> =
                reading.all(statement.by(order), values![app, cursor, PAGE_ROWS])?;
            statement = &MESSAGES;
            let is_last = messages.len() < PAGE_ROWS;
            for message in messages {
                cursor = message;
                if self.is_over(message.created_at()) {
                    return Ok(self.page);
                }
                // A message without deliveries is work too.
                if self.is_full() || !self.goes_on(last) {
                    return Ok(self.page);
                }
                if self.filter().includes(message.created_at()) && self.message_fits(app, message)? {
                    let after = from.filter(|(first, _)| *first == message).map_or(near, |(_, seq)| seq);
                    for status in reading.all::<DeliveryStatus>(ROUNDS.by(order), values![message, after])? {
                        if self.is_full() || !self.goes_on(last) {
                            return Ok(self.page);
                        }
                        let place = DeliveryPosition::Message(message, status.seq);
                        last = Some(place);
                        let at_it = self.filter().endpoint.is_none_or(|endpoint| endpoint == status.endpoint);
                        if at_it && phase.has(status.state) && self.reason_fits(status.state.reason()) {
                            self.find(place, app, status)?;
                        }
                    }
                }
                last = Some(DeliveryPosition::Message(message, far));
            }
            if is_last {
                return Ok(self.page);
            }
        }
    }

    /// The message from which on (or down to which) a list by messages is read, and the number of its delivery that was the
    /// last one. `None`: from the beginning.
    fn first_message(&self) -> Option<(MessageId, Seq)> {
        let from = match self.query.from {
            Some(DeliveryPosition::Message(message, seq)) => Some((message, seq)),
            _ => None,
        };
        match self.query.order {
            Order::Ascending => {
                let bound = self.filter().after.map(|after| (MessageId::first_at(after), Seq(i64::MIN)));
                from.max(bound)
            }
            Order::Descending => {
                let bound = self.filter().before.map(|before| (MessageId::first_at(before), Seq(i64::MAX)));
                from.into_iter().chain(bound).min()
            }
        }
    }

    fn reason_fits(&self, reason: Option<Reason>) -> bool {
        self.filter().reason.is_none_or(|wanted| reason == Some(wanted))
    }

    fn type_fits(&self, event_type: Option<&str>) -> bool {
        self.filter().event_type.as_deref().is_none_or(|wanted| event_type == Some(wanted))
    }

    fn message_fits(&self, app: AppId, message: MessageId) -> Result<bool> {
        if self.filter().event_type.is_none() {
            return Ok(true);
        }
        let kind = message::kind(self.reading, app, message)?;
        Ok(self.type_fits(kind.as_ref().map(|(event_type, _)| event_type.as_str())))
    }
}

/// The end of the ids at which a list begins.
fn bound(near: Seq) -> MessageId {
    if near == Seq(i64::MIN) { MessageId::from_bytes([0; 20]) } else { MessageId::MAX }
}

fn turn(delivery: &DeliveryStatus) -> (Timestamp, Seq) {
    let due_at = match delivery.state {
        DeliveryState::Waiting { due_at } => due_at,
        _ => Timestamp::from_millis(0),
    };
    (due_at, delivery.seq)
}
