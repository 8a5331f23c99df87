//! What can be read of the disk.

use super::disk::{ApplicationRow, Disk, UniqueKey};
use super::expunge::readable;
use aldaba_delivery::{AppId, EndpointId, MessageId, OrgId, Timestamp};
use aldaba_store::{
    Application, Content, DeliveryStatus, DueQuery, Endpoint, FoundLane, GateRecord, LanesCursor, LanesPage,
    LanesQuery, Message, Order, OrphansCursor, OrphansPage, OrphansQuery, Page, Seq, StartedCursor,
    StartedPage, StartedQuery, Subscription, Tenant, Turn, Waiting, WhichApplication,
};
use std::collections::BTreeSet;
use std::ops::Bound;

/// Before every turn there is.
const START: Turn = Turn { due_at: Timestamp::MIN, seq: Seq(i64::MIN) };
const END: Turn = Turn { due_at: Timestamp::MAX, seq: Seq(i64::MAX) };

impl Disk {
    pub(super) fn due(&self, query: DueQuery) -> Vec<Waiting> {
        if query.ordered {
            return self.in_order(query);
        }
        let after = Bound::Excluded((query.endpoint, query.after.unwrap_or(START)));
        let until = Bound::Included((query.endpoint, END));
        self.lanes.range((after, until)).map(|(_, waiting)| *waiting).take(query.limit).collect()
    }

    fn in_order(&self, query: DueQuery) -> Vec<Waiting> {
        let all = (query.endpoint, START)..=(query.endpoint, END);
        let mut rows: Vec<_> = self.lanes.range(all).map(|(_, waiting)| *waiting).collect();
        rows.retain(|row| row.place.is_some_and(|place| query.after.is_none_or(|after| place > after.seq)));
        rows.sort_by_key(|row| row.place);
        rows.truncate(query.limit);
        rows
    }

    pub(super) fn lanes(&self, query: LanesQuery) -> LanesPage {
        let LanesCursor(after) = query.after.unwrap_or(LanesCursor(START));
        let limit = query.limit.max(1);
        let mut page = LanesPage::default();
        let mut seen = BTreeSet::new();
        let mut walked = 0;
        let waiting = self.turns.range((Bound::Excluded(after), Bound::Unbounded));
        for (turn, endpoint) in waiting.take_while(|(turn, _)| turn.due_at <= query.until).take(limit) {
            walked += 1;
            if seen.insert(*endpoint) {
                let app = self.endpoints[endpoint].app;
                page.lanes.push(FoundLane { endpoint: *endpoint, app, due_at: turn.due_at });
            }
            page.next = Some(LanesCursor(*turn));
        }
        if walked < limit {
            page.next = None;
        }
        page
    }

    pub(super) fn started_before(&self, query: StartedQuery) -> StartedPage {
        let mut rows = self.waiting_for(query.endpoint);
        rows.sort_by_key(started_place);
        let after = query.after.map(|after| match after {
            StartedCursor::Untried(turn) => (false, turn.due_at, turn.seq),
            StartedCursor::Tried { clock_start, seq } => (true, clock_start, seq),
        });
        rows.retain(|row| after.is_none_or(|after| started_place(row) > after));
        let (mut page, mut last) = (StartedPage::default(), None);
        for row in rows {
            if row.clock_start >= query.before {
                page.rest_since = page.rest_since.into_iter().chain([row.clock_start]).min();
            } else if page.waiting.len() < query.limit.max(1) {
                page.waiting.push(row);
                last = Some(started_place(&row));
            } else {
                page.next = last.map(|(tried, at, seq)| match tried {
                    false => StartedCursor::Untried(Turn { due_at: at, seq }),
                    true => StartedCursor::Tried { clock_start: at, seq },
                });
                break;
            }
        }
        page
    }

    pub(super) fn have_started_before(&self, endpoints: &[(EndpointId, Timestamp)]) -> Vec<EndpointId> {
        let has = |(endpoint, before): &(EndpointId, Timestamp)| {
            self.waiting_for(*endpoint).iter().any(|row| row.clock_start < *before).then_some(*endpoint)
        };
        endpoints.iter().filter_map(has).collect()
    }

    fn waiting_for(&self, endpoint: EndpointId) -> Vec<Waiting> {
        self.lanes.range((endpoint, START)..=(endpoint, END)).map(|(_, waiting)| *waiting).collect()
    }

