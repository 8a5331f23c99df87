//! What is known of background tasks and threads that have panicked: how long each waits before it runs again, and
//! which of them an operator should look at.

use parking_lot::Mutex;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a task waits before it runs again after its first panic. Each further panic doubles the delay.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(60);
/// A task that has run for so long since its last restart counts as healthy. It is longer than twice the longest
/// interval of a periodic task, so that one which panics in every round is not taken for healthy between two rounds.
const HEALTHY_AFTER: Duration = Duration::from_secs(660);
/// Characters of a panic's message that are logged.
const MAX_MESSAGE_CHARS: usize = 200;

/// The restarts of named tasks. Clones share them. There is one entry for each name, and names are constants.
#[derive(Clone, Debug, Default)]
pub struct Restarts(Arc<Mutex<BTreeMap<&'static str, RestartHistory>>>);

#[derive(Clone, Copy, Debug)]
struct RestartHistory {
    delay: Duration,
    restarts: u64,
    /// When it runs again, or has run again, by the caller's monotonic clock.
    restarted_at: Duration,
}

impl RestartHistory {
    fn is_recent(&self, now: Duration) -> bool {
        now < self.restarted_at.saturating_add(HEALTHY_AFTER)
    }
}

/// A task that was restarted and has not run well for long enough since then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartedTask {
    pub name: &'static str,
    /// How often, since it last ran well.
    pub restarts: u64,
}

impl Restarts {
    /// Notes and logs a panic; returns how long the task must wait before it runs again.
    pub fn panicked(&self, name: &'static str, panic: &(dyn Any + Send), now: Duration) -> Duration {
        let mut entries = self.0.lock();
        let before = entries.get(name).filter(|entry| entry.is_recent(now));
        let (delay, restarts) = match before {
            Some(before) => ((before.delay * 2).min(MAX_DELAY), before.restarts + 1),
            None => (FIRST_DELAY, 1),
        };
        entries.insert(name, RestartHistory { delay, restarts, restarted_at: now.saturating_add(delay) });
        drop(entries);
        let message = panic_message(panic);
        tracing::error!(
            task = name,
            message,
            restarts,
            ?delay,
            "a bug: a background task panicked; it is restarted"
        );
        delay
    }

    /// The tasks that were restarted lately, by name.
    pub fn recent(&self, now: Duration) -> Vec<RestartedTask> {
        let entries = self.0.lock();
        let recent = entries.iter().filter(|(_, entry)| entry.is_recent(now));
        recent.map(|(name, entry)| RestartedTask { name, restarts: entry.restarts }).collect()
    }
}

/// The message of a panic without the values in it, which may be secrets or payloads.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    if let Some(message) = panic.downcast_ref::<&'static str>() {
        return message.chars().take(MAX_MESSAGE_CHARS).collect();
    }
    match panic.downcast_ref::<String>() {
        Some(message) => without_values(message),
        None => "(no message)".to_owned(),
    }
}

/// What `unwrap`, `assert_eq`, slicing and the like print of values follows one of these.
fn without_values(message: &str) -> String {
    let marks = [": ", ";", "\n", " of `", " slicing `"];
    let end = marks.iter().filter_map(|mark| message.find(mark)).min().unwrap_or(message.len());
    message[..end].chars().take(MAX_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PANIC: &(dyn Any + Send) = &"on purpose";

    #[test]
    fn the_delay_doubles_up_to_a_minute_and_starts_over_after_the_task_has_run_well() {
        let restarts = Restarts::default();
        let mut now = Duration::from_secs(1000);
        let mut delays = Vec::new();
        for _ in 0..9 {
            let delay = restarts.panicked("a", PANIC, now);
            delays.push(delay.as_secs());
            // As of a task that panics in each of its rounds, five minutes apart.
            now += delay + Duration::from_secs(300);
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(restarts.recent(now), [RestartedTask { name: "a", restarts: 9 }]);
        now += HEALTHY_AFTER;
        assert_eq!(restarts.recent(now), []);
        assert_eq!(restarts.panicked("a", PANIC, now), FIRST_DELAY);
        assert_eq!(restarts.recent(now), [RestartedTask { name: "a", restarts: 1 }]);
    }

    #[test]
    fn tasks_have_delays_of_their_own() {
        let (restarts, now) = (Restarts::default(), Duration::ZERO);
        restarts.panicked("a", PANIC, now);
        restarts.panicked("a", PANIC, now);
        assert_eq!(restarts.panicked("b", PANIC, now), FIRST_DELAY);
        assert_eq!(restarts.recent(now).len(), 2);
    }

    #[test]
    fn the_message_of_a_panic_holds_no_value() {
        fn message(panics: impl FnOnce() + std::panic::UnwindSafe) -> String {
            let panic = std::panic::catch_unwind(panics).expect_err("it panics");
            panic_message(&*panic)
        }
        let secret = String::from("whsec_é");
        assert_eq!(message(|| panic!("on purpose")), "on purpose");
        let failing = |secret: String| -> Result<(), String> { Err(secret) };
        let failed = failing(secret.clone());
        let unwrapped = message(move || failed.unwrap());
        assert_eq!(unwrapped, "called `Result::unwrap()` on an `Err` value");
        for panics in [
            Box::new(|| drop("whsec_é"[..String::from("whsec_").len() + 1].to_owned())) as Box<dyn FnOnce()>,
            Box::new(|| drop("whsec_é"[String::from("whsec_").len()..1].to_owned())),
            Box::new(|| assert_eq!("whsec_é", String::from("other"))),
            Box::new(|| panic!("cannot use the key: {}", String::from("whsec_é"))),
        ] {
            let shown = message(std::panic::AssertUnwindSafe(panics));
            assert!(!shown.contains("whsec_") && !shown.is_empty(), "{shown}");
        }
    }
}
