//! The fair queue: lanes wait here for capacity. Organizations are served round robin, then the applications of each, and in an
//! application the lane that has waited longest.

use super::shares::{CapacityCheck, InFlightCounts, LaneOwner};
use crate::scheduling::lane::{FixedMap, LaneClass};
use aldaba_delivery::{AppId, EndpointId, OrgId};
use std::collections::VecDeque;

/// Organizations and applications that one search for the next lane visits.
const MAX_VISITS: usize = 64;

/// Whose lanes are considered.
#[derive(Clone, Copy, Debug)]
pub(super) enum FairScope {
    All,
    Organization(OrgId),
    Application(AppId),
}

#[derive(Default)]
pub(super) struct FairQueue {
    of_app: FixedMap<AppId, WaitingLanes>,
    /// Their applications with waiting lanes. One without may still be in it.
    of_org: FixedMap<OrgId, VecDeque<AppId>>,
    /// Those organizations.
    all: VecDeque<OrgId>,
    next_ticket: u64,
    /// How many lanes wait.
    waiting: usize,
}

#[derive(Default)]
struct WaitingLanes {
    /// While it is not known, the application is in no organization's queue.
    org: Option<OrgId>,
    /// By lane class, because the classes have different limits. Each with its ticket.
    lanes: [VecDeque<(u64, EndpointId)>; LaneClass::ALL.len()],
    /// It is in its organization's queue.
    is_queued: bool,
}

impl WaitingLanes {
    fn is_empty(&self) -> bool {
        self.lanes.iter().all(VecDeque::is_empty)
    }

    fn next(&mut self, app: AppId, counts: &InFlightCounts) -> Option<EndpointId> {
        let owner = LaneOwner { app, org: self.org };
        let heads = self.lanes.iter().zip(LaneClass::ALL).filter_map(|(lanes, lane_class)| {
            let (ticket, _) = lanes.front()?;
            (counts.check(owner, lane_class) == CapacityCheck::Available).then_some((*ticket, lane_class))
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
    pub(super) fn waiting_lanes(&self, app: AppId) -> usize {
        self.of_app.get(&app).map_or(0, |app_lanes| app_lanes.lanes.iter().map(VecDeque::len).sum())
    }

    /// The organization, if a waiting lane of the application knows it.
    pub(super) fn organization(&self, app: AppId) -> Option<OrgId> {
        self.of_app.get(&app)?.org
    }

    pub(super) fn enqueue_lane(&mut self, owner: LaneOwner, lane_class: LaneClass, endpoint: EndpointId) {
        let app_lanes = self.of_app.entry(owner.app).or_default();
        app_lanes.lanes[lane_class as usize].push_back((self.next_ticket, endpoint));
        self.next_ticket += 1;
        self.waiting += 1;
        self.learn(owner);
    }

    /// Puts an application into its organization's queue, if the organization is known.
    pub(super) fn learn(&mut self, owner: LaneOwner) {
        let Some(app_lanes) = self.of_app.get_mut(&owner.app) else { return };
        app_lanes.org = app_lanes.org.or(owner.org);
        let Some(org) = app_lanes.org else { return };
        if !std::mem::replace(&mut app_lanes.is_queued, true) {
            let all = &mut self.all;
            let queue = self.of_org.entry(org).or_insert_with(|| {
                all.push_back(org);
                VecDeque::new()
            });
            queue.push_back(owner.app);
        }
    }

    /// Whether no lane waits.
    pub(super) fn has_no_waiting_lane(&self) -> bool {
        self.waiting == 0
    }

    /// Takes the next lane that may have a slot now.
    pub(super) fn next(&mut self, scope: FairScope, counts: &InFlightCounts) -> Option<EndpointId> {
        if self.waiting == 0 {
            self.of_app.clear();
            self.of_org.clear();
            self.all.clear();
            return None;
        }
        let found = self.find(scope, counts);
        self.waiting -= usize::from(found.is_some());
        found
    }

    fn find(&mut self, scope: FairScope, counts: &InFlightCounts) -> Option<EndpointId> {
        let mut visits = MAX_VISITS;
        match scope {
            FairScope::All => {
                let mut all = std::mem::take(&mut self.all);
                let found = first(&mut all, &mut visits, |org, visits| {
                    let (found, stays) = self.next_of_organization(org, visits, counts);
                    if !stays {
                        self.of_org.remove(&org);
                    }
                    (found, stays)
                });
                self.all = all;
                found
            }
            FairScope::Organization(org) => self.next_of_organization(org, &mut visits, counts).0,
            FairScope::Application(app) => {
                let app_lanes = self.of_app.get_mut(&app)?;
                let found = app_lanes.next(app, counts);
                if app_lanes.is_empty() && !app_lanes.is_queued {
                    self.of_app.remove(&app);
                }
                found
            }
        }
    }

    /// The lane, and whether the organization may have further waiting lanes.
    fn next_of_organization(
        &mut self,
        org: OrgId,
        visits: &mut usize,
        counts: &InFlightCounts,
    ) -> (Option<EndpointId>, bool) {
        let Some(queue) = self.of_org.get_mut(&org) else { return (None, false) };
        if counts.has_used_share(org) {
            return (None, true);
        }
        let of_app = &mut self.of_app;
        let found = first(queue, visits, |app, _| {
            let Some(app_lanes) = of_app.get_mut(&app) else { return (None, false) };
            let found = app_lanes.next(app, counts);
            app_lanes.is_queued = !app_lanes.is_empty();
            if !app_lanes.is_queued {
                of_app.remove(&app);
                return (found, false);
            }
            (found, true)
        });
        (found, !queue.is_empty())
    }
}

/// Visits the members of a queue until `visit` finds a lane. That member goes to the end; those before it keep their
/// positions. If there is none, the visited members go to the end, so that the next search visits others. A member that does
/// not stay is removed.
fn first<T: Copy>(
    queue: &mut VecDeque<T>,
    visits: &mut usize,
    mut visit: impl FnMut(T, &mut usize) -> (Option<EndpointId>, bool),
) -> Option<EndpointId> {
    let mut passed = Vec::new();
    while *visits > 0
        && let Some(next) = queue.pop_front()
    {
        *visits -= 1;
        let (found, stays) = visit(next, visits);
        if found.is_none() {
            passed.extend(stays.then_some(next));
            continue;
        }
        queue.extend(stays.then_some(next));
        for next in passed.into_iter().rev() {
            queue.push_front(next);
        }
        return found;
    }
    queue.extend(passed);
    None
}
