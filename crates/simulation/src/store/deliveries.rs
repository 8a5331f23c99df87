//! Deliveries as their owners see them. Nothing here is quick; it only has to be right.

use super::SimStore;
use super::disk::Disk;
use super::queue::Op;
use aldaba_delivery::{AppId, EndpointId};
use aldaba_store::{
    Attempt, AuditEntry, Deliveries, DeliveriesPage, DeliveriesQuery, DeliveryList, DeliveryState,
    DeliveryStatus, DeliveryView, Done, Error, LastAttempt, Order, Phase, Place, Read, Seq,
};
use std::sync::Arc;

impl Deliveries for SimStore {
    fn delivery_views(&self, app: AppId, seqs: Vec<Seq>) -> Read<Vec<DeliveryView>> {
        self.read(move |disk| seqs.iter().filter_map(|seq| disk.delivery(app, *seq)).collect())
    }

    fn delivery_list(&self, query: DeliveriesQuery) -> Read<DeliveriesPage> {
        self.read(move |disk| disk.delivery_list(&query))
    }

    fn discard(&self, app: AppId, deliveries: Vec<Seq>, audit: Option<Arc<AuditEntry>>, done: Done<usize>) {
        if self.busy() {
            return done.call(Err(Error::Busy));
        }
        self.put(Op::Discard(app, deliveries, audit, done));
    }
}

impl Disk {
    pub(super) fn discard(&mut self, app: AppId, deliveries: &[Seq]) -> usize {
        let can_go = |disk: &Self, seq: &Seq| {
            let row = disk.deliveries.get(seq).filter(|row| row.state.reason().is_some());
            row.is_some_and(|row| disk.owner(row.endpoint) == Some(app))
        };
        let mut discarded = 0;
        for seq in deliveries {
            if can_go(self, seq) {
                self.dead_letter.remove(seq);
                discarded += usize::from(self.discarded.insert(*seq));
            }
        }
        discarded
    }

    fn owner(&self, endpoint: EndpointId) -> Option<AppId> {
        self.endpoints.get(&endpoint).map(|endpoint| endpoint.app)
    }

    fn delivery(&self, app: AppId, seq: Seq) -> Option<DeliveryView> {
        let row = self.deliveries.get(&seq).filter(|row| self.owner(row.endpoint) == Some(app))?;
        Some(self.view(app, row))
    }

    pub(super) fn view(&self, app: AppId, row: &DeliveryStatus) -> DeliveryView {
        let message = self.messages.get(&(app, row.message));
        let of_it = |attempt: &&Attempt| attempt.seq == row.seq;
        DeliveryView {
            status: row.clone(),
            app,
            event_type: message.map(|message| message.content.event_type.to_string()),
            created_at: message.map_or(row.message.created_at(), |message| message.created_at),
            last: self.attempts.values().rev().find(of_it).map(|attempt| LastAttempt {
                id: attempt.id,
                started_at: attempt.started_at,
                duration: attempt.duration,
                status_code: attempt.status_code,
                error: attempt.error.clone(),
            }),
            delivered_by: self.delivered_by(row),
            in_dead_letter: self.dead_letter.contains(&row.seq),
        }
    }

    fn delivered_by(&self, row: &DeliveryStatus) -> Option<u32> {
        let DeliveryState::Delivered { .. } = row.state else { return None };
        let mut attempts = self.attempts.values().filter(|attempt| attempt.seq == row.seq);
        let before = attempts.position(|attempt| attempt.success)?;
        u32::try_from(before + 1).ok()
    }

    fn delivery_list(&self, query: &DeliveriesQuery) -> DeliveriesPage {
        let mut rows: Vec<_> = self.deliveries.values().filter_map(|row| self.on_list(query, row)).collect();
        rows.sort_by_key(|(place, _, _)| *place);
        if query.order == Order::Descending {
            rows.reverse();
        }
        let same_kind = |from: &Place| {
            matches!(
                (from, rows.first()),
                (Place::Message(..), Some((Place::Message(..), ..)))
                    | (Place::Moment(..), Some((Place::Moment(..), ..)))
            )
        };
        if let Some(from) = query.from.filter(same_kind) {
            rows.retain(|(place, _, _)| match query.order {
                Order::Ascending => *place > from,
                Order::Descending => *place < from,
            });
        }
        let (mut page, mut last) = (DeliveriesPage::default(), query.from);
        for (walked, (place, app, row)) in rows.into_iter().enumerate() {
            if page.found.len() >= query.limit {
                break;
            }
            if walked >= query.walk {
                page.stopped = last;
                break;
            }
            last = Some(place);
            let view = self.view(app, row);
            if fits(query, &view) {
                page.found.push((place, view));
            }
        }
        page
    }

    /// Its place on the list, whatever the filter says.
    fn on_list<'a>(
        &'a self,
        query: &DeliveriesQuery,
        row: &'a DeliveryStatus,
    ) -> Option<(Place, AppId, &'a DeliveryStatus)> {
        let endpoint = self.endpoints.get(&row.endpoint)?;
        let phase = match query.list {
            DeliveryList::Of(app, phase) => (endpoint.app == app).then_some(phase)?,
            DeliveryList::DeadLetter(org) => {
                let there = self.applications.get(&endpoint.app).is_some_and(|row| !row.deleted);
                (there && endpoint.org == org).then_some(Phase::Dead)?
            }
        };
        let listed = phase.has(row.state) && (phase != Phase::Dead || self.dead_letter.contains(&row.seq));
        let place = match (phase.is_by_message(), row.state) {
            (true, _) => Place::Message(row.message, row.seq),
            (false, DeliveryState::Waiting { due_at }) => Place::Moment(due_at, row.seq),
            (false, state) => Place::Moment(state.settled_at()?, row.seq),
        };
        listed.then_some((place, endpoint.app, row))
    }
}

fn fits(query: &DeliveriesQuery, view: &DeliveryView) -> bool {
    let (filter, status) = (&query.filter, &view.status);
    let at = match query.list {
        DeliveryList::Of(_, Phase::Dead) | DeliveryList::DeadLetter(_) => status.state.settled_at(),
        DeliveryList::Of(..) => Some(status.message.created_at()),
    };
    filter.endpoint.is_none_or(|endpoint| endpoint == status.endpoint)
        && filter.event_type.as_ref().is_none_or(|wanted| view.event_type.as_ref() == Some(wanted))
        && filter.reason.is_none_or(|reason| status.state.reason() == Some(reason))
        && at.is_some_and(|at| filter.includes(at))
}
