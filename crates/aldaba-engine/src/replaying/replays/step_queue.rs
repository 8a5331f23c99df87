//! Whose step is next: applications take turns, however many replays each of them has.

use aldaba_delivery::AppId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::{Semaphore, SemaphorePermit};

pub(super) struct Turns {
    all: Semaphore,
    lines: Mutex<HashMap<AppId, Weak<Semaphore>>>,
}

/// The line of one application, in which only the first waits for the others.
#[derive(Clone)]
pub(super) struct Line(Arc<Semaphore>);

pub(super) struct Turn<'a> {
    of_application: SemaphorePermit<'a>,
    _of_all: SemaphorePermit<'a>,
}

impl Turns {
    pub(super) fn new(at_once: usize) -> Self {
        Self { all: Semaphore::new(at_once), lines: Mutex::default() }
    }

    pub(super) fn line(&self, app: AppId) -> Line {
        let mut lines = self.lines.lock();
        if let Some(line) = lines.get(&app).and_then(Weak::upgrade) {
            return Line(line);
        }
        lines.retain(|_, line| line.strong_count() > 0);
        let line = Arc::new(Semaphore::new(1));
        lines.insert(app, Arc::downgrade(&line));
        Line(line)
    }

    /// Waits for it. `None`: it never comes.
    pub(super) async fn next<'a>(&'a self, line: &'a Line) -> Option<Turn<'a>> {
        let of_application = line.0.acquire().await.ok()?;
        let _of_all = self.all.acquire().await.ok()?;
        Some(Turn { of_application, _of_all })
    }
}

impl<'a> Turn<'a> {
    /// Lets other applications go on, but not yet its own.
    pub(super) fn of_application(self) -> SemaphorePermit<'a> {
        self.of_application
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    fn app(number: u8) -> AppId {
        AppId::from_bytes([number; 20])
    }

    #[tokio::test]
    async fn one_replay_of_an_application_waits_for_one_of_each_other_and_not_for_all() {
        let turns = Arc::new(Turns::new(1));
        let (sender, mut steps) = mpsc::unbounded_channel();
        let begin = |number: u8| {
            let (turns, line, sender) = (turns.clone(), turns.line(app(number)), sender.clone());
            tokio::spawn(async move {
                for _ in 0..20 {
                    let turn = turns.next(&line).await;
                    let _ = sender.send(number);
                    tokio::task::yield_now().await;
                    drop(turn);
                }
            });
        };
        (0..50).for_each(|_| begin(1));
        begin(2);
        let mut order = Vec::new();
        while order.iter().filter(|number| **number == 2).count() < 20 {
            order.push(steps.recv().await.unwrap());
        }
        assert!(order.len() < 100, "{} steps until the second application had its 20", order.len());
    }

    #[test]
    fn nothing_is_remembered_of_applications_that_have_none() {
        let turns = Turns::new(1);
        let (first, same) = (turns.line(app(1)), turns.line(app(1)));
        assert!(Arc::ptr_eq(&first.0, &same.0));
        drop((first, same));
        let _other = turns.line(app(2));
        assert_eq!(turns.lines.lock().len(), 1);
    }
}
