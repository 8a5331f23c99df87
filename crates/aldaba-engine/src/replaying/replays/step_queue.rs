//! The order of replay steps: applications are served round robin, however many replays each has.

use aldaba_delivery::AppId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::{Semaphore, SemaphorePermit};

pub(super) struct StepQueue {
    all: Semaphore,
    queues: Mutex<HashMap<AppId, Weak<Semaphore>>>,
}

/// The queue of one application. Only its first replay waits for the other applications.
#[derive(Clone)]
pub(super) struct ApplicationQueue(Arc<Semaphore>);

pub(super) struct StepPermit<'a> {
    application_permit: SemaphorePermit<'a>,
    _overall_permit: SemaphorePermit<'a>,
}

impl StepQueue {
    pub(super) fn new(at_once: usize) -> Self {
        Self { all: Semaphore::new(at_once), queues: Mutex::default() }
    }

    pub(super) fn queue(&self, app: AppId) -> ApplicationQueue {
        let mut queues = self.queues.lock();
        if let Some(queue) = queues.get(&app).and_then(Weak::upgrade) {
            return ApplicationQueue(queue);
        }
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::new(Semaphore::new(1));
        queues.insert(app, Arc::downgrade(&queue));
        ApplicationQueue(queue)
    }

    /// Waits for the next step. `None`: the engine has stopped.
    pub(super) async fn next<'a>(&'a self, queue: &'a ApplicationQueue) -> Option<StepPermit<'a>> {
        let application_permit = queue.0.acquire().await.ok()?;
        let _overall_permit = self.all.acquire().await.ok()?;
        Some(StepPermit { application_permit, _overall_permit })
    }
}

impl<'a> StepPermit<'a> {
    /// Releases the overall permit, and keeps that of the application.
    pub(super) fn application_permit(self) -> SemaphorePermit<'a> {
        self.application_permit
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
        let step_queue = Arc::new(StepQueue::new(1));
        let (sender, mut steps) = mpsc::unbounded_channel();
        let begin = |number: u8| {
            let (step_queue, queue, sender) =
                (step_queue.clone(), step_queue.queue(app(number)), sender.clone());
            tokio::spawn(async move {
                for _ in 0..20 {
                    let permit = step_queue.next(&queue).await;
                    let _ = sender.send(number);
                    tokio::task::yield_now().await;
                    drop(permit);
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
        let step_queue = StepQueue::new(1);
        let (first, same) = (step_queue.queue(app(1)), step_queue.queue(app(1)));
        assert!(Arc::ptr_eq(&first.0, &same.0));
        drop((first, same));
        let _other = step_queue.queue(app(2));
        assert_eq!(step_queue.queues.lock().len(), 1);
    }
}
