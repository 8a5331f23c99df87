//! The roles of the store that read.

use super::SimStore;
use super::disk::Disk;
use super::queue::Op;
use crate::entropy::Dice;
use crate::sabotage::Sabotage;
use aldaba_delivery::{AppId, EndpointId, MessageId, OnExhausted, Ordering, OrgId, Timestamp};
use aldaba_store::{
    Application, AuditEntry, Change, Changed, Content, DeliveryState, DeliveryStatus, Directory, Done,
    DueQuery, Endpoint, Error, EventType, GateRecord, HealthChange, HealthChangeNumber, Key, LaneTarget,
    Lanes, LanesPage, LanesQuery, NotDue, Notice, NoticeNumber, Order, OrphansPage, OrphansQuery, OwnPolicy,
    OwnProfile, Page, Read, StartedPage, StartedQuery, Tenant, Turn, Waiting, WhichApplication,
};
use std::sync::Arc;
use std::time::Duration;

impl Lanes for SimStore {
    fn due(&self, query: DueQuery) -> Read<Vec<Waiting>> {
        let (sabotage, mut dice) = (self.faults.sabotage, Dice::new(self.dice.lock().throw()));
        self.read(move |disk| {
            let mut rows = disk.due(query);
            match sabotage {
                Some(Sabotage::HideRow) if rows.len() > 1 && dice.percent(20) => {
                    rows.remove(dice.index(rows.len() - 1));
                }
                Some(Sabotage::RaiseTheDead) => rows.extend(dead_row(disk, query, &rows)),
                _ => {}
            }
            rows
        })
    }

    fn lanes(&self, query: LanesQuery) -> Read<LanesPage> {
        self.background_read(move |disk| disk.lanes(query))
    }

    fn started_before(&self, query: StartedQuery) -> Read<StartedPage> {
        let hides = self.sabotage(Sabotage::HideStopDates);
        self.read(move |disk| if hides { StartedPage::default() } else { disk.started_before(query) })
    }

    fn have_started_before(&self, endpoints: Vec<(EndpointId, Timestamp)>) -> Read<Vec<EndpointId>> {
        self.read(move |disk| disk.have_started_before(&endpoints))
    }

    fn contents(&self, messages: Vec<(AppId, MessageId)>) -> Read<Vec<Option<Content>>> {
        let keeps = self.sabotage(Sabotage::KeepDeleted);
        self.read(move |disk| disk.contents(&messages, keeps))
    }

    fn lane_endpoints(&self, endpoints: Vec<EndpointId>) -> Read<Vec<Endpoint>> {
        let sabotage = self.faults.sabotage;
        self.read(move |disk| {
            let mut rows = disk.lane_endpoints(&endpoints);
            rows.iter_mut().for_each(|row| sabotaged(row, sabotage));
            rows
        })
    }

    fn lane_targets(&self, endpoints: Vec<EndpointId>) -> Read<Vec<LaneTarget>> {
        let sabotage = self.faults.sabotage;
        self.read(move |disk| {
            let target = |mut endpoint: Endpoint| {
                sabotaged(&mut endpoint, sabotage);
                let app_rate =
                    disk.applications.get(&endpoint.app).and_then(|row| row.application.throttle_rate);
                let app_rate = app_rate.filter(|_| sabotage != Some(Sabotage::HideThrottle));
                LaneTarget { endpoint, app_rate }
            };
            disk.lane_endpoints(&endpoints).into_iter().map(target).collect()
        })
    }

    fn deleted_applications(&self, after: Option<AppId>, limit: usize) -> Read<Vec<AppId>> {
        self.background_read(move |disk| disk.deleted_applications(after, limit))
    }

    fn orphans(&self, query: OrphansQuery) -> Read<OrphansPage> {
        self.background_read(move |disk| disk.orphans(query))
    }

    fn gates(&self) -> Read<Vec<GateRecord>> {
        let forgets = self.sabotage(Sabotage::ForgetGates);
        self.read(move |disk| if forgets { Vec::new() } else { disk.gates() })
    }

    fn not_due(&self, after: Turn, limit: usize) -> Read<Vec<NotDue>> {
        let hides = self.sabotage(Sabotage::HideNotDue);
        self.read(move |disk| if hides { Vec::new() } else { disk.not_due(after, limit) })
    }

    fn next_place_at(&self) -> Read<Option<Timestamp>> {
        self.background_read(Disk::next_place_at)
    }

    fn newest_moment(&self) -> Read<Option<Timestamp>> {
        let forgets = self.sabotage(Sabotage::ForgetClock);
        self.read(move |disk| disk.newest_moment().filter(|_| !forgets))
    }
}

fn sabotaged(row: &mut Endpoint, sabotage: Option<Sabotage>) {
    match sabotage {
        Some(Sabotage::HideThrottle) => row.config.throttle_rate = None,
        Some(Sabotage::HideDelete) => row.deleted = false,
        Some(Sabotage::HideOrdering) => row.config.ordering = Ordering::None,
        Some(Sabotage::HideBlock) if row.config.ordering.is_fifo() => {
            row.config.ordering = Ordering::Fifo(OnExhausted::Skip);
        }
        Some(Sabotage::HideDisabled) => row.config.disabled = false,
        Some(Sabotage::MixOrganizations) => row.org = OrgId::from_bytes([1; 20]),
        _ => {}
    }
}

