//! The parts of queries that lists of messages and attempts share.

use super::ids;
use super::query::Query;
use crate::api::response::page::PageQuery;
use crate::api::routing::route::{Form, Route};
use aldaba_delivery::{Id, IdKind, Timestamp};
use aldaba_store::{ListRange, MessageFilter, Order, TimeRange};
use std::time::Duration;

/// Items that one read looks at. A filter that finds little ends its page early.
pub(crate) const MAX_ROWS_WALKED: usize = 5_000;
/// How far a list reaches from where it is read, unless a bound says otherwise.
const WINDOW: Duration = Duration::from_secs(90 * 24 * 3600);

/// The statuses of messages and attempts, as the API names them.
pub(crate) const STATUSES: [i64; 5] = [0, 1, 2, 3, 4];

impl Route {
    /// `channel`, `tag` and `event_types`.
    pub(crate) fn filtered_by_message(self) -> Self {
        self.query("channel", Form::CheckedText(ids::channel), "Only those of messages with this channel")
            .query("tag", Form::CheckedText(ids::tag), "Only those of messages with this tag")
            .query("event_types", Form::Names, "Only those of messages of these event types")
    }

    /// `before` and `after`.
    pub(crate) fn time_limited(self) -> Self {
        self.query("before", Form::Moment, "Only those from before").query(
            "after",
            Form::Moment,
            "Only those from after; alone, the oldest of them come on the first page",
        )
    }
}

impl Query {
    pub(crate) fn message_filter(&self) -> MessageFilter {
        MessageFilter {
            event_types: self.names("event_types").to_vec(),
            channel: self.text("channel").map(str::to_owned),
            tag: self.text("tag").map(str::to_owned),
        }
    }
}

impl<K: IdKind> PageQuery<Id<K>> {
    /// The range of a list that runs from the newest to the oldest item. It covers [`WINDOW`] from its start. With
    /// `after` alone the page is next to that moment, as if the client had paged backwards to it.
    pub(crate) fn part(&mut self, within: TimeRange, now: Timestamp) -> ListRange<Id<K>> {
        let TimeRange { before, after } = within;
        self.backwards |= self.beside.is_none() && before.is_none() && after.is_some();
        let beside = self.beside.map(|id| id.created_at());
        let within = if self.backwards {
            let start = after.max(beside).unwrap_or(now);
            TimeRange { after, before: before.or(Some(start + WINDOW + Duration::from_millis(1))) }
        } else {
            let start = before.into_iter().chain(beside).min().unwrap_or(now);
            TimeRange { before, after: after.or(Some(start.before(WINDOW + Duration::from_millis(1)))) }
        };
        let (page, order) = self.ask(Order::Descending);
        ListRange { within, page, order, walk: MAX_ROWS_WALKED }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_delivery::MessageId;

    const DAY: i64 = 24 * 3600 * 1000;

    fn at(days: i64) -> Timestamp {
        Timestamp::from_millis(1_780_000_000_000 + days * DAY)
    }

    /// The bounds in days, and the order; the milliseconds that make them inclusive are left out.
    fn part(
        beside: Option<(i64, bool)>,
        before: Option<i64>,
        after: Option<i64>,
    ) -> (Option<i64>, Option<i64>, Order) {
        let mut query = PageQuery {
            limit: 10,
            beside: beside.map(|(days, _)| MessageId::first_at(at(days))),
            backwards: beside.is_some_and(|(_, backwards)| backwards),
            order: None,
            query: Query::default(),
        };
        let within = TimeRange { before: before.map(at), after: after.map(at) };
        let ListRange { within, order, .. } = query.part(within, at(0));
        let days = |moment: Timestamp| (moment.millis() - at(0).millis() + DAY / 2).div_euclid(DAY);
        (within.after.map(days), within.before.map(days), order)
    }

    #[test]
    fn a_list_reaches_90_days_from_where_it_is_read() {
        let (up, down) = (Order::Ascending, Order::Descending);
        for (beside, before, after, wanted) in [
            (None, None, None, (Some(-90), None, down)),
            (None, Some(-10), None, (Some(-100), Some(-10), down)),
            (None, None, Some(-200), (Some(-200), Some(-110), up)),
            (None, Some(-10), Some(-300), (Some(-300), Some(-10), down)),
            (Some((-50, false)), None, None, (Some(-140), None, down)),
            (Some((-50, true)), None, None, (None, Some(40), up)),
            (Some((-50, false)), Some(-60), None, (Some(-150), Some(-60), down)),
            (Some((-50, false)), None, Some(-55), (Some(-55), None, down)),
            (Some((-50, true)), None, Some(-55), (Some(-55), Some(40), up)),
            (Some((-50, true)), Some(-45), None, (None, Some(-45), up)),
        ] {
            assert_eq!(part(beside, before, after), wanted, "{beside:?} {before:?} {after:?}");
        }
    }
}
