//! Where lanes wait for a place that their application or organization may have. Organizations take scheduler, so do the
//! applications of each, and in an application the one that has waited longest is the first.

use super::shares::{CapacityCheck, InFlightCounts, LaneOwner};
use crate::scheduling::lane::{FixedMap, LaneClass};
use aldaba_delivery::{AppId, EndpointId, OrgId};
use std::collections::VecDeque;

/// At how many organizations and applications is looked for one that may have a place that has come free.
const MAX_VISITS: usize = 64;

/// Who is asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum FairScope {
    All,
    Organization(OrgId),
    Application(AppId),
}

#[derive(Default)]
pub(super) struct FairQueue {
    of_app: FixedMap<AppId, Parked>,
    /// Their applications that have parked lanes, or had.
    of_org: FixedMap<OrgId, VecDeque<AppId>>,
    /// Just those organizations.
    all: VecDeque<OrgId>,
    next_ticket: u64,
    /// How many lanes stand in all of them.
    waiting: usize,
}

#[derive(Default)]
struct Parked {
    /// As long as it is not known the application is in no line.
    org: Option<OrgId>,
    /// By lane_class, because not all of them may have what others may. Each has the ticket of when it came.
    lanes: [VecDeque<(u64, EndpointId)>; LaneClass::ALL.len()],
    /// It is in its organization's line.
    lined_up: bool,
}

impl Parked {
    fn is_empty(&self) -> bool {
        self.lanes.iter().all(VecDeque::is_empty)
    }

    fn next(&mut self, app: AppId, counts: &InFlightCounts) -> Option<EndpointId> {
        let owner = LaneOwner { app, org: self.org };
        let heads = self.lanes.iter().zip(LaneClass::ALL).filter_map(|(lanes, lane_class)| {
            let (ticket, _) = lanes.front()?;
            (counts.leave(owner, lane_class) == CapacityCheck::Available).then_some((*ticket, lane_class))
        });
        let (_, lane_class) = heads.min_by_key(|(ticket, _)| *ticket)?;
        self.lanes[lane_class as usize].pop_front().map(|(_, endpoint)| endpoint)
    }
}

impl FairQueue {
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.of_app.is_empty() && self.of_org.is_empty() && self.all.is_empty()
    }

    #[cfg(test)]
    pub(super) fn parked(&self, app: AppId) -> usize {
        self.of_app.get(&app).map_or(0, |parked| parked.lanes.iter().map(VecDeque::len).sum())
    }

    /// What one of the application's lanes has said when it was parked.
    pub(super) fn organization(&self, app: AppId) -> Option<OrgId> {
        self.of_app.get(&app)?.org
    }

    pub(super) fn park(&mut self, owner: LaneOwner, lane_class: LaneClass, endpoint: EndpointId) {
        let parked = self.of_app.entry(owner.app).or_default();
        parked.lanes[lane_class as usize].push_back((self.next_ticket, endpoint));
        self.next_ticket += 1;
        self.waiting += 1;
        self.learn(owner);
    }

    /// Puts an application into its organization's line, if that is known, and that into the line of all.
    pub(super) fn learn(&mut self, owner: LaneOwner) {
        let Some(parked) = self.of_app.get_mut(&owner.app) else { return };
        parked.org = parked.org.or(owner.org);
        let Some(org) = parked.org else { return };
        if !std::mem::replace(&mut parked.lined_up, true) {
            let all = &mut self.all;
            let line = self.of_org.entry(org).or_insert_with(|| {
                all.push_back(org);
                VecDeque::new()
            });
            line.push_back(owner.app);
        }
    }

    /// Nobody stands in any of them. What is left then is of no use.
    pub(super) fn nobody_waits(&self) -> bool {
        self.waiting == 0
    }

    /// The next lane that may have a place now. It leaves its line.
    pub(super) fn next(&mut self, line: FairScope, counts: &InFlightCounts) -> Option<EndpointId> {
        if self.waiting == 0 {
            self.of_app.clear();
            self.of_org.clear();
            self.all.clear();
            return None;
        }
        let found = self.find(line, counts);
        self.waiting -= usize::from(found.is_some());
        found
    }

    fn find(&mut self, line: FairScope, counts: &InFlightCounts) -> Option<EndpointId> {
        let mut looks = MAX_VISITS;
        match line {
            FairScope::All => {
                let mut all = std::mem::take(&mut self.all);
                let found = first(&mut all, &mut looks, |org, looks| {
                    let (found, stays) = self.next_of_organization(org, looks, counts);
                    if !stays {
                        self.of_org.remove(&org);
                    }
                    (found, stays)
                });
                self.all = all;
                found
            }
            FairScope::Organization(org) => self.next_of_organization(org, &mut looks, counts).0,
            FairScope::Application(app) => {
                let parked = self.of_app.get_mut(&app)?;
                let found = parked.next(app, counts);
                if parked.is_empty() && !parked.lined_up {
                    self.of_app.remove(&app);
                }
                found
            }
        }
    }

    /// And whether any of its lanes may still wait.
    fn next_of_organization(
        &mut self,
        org: OrgId,
        looks: &mut usize,
        counts: &InFlightCounts,
    ) -> (Option<EndpointId>, bool) {
        let Some(line) = self.of_org.get_mut(&org) else { return (None, false) };
        if counts.has_share(org) {
            return (None, true);
        }
        let of_app = &mut self.of_app;
        let found = first(line, looks, |app, _| {
            let Some(parked) = of_app.get_mut(&app) else { return (None, false) };
            let found = parked.next(app, counts);
            parked.lined_up = !parked.is_empty();
            if !parked.lined_up {
                of_app.remove(&app);
                return (found, false);
            }
            (found, true)
        });
        (found, !line.is_empty())
    }
}

/// The first in a line that `look` finds something for goes to its end; those before it keep their places. If there is none
/// those that were looked at go to the end, so that others are the next time. Whoever does not stay leaves the line.
fn first<T: Copy>(
    line: &mut VecDeque<T>,
    looks: &mut usize,
    mut look: impl FnMut(T, &mut usize) -> (Option<EndpointId>, bool),
) -> Option<EndpointId> {
    let mut passed = Vec::new();
    while *looks > 0
        && let Some(next) = line.pop_front()
    {
        *looks -= 1;
        let (found, stays) = look(next, looks);
        if found.is_none() {
            passed.extend(stays.then_some(next));
            continue;
        }
        line.extend(stays.then_some(next));
        for next in passed.into_iter().rev() {
            line.push_front(next);
        }
        return found;
    }
    line.extend(passed);
    None
}