    pub(super) fn deleted_applications(&self, after: Option<AppId>, limit: usize) -> Vec<AppId> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let deleted = self.applications.range((start, Bound::Unbounded)).filter(|(_, row)| row.deleted);
        deleted.map(|(app, _)| *app).take(limit).collect()
    }

    pub(super) fn orphans(&self, query: OrphansQuery) -> OrphansPage {
        let mut page = OrphansPage::default();
        if !self.applications.get(&query.app).is_some_and(|row| row.deleted) {
            return page;
        }
        let first = query.after.map(|OrphansCursor { endpoint, turn }| (endpoint, turn));
        let start = first.map_or(Bound::Unbounded, Bound::Excluded);
        let theirs =
            |endpoint: EndpointId| self.endpoints.get(&endpoint).is_some_and(|row| row.app == query.app);
        let mut found = self.lanes.range((start, Bound::Unbounded)).filter(|((id, _), _)| theirs(*id));
        for ((endpoint, turn), waiting) in found.by_ref().take(query.limit.max(1)) {
            page.waiting.push((*endpoint, *waiting));
            page.next = Some(OrphansCursor { endpoint: *endpoint, turn: *turn });
        }
        if found.next().is_none() {
            page.next = None;
        }
        page
    }

    pub(super) fn contents(&self, messages: &[(AppId, MessageId)], all: bool) -> Vec<Option<Content>> {
        let kept = |message: &&Message| all || !message.expunged;
        let content = |key| self.messages.get(key).filter(kept).map(|message| message.content.clone());
        messages.iter().map(content).collect()
    }

    pub(super) fn lane_endpoints(&self, ids: &[EndpointId]) -> Vec<Endpoint> {
        ids.iter().filter_map(|id| self.endpoints.get(id).cloned()).collect()
    }

    pub(super) fn gates(&self) -> Vec<GateRecord> {
        let records = self.gates.iter();
        records
            .map(|(key, (gate, why))| GateRecord { key: key.clone(), gate: gate.clone(), why: why.clone() })
            .collect()
    }

    fn application_row(&self, which: &WhichApplication) -> Option<&ApplicationRow> {
        let ours = |row: &&ApplicationRow| row.application.org == which.org && !row.deleted;
        let by_id = which.key.parse().ok().and_then(|id: AppId| self.applications.get(&id)).filter(ours);
        by_id.or_else(|| {
            let named = |row: &&ApplicationRow| row.application.uid.as_ref() == Some(&which.key);
            self.applications.values().filter(ours).find(named)
        })
    }

    pub(super) fn tenant(&self, which: &WhichApplication) -> Option<Tenant> {
        let row = self.application_row(which)?;
        let ours = |endpoint: &&Endpoint| {
            endpoint.app == row.application.id && !endpoint.deleted && !endpoint.direct
        };
        let endpoints = self.endpoints.values().filter(ours).map(Subscription::from).collect();
        let source = self.source_of_application(row.application.id);
        Some(Tenant::new(row.application.clone(), row.version, endpoints).of_source(source))
    }

    pub(super) fn application(&self, which: &WhichApplication) -> Option<Application> {
        self.application_row(which).map(|row| row.application.clone())
    }

    pub(super) fn applications(&self, org: OrgId, page: Page<AppId>, order: Order) -> Vec<Application> {
        let ours = |row: &&ApplicationRow| row.application.org == org && !row.deleted;
        let rows = self.applications.values().filter(ours).map(|row| &row.application);
        paged(rows, |application| application.id, page, order)
    }

    pub(super) fn endpoint(&self, app: AppId, key: &str) -> Option<Endpoint> {
        let ours = |endpoint: &&Endpoint| endpoint.app == app && !endpoint.deleted;
        let by_id = key.parse().ok().and_then(|id: EndpointId| self.endpoints.get(&id)).filter(ours);
        let named =
            || self.endpoints.values().filter(ours).find(|row| row.config.uid.as_deref() == Some(key));
        by_id.or_else(named).cloned()
    }

    pub(super) fn endpoints_of(&self, app: AppId, page: Page<EndpointId>, order: Order) -> Vec<Endpoint> {
        let rows = self.endpoints.values().filter(|row| row.app == app && !row.deleted && !row.direct);
        paged(rows, |endpoint| endpoint.id, page, order)
    }

    pub(super) fn message(&self, app: AppId, key: &str) -> Option<Message> {
        let by_id = |id: MessageId| self.messages.get(&(app, id));
        let named = || {
            let key = UniqueKey::EventId(*app.as_bytes(), key.to_owned());
            self.key(&key).and_then(|id| by_id(MessageId::from_bytes(id)))
        };
        key.parse().ok().and_then(by_id).or_else(named).map(readable)
    }

    pub(super) fn deliveries(&self, message: MessageId) -> Vec<DeliveryStatus> {
        let seqs = self.of_message.get(&message).into_iter().flatten();
        seqs.filter_map(|seq| self.deliveries.get(seq).cloned()).collect()
    }

    pub(super) fn waiting(&self) -> u64 {
        self.turns.len() as u64
    }
}

/// Its place in the two walks over what has started: whether it is in the second, and where.
fn started_place(row: &Waiting) -> (bool, Timestamp, Seq) {
    let tried = row.clock_start < row.due_at;
    (tried, if tried { row.clock_start } else { row.due_at }, row.seq)
}

/// A page of rows that come in the order of their ids.
pub(super) fn paged<'a, T: Clone + 'a, Id: Ord + Copy>(
    rows: impl DoubleEndedIterator<Item = &'a T>,
    id: impl Fn(&T) -> Id,
    page: Page<Id>,
    order: Order,
) -> Vec<T> {
    match order {
        Order::Ascending => rows
            .filter(|row| page.after.is_none_or(|after| id(row) > after))
            .take(page.limit)
            .cloned()
            .collect(),
        Order::Descending => rows
            .rev()
            .filter(|row| page.after.is_none_or(|after| id(row) < after))
            .take(page.limit)
            .cloned()
            .collect(),
    }
}
