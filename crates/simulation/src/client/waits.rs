//! What waits is looked at now and then: no clock may have put it off.

use super::Client;
use crate::receiver::Mood;
use crate::scenario::door_number;
use aldaba_delivery::{CLOCK_TOLERANCE, EndpointId, Policy};
use aldaba_store::DeliveryState;
use std::collections::BTreeMap;
use std::time::Duration;

/// The engine's clock must have run steadily for so long before what waits is looked at: by then it has corrected what
/// another clock has stored, and whatever was sent by hand meanwhile is recorded.
const STEADY: Duration = Duration::from_secs(120);

impl Client {
    /// Goes on until the process dies.
    pub async fn watch_waits(self) {
        loop {
            let before = self.engine.clock().now();
            tokio::time::sleep(STEADY).await;
            if self.process.is_dead() {
                return;
            }
            let passed = self.engine.clock().now().since(before);
            if (STEADY..STEADY + Duration::from_secs(1)).contains(&passed) {
                self.look_at_waits();
            }
        }
    }

    /// What was never tried is due at once, a retry at most the longest delay of its policy away.
    fn look_at_waits(&self) {
        let now = self.engine.clock().now();
        let policies = self.world.scenario.policies();
        let mut faults = Vec::new();
        {
            let disk = self.world.disk.lock();
            let longest = |url: &str, policy: &Policy| {
                let asks = door_number(url).is_some_and(|door| self.asks_for_time(door));
                if asks {
                    policy.longest_delay().max(policy.retry_after.longest)
                } else {
                    policy.longest_delay()
                }
            };
            let longest: BTreeMap<EndpointId, Duration> = disk
                .endpoints()
                .filter_map(|row| {
                    let policy = policies.builtin(&row.config.policy)?;
                    Some((row.id, longest(&row.config.url, policy)))
                })
                .collect();
            for delivery in disk.all_deliveries() {
                let DeliveryState::Waiting { due_at } = delivery.state else { continue };
                let tried = delivery.attempts > 0;
                let longest = longest.get(&delivery.endpoint).filter(|_| tried).copied().unwrap_or_default();
                if due_at > now + longest + CLOCK_TOLERANCE {
                    faults.push(format!("{delivery:?} waits for {:?} at {now:?}", due_at.since(now)));
                }
            }
        }
        self.world.notes.lock().due_faults.extend(faults);
    }

    /// Whether a receiver says at some time how long it wants to be left alone.
    fn asks_for_time(&self, door: usize) -> bool {
        let scenario = &self.world.scenario;
        let door = &scenario.doors[door];
        let mut moods = door.moods.iter().chain(&scenario.hosts[door.host]).map(|spell| spell.mood);
        moods.any(|mood| matches!(mood, Mood::TooMany(_) | Mood::Unavailable(_)))
    }
}
