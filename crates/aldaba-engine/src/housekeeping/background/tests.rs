use super::*;
use crate::RuntimeClock;
use aldaba_delivery::Timestamp;
use std::sync::atomic::{AtomicU32, Ordering};

fn background() -> Background {
    Background::new(Arc::new(RuntimeClock::new(Timestamp::from_millis(0))))
}

/// Panics in its first runs, and keeps what it has counted.
struct Flaky {
    runs: Arc<AtomicU32>,
    panics: u32,
}

impl Task for Flaky {
    const NAME: &'static str = "flaky";

    async fn run(&mut self) -> StoreClosed {
        tokio::task::yield_now().await;
        assert!(self.runs.fetch_add(1, Ordering::Relaxed) >= self.panics, "on purpose");
        StoreClosed
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_runs_again_after_growing_pauses_and_ends_with_the_store() {
    let (background, runs) = (background(), Arc::new(AtomicU32::new(0)));
    background.start(Flaky { runs: runs.clone(), panics: 3 });
    // 1, 2 and 4 s.
    for (seconds, expected) in [(0, 1), (2, 2), (2, 3), (2, 3), (2, 4), (100, 4)] {
        tokio::time::sleep(Duration::from_millis(seconds * 1000 + 1)).await;
        assert_eq!(runs.load(Ordering::Relaxed), expected);
    }
    assert_eq!(background.restarted(), [RestartedTask { name: "flaky", restarts: 3 }]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_to_run_again_is_ended_with_the_engine() {
    let (background, runs) = (background(), Arc::new(AtomicU32::new(0)));
    background.start(Flaky { runs: runs.clone(), panics: u32::MAX });
    tokio::time::sleep(Duration::from_millis(500)).await;
    background.stop();
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_supervised_is_repeated_until_it_does_not_panic() {
    let (background, runs) = (background(), AtomicU32::new(0));
    let run = || {
        // Before there is a future, too.
        let count = runs.fetch_add(1, Ordering::Relaxed);
        assert!(count > 0, "on purpose");
        async move {
            tokio::task::yield_now().await;
            assert!(count > 1, "on purpose");
            count
        }
    };
    assert_eq!(background.supervised("some-work", run).await, 2);
    assert_eq!(background.restarted(), [RestartedTask { name: "some-work", restarts: 2 }]);
}
