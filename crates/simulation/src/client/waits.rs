//! What waits is looked at now and then: no clock may have put it off.

use super::Client;
use crate::receiver::Mood;
use crate::scenario::door_number;
use aldaba_delivery::{CLOCK_TOLERANCE, Policy};
use aldaba_store::DeliveryState;
use std::time::Duration;

/// The engine's clock must have run steadily for so long before what waits is looked at: by then it has corrected what
/// another clock has stored, and whatever was sent manually meanwhile is recorded.
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
        for (delivery, endpoint) in self.world.disk.lock().waiting() {
            let DeliveryState::Waiting { due_at } = delivery.state else { continue };
            let tried = policies.builtin(&endpoint.config.policy).filter(|_| delivery.attempts > 0);
            let longest = tried.map(|policy| self.longest_delay(&endpoint.config.url, policy));
            if due_at > now + longest.unwrap_or_default() + CLOCK_TOLERANCE {
                faults.push(format!("{delivery:?} waits for {:?} at {now:?}", due_at.since(now)));
            }
        }
        self.world.notes.lock().due_faults.extend(faults);
    }

    fn longest_delay(&self, url: &str, policy: &Policy) -> Duration {
        let asks = door_number(url).is_some_and(|door| self.asks_for_time(door));
        let asked = if asks { policy.retry_after.longest } else { Duration::ZERO };
        policy.longest_delay().max(asked)
    }

    /// Whether a receiver says at some time how long it wants to be left alone.
    fn asks_for_time(&self, door: usize) -> bool {
        let scenario = &self.world.scenario;
        let door = &scenario.doors[door];
        let mut moods = door.moods.iter().chain(&scenario.hosts[door.host]).map(|spell| spell.mood);
        moods.any(|mood| matches!(mood, Mood::TooMany(_) | Mood::Unavailable(_)))
    }
}
