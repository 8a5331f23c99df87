//! Writes down what the operations of a batch do, from inside of its transaction.

use super::disk::endpoint;
use crate::log::{
    AcceptCommit, Deletion, GateRelease, Hold, Log, OperatorChange, OrderingCommit, PlaceCommit,
    RecordCommit, RemovalCommit, SourceAction, SourceCommit,
};
use aldaba_delivery::filter::FilterInput;
use aldaba_delivery::{EndpointId, MessageId, Timestamp, WhenDisabled};
use aldaba_store::operations::{
    ExpiredItem, Op, OpOutcome, Removal, Removed, Result, SettledPosition, everything,
};
use aldaba_store::sqlite::{Observer, without_bugs};
use aldaba_store::{
    Accept, Accepted, BackendReads, Change, Changed, DeliveryStatus, Endpoint, GateRecord, PendingDelivery,
    Quota, Record, Recorded, RemovedCounts, Seq, Sequenced,
};
use std::collections::BTreeMap;

pub(super) struct LogObserver<'a> {
    log: &'a mut Log,
    at: Timestamp,
    life: usize,
    before: Before,
}

/// What has to be seen before an operation.
#[derive(Default)]
enum Before {
    #[default]
    Nothing,
    /// For each event: the endpoints that want it, and those of them that are off, and skip.
    Accept(Vec<[Vec<EndpointId>; 2]>),
    /// The endpoints that the event was for.
    Reopen(Vec<EndpointId>),
    /// The health epoch of the endpoint before the change.
    Change(Option<u64>),
    /// Deliveries that are to go, and how many delivered ones of their applications are newer, by policy.
    Remove(Vec<(DeliveryStatus, BTreeMap<String, usize>)>),
}

impl Observer for LogObserver<'_> {
    fn before(&mut self, reading: &dyn BackendReads, op: &Op) {
        self.before = without_bugs(|| before(reading, op)).expect("a look at rows that were written");
    }

    fn after(&mut self, reading: &dyn BackendReads, op: &Op, outcome: &OpOutcome) {
        let before = std::mem::take(&mut self.before);
        without_bugs(|| self.note(reading, before, op, outcome)).expect("a look at rows that were written");
    }
}

fn before(reading: &dyn BackendReads, op: &Op) -> Result<Before> {
    Ok(match op {
        Op::Accept(accepts) => {
            Before::Accept(accepts.iter().map(|accept| wanted(reading, accept)).collect::<Result<_>>()?)
        }
        Op::Reopen(reopen) => Before::Reopen(sent_to(reading, reopen.message)?),
        Op::Change(change, _) => {
            Before::Change(row_of(reading, change)?.map(|row| u64::from(row.health.epoch)))
        }
        Op::Remove(removal) => {
            let mut ranks = Vec::new();
            for item in &removal.items {
                if let ExpiredItem::Delivery(place) = item {
                    ranks.extend(rank(reading, *place)?);
                }
            }
            Before::Remove(ranks)
        }
        _ => Before::Nothing,
    })
}

/// The endpoints that should get a message at this moment, found without the engine's help; and those of them that skip it.
fn wanted(reading: &dyn BackendReads, accept: &Accept) -> Result<[Vec<EndpointId>; 2]> {
    let message = &accept.message;
    let there = everything::endpoints_of(reading, accept.app)?;
    let subscribed = |endpoint: &Endpoint| {
        let of_type = endpoint.config.event_types.is_empty()
            || endpoint.config.event_types.iter().any(|name| **name == *message.content.event_type);
        let of_channel = endpoint.config.channels.is_empty()
            || endpoint.config.channels.iter().any(|name| message.channels.contains(name));
        let facts = FilterInput {
            event_type: &message.content.event_type,
            channels: &message.channels,
            tags: &message.tags,
            headers: &message.headers,
            payload: &message.content.payload,
        };
        let passes = endpoint.config.filter.as_ref().is_none_or(|filter| filter.holds(&facts));
        !endpoint.deleted && !endpoint.direct && of_type && of_channel && passes
    };
    let mut wanted: Vec<EndpointId> = match &accept.direct {
        Some(address) => vec![address.id],
        None => there.iter().filter(|row| subscribed(row)).map(|row| row.id).collect(),
    };
    wanted.sort();
    // An address is made with what is dispatched to it.
    let off = |row: &&Endpoint| row.config.disabled && row.config.when_disabled == WhenDisabled::Skip;
    let skipping = there.iter().filter(off).map(|row| row.id).filter(|id| wanted.contains(id)).collect();
    Ok([wanted, skipping])
}

