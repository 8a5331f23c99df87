use super::Deadline;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// Copies of one event, one after the other. Within a process they wait here, where a wait costs no connection; so
/// there is at most one connection for each event, and many copies of one cannot keep others from the database.
#[derive(Clone, Debug, Default)]
pub struct Turns(Arc<Mutex<HashMap<String, Line>>>);

/// Those who want the same event.
#[derive(Debug)]
struct Line {
    gate: Arc<tokio::sync::Mutex<()>>,
    people: usize,
}

/// The right to ask the database for an event. It passes to the next one when it is dropped.
#[derive(Debug)]
pub struct Turn {
    // Before the place: the line is there as long as anybody holds or awaits its gate.
    _gate: OwnedMutexGuard<()>,
    _place: Place,
}

/// A place in a line, taken or left.
#[derive(Debug)]
struct Place {
    turns: Turns,
    event_id: String,
}

impl Turns {
    /// Waits for the turn, first come, first served; `None` when the patience is over before.
    pub async fn take(&self, event_id: &str, deadline: &Deadline) -> Option<Turn> {
        let (gate, place) = self.line_up(event_id);
        let gate = tokio::time::timeout_at(deadline.at(), gate.lock_owned()).await.ok()?;
        Some(Turn { _gate: gate, _place: place })
    }

    fn line_up(&self, event_id: &str) -> (Arc<tokio::sync::Mutex<()>>, Place) {
        let mut lines = self.lines();
        let line =
            lines.entry(event_id.to_owned()).or_insert_with(|| Line { gate: Arc::default(), people: 0 });
        line.people += 1;
        (Arc::clone(&line.gate), Place { turns: self.clone(), event_id: event_id.to_owned() })
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<String, Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut lines = self.turns.lines();
        if let Some(line) = lines.get_mut(&self.event_id) {
            line.people -= 1;
            if line.people == 0 {
                lines.remove(&self.event_id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Turns;
    use crate::transactional::Deadline;
    use std::time::Duration;

    fn soon() -> Deadline {
        Deadline::after(Duration::from_millis(300))
    }

    #[tokio::test]
    async fn the_second_copy_has_its_turn_when_the_first_is_dropped() {
        let turns = Turns::default();
        let first = turns.take("evt_1", &soon()).await.unwrap();
        let second = tokio::spawn({
            let turns = turns.clone();
            async move { turns.take("evt_1", &soon()).await.is_some() }
        });
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        drop(first);
        assert!(second.await.unwrap());
    }

    #[tokio::test]
    async fn other_events_do_not_wait() {
        let turns = Turns::default();
        let _first = turns.take("evt_1", &soon()).await.unwrap();
        assert!(turns.take("evt_2", &Deadline::after(Duration::ZERO)).await.is_some());
    }

    #[tokio::test]
    async fn a_patience_ends_and_leaves_nothing_behind() {
        let turns = Turns::default();
        let first = turns.take("evt_1", &soon()).await.unwrap();
        assert!(turns.take("evt_1", &soon()).await.is_none());
        drop(first);
        assert!(turns.lines().is_empty());
    }
}
