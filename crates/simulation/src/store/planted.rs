//! Planted bugs of the store: in what it is asked, in what it answers, and in what it reads. Those in its SQL are in
//! [`Sabotage::in_statements`].

use super::SimStore;
use super::disk::Disk;
use crate::entropy::Dice;
use crate::sabotage::Sabotage;
use aldaba_delivery::{AppId, EndpointId, MessageId, OnExhausted, Ordering, OrgId, Timestamp, Transition};
use aldaba_store::operations::{Op, OpOutcome, Reading, Result, Row, Statement, Value, everything};
use aldaba_store::{
    Accept, Accepted, ApplicationAttemptsQuery, AttemptCounts, Change, Changed, Content, DueQuery, Endpoint,
    FutureDelivery, HotReads, LanePosition, LaneTarget, LanesPage, LanesQuery, OrphansPage, OrphansQuery,
    PendingDelivery, Record, Recorded, StartedPage, StartedQuery,
};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What is to be made of the answers of a batch.
#[derive(Default)]
pub(super) struct PlantedAnswers {
    hides_deletions: bool,
    /// Records that were left out of an operation: which one, and their places.
    lost: Vec<(usize, Vec<usize>)>,
    /// Operations that are answered as if nothing had to be opened.
    unopened: Vec<usize>,
    /// Due times that are written afterwards.
    due_times: Vec<(usize, Record)>,
}

impl SimStore {
    /// Plants a bug in an operation before its commit. With an outcome, the operation is answered without a commit.
    pub(super) fn plant_in_op(&self, op: &mut Op) -> Option<OpOutcome> {
        match op {
            Op::Change(change, _) if self.sabotage(Sabotage::CorrectLate) => {
                if let Change::Reschedule { deliveries } = &mut **change {
                    deliveries
                        .iter_mut()
                        .for_each(|row| row.due_at = row.due_at + Duration::from_secs(24 * 3600));
                }
                None
            }
            Op::Accept(accepts) if self.sabotage(Sabotage::LookThenStore) => {
                let disk = self.disk.lock();
                let named = |accept: &Accept| {
                    let id = accept.message.content.event_id.as_ref()?;
                    disk.look(|reading| everything::named(reading, accept.app, id))
                };
                let message = accepts.iter().find_map(named)?;
                Some(OpOutcome::Accept(vec![Accepted::EventIdTaken { message }]))
            }
            _ => None,
        }
    }

    /// Plants bugs in the operations of a batch.
    pub(super) fn plant_in_batch(&self, ops: &mut [Op], disk: &Disk) -> PlantedAnswers {
        let mut planted = PlantedAnswers::default();
        let Some(kind) = self.faults.sabotage else { return planted };
        planted.hides_deletions = kind == Sabotage::HideDelete;
        for (number, op) in ops.iter_mut().enumerate() {
            match op {
                Op::Accept(accepts) => {
                    accepts.iter_mut().for_each(|accept| self.plant_in_accept(kind, accept, disk));
                }
                Op::Record(records) => {
                    let mut lost = Vec::new();
                    for (place, record) in records.iter().enumerate() {
                        let loses = match kind {
                            Sabotage::LoseRecord => self.dice.lock().percent(3),
                            Sabotage::LoseManual => record.is_manual(),
                            _ => false,
                        };
                        lost.extend(loses.then_some(place));
                        if kind == Sabotage::RestoreDue && record.is_manual() {
                            planted.due_times.push((number, record.clone()));
                        }
                    }
                    lost.iter().rev().for_each(|place| drop(records.remove(*place)));
                    planted.lost.push((number, lost));
                }
                Op::Reopen(_) if kind == Sabotage::ForgetFailed => {
                    *op = Op::Accept(Vec::new());
                    planted.unopened.push(number);
                }
                _ => {}
            }
        }
        planted
    }

    fn plant_in_accept(&self, kind: Sabotage, accept: &mut Accept, disk: &Disk) {
        let created_at = accept.message.created_at;
        let of_source = accept.message.event_id_until.is_some();
        match kind {
            Sabotage::AcceptStale if accept.creates.is_none() => {
                let version = disk.look(|reading| everything::version(reading, accept.app));
                accept.version = version.unwrap_or(accept.version);
            }
            Sabotage::ExpireKeys => {
                let forget = format!("DELETE FROM unique_key WHERE expires_at <= {}", created_at.millis());
                disk.database.tamper(&forget).expect("SQL that forgets keys");
            }
            Sabotage::ForgetDelay => {
                accept.deliveries.iter_mut().for_each(|delivery| delivery.due_at = created_at);
            }
            Sabotage::TidyBody if of_source => {
                let content = Arc::make_mut(&mut accept.message.content);
                content.payload = Bytes::copy_from_slice(content.payload.trim_ascii());
            }
            Sabotage::MixHeaders if of_source => {
                let content = Arc::make_mut(&mut accept.message.content);
                let own = content.sealed_headers.clone();
                let before = self.last_headers.lock().insert(accept.app, own.clone());
                content.sealed_headers = before.unwrap_or(own);
            }
            _ => {}
        }
    }
}