/// The endpoints that a message goes, or went, to. One that was off when it came is none of them.
fn sent_to(reading: &dyn BackendReads, message: MessageId) -> Result<Vec<EndpointId>> {
    let rounds = everything::deliveries(reading, message)?;
    Ok(rounds.iter().filter(|row| row.was_to_be_sent()).map(|row| row.endpoint).collect())
}

/// The endpoint whose health a change may change.
fn row_of(reading: &dyn BackendReads, change: &Change) -> Result<Option<Endpoint>> {
    match change {
        Change::UpdateEndpoint { endpoint: new, .. } => endpoint(reading, new.id),
        Change::ResumeEndpoint { endpoint: id, .. } => endpoint(reading, *id),
        _ => Ok(None),
    }
}

fn rank(
    reading: &dyn BackendReads,
    place: SettledPosition,
) -> Result<Option<(DeliveryStatus, BTreeMap<String, usize>)>> {
    let Some(row) = everything::delivery(reading, place.seq)? else { return Ok(None) };
    let Some(owner) = endpoint(reading, row.endpoint)? else { return Ok(None) };
    let newer = everything::newer(reading, owner.app, place)?;
    Ok(Some((row, newer)))
}

impl<'a> LogObserver<'a> {
    pub(super) fn new(log: &'a mut Log, at: Timestamp, life: usize) -> Self {
        Self { log, at, life, before: Before::Nothing }
    }

