//! The walk over the messages that a replay is about.

use crate::operations::message::{self, Facts};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Slice, delivery};
use crate::{DeliveryState, DeliveryStatus, Replay, Seq, Subscription};
use aldaba_delivery::filter::FilterSet;
use aldaba_delivery::{EndpointId, MessageId, Timestamp};

/// Messages that one statement reads.
const PAGE_ROWS: usize = 64;

statements! {
    MESSAGES = messages("NULL");
    MESSAGES_WITH_TAGS = messages("tags");
    /// The attempts of a delivery, the newest first, and then those of former rounds and of other endpoints.
    ATTEMPTS = "SELECT endpoint, status_code FROM attempt WHERE message = ?1 AND seq <= ?2
        ORDER BY seq DESC, id DESC";
}

fn messages(tags: &str) -> String {
    format!(
        "SELECT id, created_at, event_type, channels, {tags} FROM message
         WHERE app = ?1 AND id > ?2 AND id <= ?3 ORDER BY id LIMIT ?4"
    )
}

/// The messages that a replay is about, as they are now.
pub(crate) struct Search<'a> {
    reading: &'a dyn Reading,
    replay: &'a Replay,
    endpoint: &'a Subscription,
    /// The endpoint's, if it has one.
    filters: Option<FilterSet>,
    now: Timestamp,
}

#[derive(Default)]
pub(crate) struct Walk {
    pub reached: Option<MessageId>,
    pub messages: u64,
    /// Messages, their deliveries and the attempts of those.
    pub rows: usize,
    /// There are no more.
    pub done: bool,
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        reading: &'a dyn Reading,
        replay: &'a Replay,
        endpoint: &'a Subscription,
        now: Timestamp,
    ) -> Self {
        let filters = endpoint.filter.clone().map(FilterSet::of_one);
        Self { reading, replay, endpoint, filters, now }
    }

    /// Looks at messages in their order and calls `take` for each that is wanted, with the settled delivery that it has.
    /// `take` says whether to go on. The walk ends at `look` rows or with the slice, and comes forward by one message at
    /// least, or a slow machine would never come to an end.
    pub(crate) fn walk(
        &self,
        after: Option<MessageId>,
        look: usize,
        slice: &Slice<'_>,
        mut take: impl FnMut(MessageId, Option<Seq>) -> Result<bool>,
    ) -> Result<Walk> {
        let filter = &self.replay.filter;
        let statement = if filter.tag.is_some() { &MESSAGES_WITH_TAGS } else { &MESSAGES };
        // Nobody has an id whose random part is nothing but zeros.
        let first = MessageId::first_at(filter.since);
        let (mut after, last) =
            (after.map_or(first, |after| after.max(first)), MessageId::last_at(filter.until));
        let mut walk = Walk::default();
        loop {
            let rows = PAGE_ROWS.min(look.max(1));
            let page: Vec<Facts> =
                self.reading.all(statement, values![self.replay.app, after, last, rows])?;
            let is_last = page.len() < rows;
            for facts in page {
                after = facts.id;
                walk.reached = Some(facts.id);
                walk.messages += 1;
                walk.rows += 1;
                let mut goes_on = true;
                if filter.wants(facts.created_at, &facts.event_type, &facts.channels, &facts.tags)
                    && let Some(settled) = self.wanted(&facts, &mut walk.rows)?
                {
                    goes_on = take(facts.id, settled)?;
                }
                if !goes_on || walk.rows >= look || slice.is_over() {
                    return Ok(walk);
                }
            }
            if is_last {
                walk.done = true;
                return Ok(walk);
            }
        }
    }

    /// `Some` for a message that the endpoint is to get, with the settled delivery that it has.
    fn wanted(&self, facts: &Facts, rows: &mut usize) -> Result<Option<Option<Seq>>> {
        let (filter, message) = (&self.replay.filter, facts.id);
        let delivery = self.delivery(message, rows)?;
        let seq = delivery.as_ref().map(|delivery| delivery.seq);
        let wanted = match delivery.map(|delivery| (delivery.seq, delivery.state)) {
            None | Some((_, DeliveryState::Skipped { .. })) => {
                filter.missing
                    && self.endpoint.lists(&facts.event_type, &facts.channels)
                    && self.passes(facts)?
                    && self.is_for_it(message)?
            }
            // Somebody has sent it there by hand, which is no record of the address.
            Some(_) if self.endpoint.direct && !self.is_for_it(message)? => false,
            Some((_, DeliveryState::Waiting { .. })) => false,
            Some((seq, DeliveryState::Delivered { .. })) => {
                filter.delivered && self.has_status(message, seq, rows)?
            }
            Some((seq, DeliveryState::Dead { at, reason })) => {
                filter.wants_dead(at, reason, delivery::is_in_dead_letter(self.reading, seq)?)
                    && self.has_status(message, seq, rows)?
            }
        };
        // Without its payload there is nothing to send.
        let can_be_sent = wanted && message::has_content(self.reading, self.replay.app, message)?;
        Ok(can_be_sent.then_some(seq))
    }

    /// Whether the endpoint's own filter lets the message through.
    fn passes(&self, facts: &Facts) -> Result<bool> {
        match &self.filters {
            Some(filters) => message::passes(self.reading, self.replay.app, facts, filters),
            None => Ok(true),
        }
    }

    fn delivery(&self, message: MessageId, rows: &mut usize) -> Result<Option<DeliveryStatus>> {
        let rounds = delivery::of_message(self.reading, message)?;
        *rows += rounds.len();
        Ok(rounds.into_iter().rfind(|round| round.endpoint == self.endpoint.id))
    }

    /// Whether the last answer was of the class that is asked for, if one is. A round that ended without an attempt has that
    /// of the round before.
    fn has_status(&self, message: MessageId, seq: Seq, rows: &mut usize) -> Result<bool> {
        let filter = &self.replay.filter;
        if filter.status_class.is_none() {
            return Ok(true);
        }
        let attempts: Vec<(EndpointId, Option<u16>)> = self.reading.all(&ATTEMPTS, values![message, seq])?;
        let last = attempts.iter().position(|(endpoint, _)| *endpoint == self.endpoint.id);
        *rows += last.map_or(attempts.len(), |place| place + 1);
        Ok(filter.wants_status(last.and_then(|place| attempts[place].1)))
    }

    /// What was sent to one endpoint alone is missing nowhere else.
    fn is_for_it(&self, message: MessageId) -> Result<bool> {
        let only = message::addressee(self.reading, self.replay.app, message)?;
        Ok(only.map_or(!self.endpoint.direct, |only| only == self.endpoint.id))
    }

    /// What is to be delivered later still is.
    pub(crate) fn not_before(&self, message: MessageId) -> Result<Timestamp> {
        let later = message::deliver_at(self.reading, self.replay.app, message)?;
        Ok(later.map_or(self.now, |later| later.max(self.now)))
    }
}