impl PlantedAnswers {
    /// Makes the answers what they would be without the planted bug, as far as it hides itself.
    pub(super) fn mend(self, outcomes: &mut [Result<OpOutcome>], disk: &Disk) {
        for (number, places) in self.lost {
            if let Ok(OpOutcome::Record(results)) = &mut outcomes[number] {
                places.into_iter().for_each(|place| results.insert(place, Recorded::Applied));
            }
        }
        for number in self.unopened {
            outcomes[number] = Ok(OpOutcome::Reopen(Vec::new()));
        }
        for (_, record) in self.due_times {
            if let Transition::Retry { due_at } = record.transition {
                let (due_at, seq) = (due_at.millis(), record.seq.0);
                let restore =
                    format!("UPDATE delivery SET due_at = {due_at} WHERE seq = {seq} AND state = 0");
                disk.database.tamper(&restore).expect("SQL that restores a due time");
            }
        }
        for outcome in outcomes.iter_mut().filter(|_| self.hides_deletions) {
            if let Ok(OpOutcome::Change(Changed::Done { removed })) = outcome {
                removed.clear();
            }
        }
    }
}

/// Reads that do not tell what is there.
pub(super) struct PlantedReads<'r> {
    reading: &'r dyn HotReads,
    kind: Sabotage,
    dice: Mutex<Dice>,
}

impl<'r> PlantedReads<'r> {
    pub(super) fn new(reading: &'r dyn HotReads, kind: Sabotage, dice: Dice) -> Self {
        Self { reading, kind, dice: Mutex::new(dice) }
    }

    fn is(&self, kind: Sabotage) -> bool {
        self.kind == kind
    }

    /// A settled delivery that looks as if it waited.
    fn dead_row(&self, query: DueQuery, rows: &[PendingDelivery]) -> Result<Option<PendingDelivery>> {
        let last = rows.last().map(PendingDelivery::position).or(query.after);
        let Some(row) = everything::last_settled(self.reading, query.endpoint)? else { return Ok(None) };
        let due_at = last.map_or(row.clock_start, |turn: LanePosition| turn.due_at);
        let waiting = PendingDelivery {
            seq: row.seq,
            message: row.message,
            due_at,
            attempts: row.attempts,
            clock_start: row.clock_start,
            replayed: row.replayed,
            sequence: row.sequence,
        };
        let fits = rows.len() < query.limit && last.is_none_or(|last| waiting.position() > last);
        Ok(fits.then_some(waiting))
    }

    fn plant_in_endpoint(&self, row: &mut Endpoint) {
        match self.kind {
            Sabotage::HideThrottle => row.config.throttle_rate = None,
            Sabotage::HideDelete => row.deleted = false,
            Sabotage::HideOrdering => row.config.ordering = Ordering::None,
            Sabotage::HideBlock if row.config.ordering.is_fifo() => {
                row.config.ordering = Ordering::Fifo(OnExhausted::Skip);
            }
            Sabotage::HideDisabled => row.config.disabled = false,
            Sabotage::MixOrganizations => row.org = OrgId::from_bytes([1; 20]),
            _ => {}
        }
    }
}

impl Reading for PlantedReads<'_> {
    fn query(
        &self,
        statement: &Statement,
        parameters: &[Value<'_>],
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        self.reading.query(statement, parameters, each)
    }
}

impl HotReads for PlantedReads<'_> {
    fn due(&self, query: DueQuery) -> Result<Vec<PendingDelivery>> {
        let mut rows = self.reading.due(query)?;
        let mut dice = self.dice.lock();
        match self.kind {
            Sabotage::HideRow if rows.len() > 1 && dice.percent(20) => {
                rows.remove(dice.index(rows.len() - 1));
            }
            Sabotage::RaiseTheDead => rows.extend(self.dead_row(query, &rows)?),
            _ => {}
        }
        Ok(rows)
    }

    fn lanes(&self, query: LanesQuery) -> Result<LanesPage> {
        self.reading.lanes(query)
    }

    fn started_before(&self, query: StartedQuery) -> Result<StartedPage> {
        match self.is(Sabotage::HideStopDates) {
            true => Ok(StartedPage::default()),
            false => self.reading.started_before(query),
        }
    }

    fn have_started_before(&self, endpoints: &[(EndpointId, Timestamp)]) -> Result<Vec<EndpointId>> {
        self.reading.have_started_before(endpoints)
    }

    fn contents(&self, messages: &[(AppId, MessageId)]) -> Result<Vec<Option<Content>>> {
        self.reading.contents(messages)
    }

    fn has_payload(&self, app: AppId, message: MessageId, payload: &[u8]) -> Result<Option<bool>> {
        self.reading.has_payload(app, message, payload)
    }

    fn lane_targets(&self, endpoints: &[EndpointId]) -> Result<Vec<LaneTarget>> {
        let mut targets = self.reading.lane_targets(endpoints)?;
        for target in &mut targets {
            self.plant_in_endpoint(&mut target.endpoint);
            target.app_rate = target.app_rate.filter(|_| !self.is(Sabotage::HideThrottle));
        }
        Ok(targets)
    }

    fn orphans(&self, query: OrphansQuery) -> Result<OrphansPage> {
        self.reading.orphans(query)
    }

    fn future_deliveries(&self, after: LanePosition, limit: usize) -> Result<Vec<FutureDelivery>> {
        match self.is(Sabotage::HideNotDue) {
            true => Ok(Vec::new()),
            false => self.reading.future_deliveries(after, limit),
        }
    }

    fn newest_moment(&self) -> Result<Option<Timestamp>> {
        Ok(self.reading.newest_moment()?.filter(|_| !self.is(Sabotage::ForgetClock)))
    }

    fn application_attempts(
        &self,
        query: &ApplicationAttemptsQuery,
    ) -> Result<Option<BTreeMap<String, AttemptCounts>>> {
        self.reading.application_attempts(query)
    }
}