    fn note(
        &mut self,
        reading: &dyn BackendReads,
        before: Before,
        op: &Op,
        outcome: &OpOutcome,
    ) -> Result<()> {
        let at = self.at;
        match (op, outcome, before) {
            (Op::Record(records), OpOutcome::Record(results), _) => {
                records.iter().zip(results).for_each(|(record, result)| self.record(record, result.clone()));
            }
            (Op::Accept(accepts), OpOutcome::Accept(results), Before::Accept(wanted)) => {
                for ((accept, accepted), wanted) in accepts.iter().zip(results).zip(wanted) {
                    self.accept(accept, accepted, wanted);
                }
            }
            (Op::RecordManual(resent), ..) => {
                self.log.note(at, || format!("resent {} {}", resent.message, resent.attempt.success));
            }
            (Op::Reopen(reopen), OpOutcome::Reopen(opened), Before::Reopen(before)) => {
                let all_gone = all_gone(reading, &before)?;
                let new = opened.iter().filter(|(endpoint, _)| !before.contains(endpoint));
                self.log.passed_on.extend(new.map(|(endpoint, _)| ((reopen.message, *endpoint), all_gone)));
                self.log.note(at, || format!("a repeat of {} opens {opened:?}", reopen.message));
                self.open_rounds(opened.iter().map(|(_, waiting)| waiting));
            }
            (Op::StepReplay(step), OpOutcome::StepReplay(stepped), _) => {
                self.log.note(at, || format!("replay {} opens {:?}", step.id, stepped.opened));
                self.open_rounds(stepped.opened.iter());
            }
            (Op::Change(change, _), OpOutcome::Change(changed), Before::Change(epoch)) => {
                self.change(reading, change, changed, epoch)?;
            }
            (Op::Remove(removal), OpOutcome::Remove(removed), Before::Remove(ranks)) => {
                self.remove(reading, removal, removed, ranks)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn record(&mut self, record: &Record, result: Recorded) {
        self.log.note(self.at, || format!("record {:?} {:?} {result:?}", record.seq, record.transition));
        let step = self.log.step();
        let held = |gate: &GateRecord| {
            let (until, failed_at) = (gate.gate.held_until?, gate.gate.failed_at?);
            Some(Hold { key: gate.key.clone(), until, failed_at })
        };
        self.log.records.push(RecordCommit {
            step,
            at: self.at,
            life: self.life,
            seq: record.seq,
            endpoint: record.endpoint,
            decided_at: record.at,
            attempt: record.attempt.clone(),
            transition: record.transition,
            health: record.health.clone(),
            gates: record.gates.iter().filter_map(held).collect(),
            result,
        });
    }

    fn accept(&mut self, accept: &Accept, accepted: &Accepted, [wanted, skipped]: [Vec<EndpointId>; 2]) {
        self.log.note(self.at, || format!("accept {} {accepted:?}", accept.message.id));
        if let Accepted::New { first } = accepted {
            self.log.last_seq = self.log.last_seq.max(first.0 + accept.deliveries.len() as i64 - 1);
            let (step, at, app, message) = (self.log.step(), self.at, accept.app, accept.message.id);
            let counted = accept.quota.map_or_else(Vec::new, |quota| {
                let day = Quota::day_of(accept.message.created_at);
                let owners =
                    [(quota.organization, *quota.org.as_bytes()), (quota.application, *app.as_bytes())];
                owners.into_iter().filter(|(most, _)| most.is_some()).map(|(_, owner)| (day, owner)).collect()
            });
            let (org, created_at) = (accept.org, accept.message.created_at);
            let commit = AcceptCommit { step, at, org, app, message, created_at, wanted, skipped, counted };
            self.log.accepts.push(commit);
        }
    }

    fn open_rounds<'w>(&mut self, opened: impl Iterator<Item = &'w PendingDelivery>) {
        let begins = self.log.step();
        for waiting in opened {
            self.log.last_seq = self.log.last_seq.max(waiting.seq.0);
            self.log.rounds.insert(waiting.seq, begins);
        }
    }

    fn change(
        &mut self,
        reading: &dyn BackendReads,
        change: &Change,
        changed: &Changed,
        epoch: Option<u64>,
    ) -> Result<()> {
        let at = self.at;
        if let Changed::Sequenced(placed) = changed {
            self.place(placed);
        }
        let row = row_of(reading, change)?.filter(|row| Some(u64::from(row.health.epoch)) != epoch);
        if let Some(Endpoint { id: endpoint, config, health, .. }) = row {
            self.log.note(at, || {
                format!("{endpoint} changed by an operator: off {}, {health:?}", config.disabled)
            });
            let (step, life, off) = (self.log.step(), self.life, config.disabled);
            self.log.operator_changes.push(OperatorChange { step, at, life, endpoint, off, health });
        }
        let Changed::Done { removed } = changed else { return Ok(()) };
        self.log.note(at, || format!("change, removed {removed:?}"));
        let mut deleted = removed.clone();
        match change {
            Change::ReleaseGates { gates } => {
                let (step, gates) = (self.log.step(), gates.clone());
                self.log.gate_releases.push(GateRelease { step, at, gates });
            }
            Change::CreateEndpoint { endpoint, .. } | Change::UpdateEndpoint { endpoint, .. } => {
                let first = matches!(change, Change::CreateEndpoint { .. });
                let (step, endpoint, ordering) = (self.log.step(), endpoint.id, endpoint.config.ordering);
                self.log.orderings.push(OrderingCommit { step, at, endpoint, ordering, first });
            }
            Change::DeleteApplication { app, .. } | Change::DeleteSource { app, .. } => {
                deleted.extend(everything::endpoints_of(reading, *app)?.iter().map(|row| row.id));
            }
            _ => {}
        }
        self.note_source(change);
        self.log.deletions.extend(deleted.into_iter().map(|endpoint| Deletion { at, endpoint }));
        Ok(())
    }

    /// They stand behind all that has a number, in their order.
    fn place(&mut self, placed: &[Sequenced]) {
        self.log.note(self.at, || format!("places {placed:?}"));
        let step = self.log.step();
        for (after, row) in (self.log.last_seq..).zip(placed) {
            self.log.places.insert(row.waiting.seq, PlaceCommit { step, after: Seq(after) });
            let place = row.waiting.sequence.map_or(after, |place| place.0);
            self.log.last_seq = self.log.last_seq.max(place);
        }
    }

    fn note_source(&mut self, change: &Change) {
        let (source, app, action) = match change {
            Change::CreateSource { source, .. } | Change::UpdateSource { source, .. } => {
                (source.id, source.app, SourceAction::Is(source.config.name.clone()))
            }
            Change::RotateSourceToken { source, .. } => (source.id, source.app, SourceAction::Rotated),
            Change::DeleteSource { source, app, .. } => (*source, *app, SourceAction::Deleted),
            _ => return,
        };
        self.log.note(self.at, || format!("{source}: {action:?}"));
        self.log.sources.push(SourceCommit { at: self.at, source, app, action });
    }

    fn remove(
        &mut self,
        reading: &dyn BackendReads,
        removal: &Removal,
        removed: &Removed,
        ranks: Vec<(DeliveryStatus, BTreeMap<String, usize>)>,
    ) -> Result<()> {
        let (at, decided_at) = (self.at, removal.now);
        if removed.counts != RemovedCounts::default() {
            self.log.note(at, || format!("removed {:?}", removed.counts));
            self.log.removed.push((at, removed.counts));
        }
        for (delivery, newer) in ranks {
            if everything::delivery(reading, delivery.seq)?.is_none() {
                self.log.removals.push(RemovalCommit { at, decided_at, delivery, newer });
            }
        }
        Ok(())
    }
}

/// Whether none of these endpoints is there any more.
fn all_gone(reading: &dyn BackendReads, endpoints: &[EndpointId]) -> Result<bool> {
    for id in endpoints {
        if endpoint(reading, *id)?.is_some_and(|row| !row.deleted) {
            return Ok(false);
        }
    }
    Ok(true)
}
