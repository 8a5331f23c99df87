//! What is counted is what there is: nobody counts raw rows again, and a wrong counter would stay wrong.

use super::Findings;
use crate::log::Log;
use aldaba_delivery::{Ending, EndpointId};
use aldaba_store::operations::everything::{Counted, Everything};
use aldaba_store::{DeliveryState, Recorded};
use std::collections::BTreeMap;
use std::ops::AddAssign;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CounterSums {
    attempts: i64,
    successes: i64,
    delivered: i64,
    dead: i64,
}

impl From<&Counted> for CounterSums {
    fn from(row: &Counted) -> Self {
        let Counted { attempts, successes, delivered, dead, .. } = *row;
        Self { attempts, successes, delivered, dead }
    }
}

impl AddAssign for CounterSums {
    fn add_assign(&mut self, more: Self) {
        self.attempts += more.attempts;
        self.successes += more.successes;
        self.delivered += more.delivered;
        self.dead += more.dead;
    }
}

/// The minutes of an endpoint have its attempts and its ends, those that were removed too.
pub(super) fn every_attempt_and_end_is_counted(disk: &Everything, log: &Log, found: &mut Findings) {
    let mut counted: BTreeMap<EndpointId, CounterSums> = BTreeMap::new();
    for row in &disk.minutes {
        *counted.entry(row.endpoint).or_default() += row.into();
    }
    let mut made: BTreeMap<EndpointId, CounterSums> = BTreeMap::new();
    for attempt in &disk.attempts {
        let counts = made.entry(attempt.endpoint).or_default();
        counts.attempts += 1;
        counts.successes += i64::from(attempt.success);
    }
    for record in log.records.iter().filter(|record| record.result == Recorded::Applied) {
        let counts = made.entry(record.endpoint).or_default();
        match record.transition.ending() {
            Some(Ending::Delivered) => counts.delivered += 1,
            Some(Ending::Dead(_)) => counts.dead += 1,
            None => {}
        }
    }
    for endpoint in disk.endpoints.keys() {
        let [counted, made] = [&counted, &made].map(|of| of.get(endpoint).copied().unwrap_or_default());
        found.require(counted == made, "counters", || {
            format!("{endpoint} has {made:?}, and its minutes have {counted:?}")
        });
    }
}

/// An hour that is summed up has what its minutes have.
pub(super) fn hours_are_their_minutes(disk: &Everything, found: &mut Findings) {
    let mut hours: BTreeMap<(EndpointId, i64), [CounterSums; 2]> = BTreeMap::new();
    for row in &disk.minutes {
        hours.entry((row.endpoint, row.span.div_euclid(60))).or_default()[0] += row.into();
    }
    for row in &disk.hours {
        hours.entry((row.endpoint, row.span)).or_default()[1] += row.into();
    }
    for ((endpoint, hour), [minutes, summed]) in hours {
        let holds = minutes == summed || hour > disk.hours_summed.0;
        found.require(holds, "counters", || {
            format!("hour {hour} of {endpoint} is summed up as {summed:?}, and its minutes are {minutes:?}")
        });
    }
}

pub(super) fn what_waits_is_counted(disk: &Everything, found: &mut Findings) {
    let waits = |state| matches!(state, DeliveryState::Waiting { .. });
    let waiting = disk.deliveries.iter().filter(|delivery| waits(delivery.state)).count();
    found.require(disk.waiting == waiting as u64, "counters", || {
        format!("{waiting} deliveries wait, and {} are counted", disk.waiting)
    });
}

/// Each day has as many messages counted for a quota as were accepted. Counts of former days may be removed; those of the newest
/// day are there.
pub(super) fn quotas_have_what_was_accepted(disk: &Everything, log: &Log, found: &mut Findings) {
    let mut accepted: BTreeMap<(i64, [u8; 20]), i64> = BTreeMap::new();
    for key in log.accepts.iter().flat_map(|accept| &accept.counted) {
        *accepted.entry(*key).or_default() += 1;
    }
    let newest = accepted.keys().map(|(day, _)| *day).max();
    for (key, accepted) in &accepted {
        let counted = disk.messages_of_day.get(key).copied();
        let fits = counted.map_or(Some(key.0) != newest, |counted| counted == *accepted);
        found.require(fits, "quotas", || {
            format!("{accepted} messages of day {}, and {counted:?} are counted", key.0)
        });
    }
}