/// Sabotage: a settled delivery that looks as if it waited.
fn dead_row(disk: &Disk, query: DueQuery, rows: &[Waiting]) -> Option<Waiting> {
    let last = rows.last().map(Waiting::turn).or(query.after);
    let settled = |row: &&DeliveryStatus| {
        row.endpoint == query.endpoint && !matches!(row.state, DeliveryState::Waiting { .. })
    };
    let row = disk.deliveries.values().rfind(settled)?;
    let due_at = last.map_or(row.clock_start, |turn: Turn| turn.due_at);
    let waiting = Waiting {
        seq: row.seq,
        message: row.message,
        due_at,
        attempts: row.attempts,
        clock_start: row.clock_start,
        replayed: row.replayed,
        place: row.place,
    };
    (rows.len() < query.limit && last.is_none_or(|last| waiting.turn() > last)).then_some(waiting)
}

impl Directory for SimStore {
    fn change(&self, mut change: Change, audit: Option<Arc<AuditEntry>>, done: Done<Changed>) {
        if let Change::Reschedule { deliveries } = &mut change
            && self.sabotage(Sabotage::CorrectLate)
        {
            deliveries.iter_mut().for_each(|row| row.due_at = row.due_at + Duration::from_secs(24 * 3600));
        }
        if self.busy() {
            return done.call(Err(Error::Busy));
        }
        self.put(Op::Change(Box::new(change), audit, done));
    }

    fn tenant(&self, which: WhichApplication) -> Read<Option<Tenant>> {
        self.read(move |disk| disk.tenant(&which))
    }

    fn application(&self, which: WhichApplication) -> Read<Option<Application>> {
        self.read(move |disk| disk.application(&which))
    }

    fn application_version(&self, app: AppId) -> Read<Option<u64>> {
        self.read(move |disk| disk.applications.get(&app).filter(|row| !row.deleted).map(|row| row.version))
    }

    fn applications(&self, org: OrgId, page: Page<AppId>, order: Order) -> Read<Vec<Application>> {
        self.read(move |disk| disk.applications(org, page, order))
    }

    fn endpoint(&self, app: AppId, key: Key) -> Read<Option<Endpoint>> {
        self.read(move |disk| disk.endpoint(app, &key))
    }

    fn endpoints(&self, app: AppId, page: Page<EndpointId>, order: Order) -> Read<Vec<Endpoint>> {
        self.read(move |disk| disk.endpoints_of(app, page, order))
    }

    fn health_changes(
        &self,
        endpoint: EndpointId,
        page: Page<HealthChangeNumber>,
        order: Order,
    ) -> Read<Vec<HealthChange>> {
        self.read(move |disk| disk.health_changes(endpoint, page, order))
    }

    fn has_endpoints_at(&self, org: OrgId, app: Option<AppId>, starts: Vec<String>) -> Read<Vec<bool>> {
        self.read(move |disk| disk.has_endpoints_at(org, app, &starts))
    }

    fn are_of(&self, org: OrgId, apps: Vec<AppId>) -> Read<Vec<bool>> {
        self.read(move |disk| disk.are_of(org, &apps))
    }

    fn policies(&self) -> Read<Vec<OwnPolicy>> {
        self.read(|disk| disk.policies.values().cloned().collect())
    }

    fn profiles(&self) -> Read<Vec<OwnProfile>> {
        self.read(|disk| disk.profiles.values().cloned().collect())
    }

    fn notice_organizations(&self, after: Option<OrgId>, limit: usize) -> Read<Vec<OrgId>> {
        self.background_read(move |disk| {
            let mut found: Vec<_> = disk.notices.keys().map(|(org, _)| *org).collect();
            found.dedup();
            found.into_iter().filter(|org| after.is_none_or(|after| *org > after)).take(limit).collect()
        })
    }

    fn notices(&self, org: OrgId, limit: usize) -> Read<Vec<(NoticeNumber, Notice)>> {
        self.read(move |disk| {
            let found = disk.notices.iter().filter(|((of, _), _)| *of == org).take(limit);
            found.map(|((_, number), notice)| (*number, notice.clone())).collect()
        })
    }

    fn event_types(&self) -> Read<Vec<EventType>> {
        self.read(|disk| disk.event_types.values().cloned().collect())
    }

    fn setting(&self, name: &'static str) -> Read<Option<Vec<u8>>> {
        let forgets = self.sabotage(Sabotage::ForgetClock) && name == "clock";
        self.read(move |disk| disk.settings.get(name).filter(|_| !forgets).cloned())
    }

    fn settle_setting(&self, name: &'static str, value: Vec<u8>, done: Done<Vec<u8>>) {
        self.put(Op::SettleSetting(name, value, done));
    }
}
