//! What goes wrong with the store.

use crate::entropy::Dice;
use crate::sabotage::Sabotage;
use aldaba_delivery::Timestamp;
use std::time::Duration;

/// From a moment up to, and without, another.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub from: Timestamp,
    pub to: Timestamp,
}

/// Shares are in percent, and count only within `active`.
#[derive(Clone, Debug)]
pub struct Faults {
    pub active: Span,
    /// Commits that take up to 5 s.
    pub slow_commits: u64,
    /// Events and commands that are refused at once.
    pub busy: u64,
    /// Reads that are late or old.
    pub slow_reads: u64,
    /// Reads that end as too slow.
    pub failing_reads: u64,
    /// Reads of background tasks that panic, as by a bug.
    pub panicking_reads: u64,
    /// Writes of background tasks that panic.
    pub panicking_writes: u64,
    /// When the disk has no room.
    pub full: Vec<Span>,
    pub crash: Option<CrashPoint>,
    pub sabotage: Option<Sabotage>,
}

/// The process dies at one of its commits.
#[derive(Clone, Copy, Debug)]
pub struct CrashPoint {
    /// Counted within one life.
    pub commit: u64,
    pub stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing of the batch is on disk.
    BeforeCommit,
    /// All of it is, and nobody has heard.
    BeforeDone,
    /// Some have heard.
    AmongDones,
}

/// How a read goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadPlan {
    /// Until the snapshot is taken.
    pub(super) before: Duration,
    /// From the snapshot to the answer.
    pub(super) after: Duration,
    pub(super) fails: bool,
}

impl Span {
    pub fn contains(&self, at: Timestamp) -> bool {
        self.from <= at && at < self.to
    }
}

impl Faults {
    /// A store that does what it is asked to, at once.
    pub fn none() -> Self {
        Self {
            active: Span { from: Timestamp::MAX, to: Timestamp::MAX },
            slow_commits: 0,
            busy: 0,
            slow_reads: 0,
            failing_reads: 0,
            panicking_reads: 0,
            panicking_writes: 0,
            full: Vec::new(),
            crash: None,
            sabotage: None,
        }
    }

    pub(super) fn is_full(&self, now: Timestamp) -> bool {
        self.full.iter().any(|span| span.contains(now))
    }

    pub(super) fn is_busy(&self, now: Timestamp, dice: &mut Dice) -> bool {
        self.active.contains(now) && dice.percent(self.busy)
    }

    pub(super) fn commit_time(&self, now: Timestamp, dice: &mut Dice) -> Duration {
        if self.active.contains(now) && dice.percent(self.slow_commits) {
            dice.millis(100, 5000)
        } else {
            dice.millis(0, 12)
        }
    }

    /// How many microseconds pass between two looks at the clock by work that ends by it. Mostly it has all the time it needs.
    pub(super) fn pace(&self, now: Timestamp, dice: &mut Dice) -> u64 {
        if self.active.contains(now) && dice.percent(20) { dice.between(300, 3000) } else { 0 }
    }

    pub(super) fn read(&self, now: Timestamp, dice: &mut Dice) -> ReadPlan {
        let active = self.active.contains(now);
        if active && dice.percent(self.failing_reads) {
            return ReadPlan { before: Duration::ZERO, after: dice.millis(0, 1000), fails: true };
        }
        let slow = active && dice.percent(self.slow_reads);
        let most = if slow { 2000 } else { 3 };
        let [before, after] = [dice.millis(0, most), dice.millis(0, most)];
        // Most reads take their snapshot at once.
        let before = if dice.percent(70) { Duration::ZERO } else { before };
        ReadPlan { before, after, fails: false }
    }

    pub(super) fn panics_in_read(&self, now: Timestamp, dice: &mut Dice) -> bool {
        self.active.contains(now) && dice.percent(self.panicking_reads)
    }

    pub(super) fn panics_in_write(&self, now: Timestamp, dice: &mut Dice) -> bool {
        self.active.contains(now) && self.panicking_writes > 0 && dice.percent(self.panicking_writes)
    }

    pub(super) fn crash_at(&self, commit: u64) -> Option<Stage> {
        self.crash.filter(|point| point.commit == commit).map(|point| point.stage)
    }
}
