//! How fast a line moves.

use std::time::Duration;

/// How much one batch changes what is known: a fourth. A single slow commit is forgotten within a few.
const SMOOTHING: u32 = 4;

/// What is known of one line.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// How long the writer takes for one operation of the line.
    each: Option<Duration>,
    /// The batch that is being written: when that began, and for how many operations of the line it
    /// had room.
    writing: Option<(Duration, usize)>,
}

impl Pace {
    /// The writer begins a batch that has room for so many operations of this line.
    pub(super) fn begin(&mut self, now: Duration, operations: usize) {
        self.writing = Some((now, operations));
    }

    /// It is done with it.
    pub(super) fn end(&mut self, now: Duration) {
        let Some((begun, operations)) = self.writing.take() else { return };
        let each = now.saturating_sub(begun) / count(operations).max(1);
        self.each = Some(match self.each {
            Some(before) => before - before / SMOOTHING + each / SMOOTHING,
            None => each,
        });
    }

    /// How long one more would wait with so many operations before it, as far as one can tell.
    pub(super) fn wait(&self, ahead: usize) -> Duration {
        self.each.map_or(Duration::ZERO, |each| each.saturating_mul(count(ahead)))
    }
}

fn count(operations: usize) -> u32 {
    u32::try_from(operations).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Batches of 200, that take so many milliseconds each.
    fn write(pace: &mut Pace, batches: &[u32]) {
        for took in batches {
            pace.begin(Duration::ZERO, 200);
            pace.end(*took * MS);
        }
    }

    #[test]
    fn the_wait_is_what_the_batches_took() {
        let mut pace = Pace::default();
        assert_eq!(pace.wait(1000), Duration::ZERO, "nothing is known yet");
        write(&mut pace, &[20; 5]);
        assert_eq!(pace.wait(1000), 100 * MS);
        assert_eq!(pace.wait(0), Duration::ZERO);
    }

    #[test]
    fn time_without_work_does_not_count() {
        let mut pace = Pace::default();
        write(&mut pace, &[20; 5]);
        pace.end(1_000_000 * MS);
        assert_eq!(pace.wait(1000), 100 * MS);
    }

    #[test]
    fn one_slow_batch_counts_for_a_while() {
        let mut pace = Pace::default();
        write(&mut pace, &[20, 20, 5000]);
        assert!(pace.wait(1000) > 5000 * MS);
        write(&mut pace, &[20; 20]);
        assert!(pace.wait(1000) < 150 * MS);
    }

    #[test]
    fn a_clock_that_stands_still_makes_nobody_wait() {
        let mut pace = Pace::default();
        for _ in 0..3 {
            pace.begin(Duration::ZERO, 0);
            pace.end(Duration::ZERO);
        }
        assert_eq!(pace.wait(usize::MAX), Duration::ZERO);
    }
}
