//! Rules that are beyond their thresholds and do not fire yet. They are stored with the moment of the last judgement, so that a restart
//! neither delays nor hastens an alert.

use super::{Alerting, BATCH, Remembered};
use aldaba_delivery::alert::{AlertRule, AlertState};
use aldaba_delivery::{OrgId, Timestamp};
use aldaba_store::{Change, Error, PendingAlert};
use std::collections::BTreeMap;

/// What the store has of them.
pub(super) type StoredPending = BTreeMap<(OrgId, AlertRule), PendingAlert>;

impl Alerting {
    /// What was pending when the last process ended. What fires is known already.
    pub(super) async fn read_pending(&mut self) -> Result<(), Error> {
        let judged_at = self.store.setting(PendingAlert::JUDGED_SETTING).await?;
        let judged_at = judged_at.and_then(|bytes| Some(i64::from_be_bytes(bytes.try_into().ok()?)));
        let judged_at = Timestamp::from_millis(judged_at.unwrap_or(0));
        for pending in self.store.pending_alerts().await? {
            let key = (pending.org, pending.rule);
            self.memory.stored_pending.insert(key, pending);
            // Under another threshold, nobody knows since when.
            if self.threshold(pending.rule) == Some(pending.threshold.to_bits()) {
                let state = AlertState::Pending { since: pending.since, judged_at };
                self.memory.states.entry(key).or_insert(Remembered { state, id: None });
            }
        }
        Ok(())
    }

    fn threshold(&self, rule: AlertRule) -> Option<u64> {
        self.rules.limits(rule).map(|limits| limits.threshold.to_bits())
    }

    /// Writes what differs from what is stored, and while anything is pending, that it was judged now.
    pub(super) async fn write_pending(&mut self, now: Timestamp) -> Result<(), Error> {
        let pending = self.pending();
        let stored = &self.memory.stored_pending;
        let is_new = |one: &&PendingAlert| stored.get(&(one.org, one.rule)) != Some(*one);
        let mut new: Vec<_> = pending.values().filter(is_new).copied().collect();
        let mut over: Vec<_> = stored.keys().filter(|key| !pending.contains_key(*key)).copied().collect();
        let mut is_due = !(pending.is_empty() && over.is_empty());
        while is_due {
            let next_new = new.split_off(new.len().saturating_sub(BATCH));
            let next_over = over.split_off(over.len().saturating_sub(BATCH));
            let (pending, over_now) = (next_new.clone(), next_over.clone());
            self.change(Change::WritePendingAlerts { pending, over: over_now, judged_at: now }).await?;
            let stored = &mut self.memory.stored_pending;
            for key in &next_over {
                stored.remove(key);
            }
            stored.extend(next_new.into_iter().map(|one| ((one.org, one.rule), one)));
            is_due = !(new.is_empty() && over.is_empty());
        }
        Ok(())
    }

    fn pending(&self) -> StoredPending {
        let states = self.memory.states.iter();
        let pending = states.filter_map(|((org, rule), remembered)| {
            let AlertState::Pending { since, .. } = remembered.state else { return None };
            let threshold = self.rules.limits(*rule)?.threshold;
            Some(((*org, *rule), PendingAlert { org: *org, rule: *rule, threshold, since }))
        });
        pending.collect()
    }
}
