//! What is kept about the clock, and how it changes. Pure: no clock is read here.

use crate::clock::MAX_TRUSTED_STEP;
use aldaba_delivery::Timestamp;
use std::time::Duration;

/// What is known of the clock, as it is kept on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockRecord {
    /// The newest moment that a trusted clock has shown.
    pub trusted_at: Timestamp,
    /// How long the server has run since then.
    pub ran: Duration,
    /// The newest moment that the clock has shown, trusted or not.
    pub shown: Timestamp,
    /// How long a clock that is not trusted has run steadily. `None`: it is trusted.
    pub steady: Option<Duration>,
    /// How far a trusted clock is ahead of the time that is proven to have passed, in nanoseconds; negative: behind. What it
    /// has moved in steps, and while the server was off, is not proven. Each hour run proves two hours of it.
    pub unproven_nanos: i64,
}

/// Twice the time run: a server that is on for 8 hours a day, and off for 16, stays trusted.
const PROVEN_PER_HOUR: i64 = 2;
/// How far a trusted clock may be behind the time that is proven to have passed. What is written on such a clock looks older
/// than it is once the clock is right, and older still on one that is ahead: a day behind and a day ahead would be two days.
const MAX_TRUSTED_BEHIND: Duration = Duration::from_secs(3600);
/// A step that is smaller is everyday correction of a clock.
const SMALLEST_STEP: Duration = Duration::from_secs(1);

/// What changed about the trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It leapt.
    Distrusted,
    /// It is where it was expected.
    Mended,
    /// It has run for long enough.
    Steady,
    ByOperator,
}

impl ClockRecord {
    /// Of a clock that is trusted and shows this moment.
    pub const fn trusted(now: Timestamp) -> Self {
        Self { trusted_at: now, ran: Duration::ZERO, shown: now, steady: None, unproven_nanos: 0 }
    }

    /// The same after a step from where the clock was expected. `None`: it is not trusted, because the step or all of them
    /// together are more than a day ahead, or leave the clock more than an hour behind.
    fn trusted_after_step(self, now: Timestamp, expected: Timestamp) -> Option<Self> {
        let step = now.millis().saturating_sub(expected.millis()).saturating_mul(1_000_000);
        let step = if step.saturating_abs() < nanos(SMALLEST_STEP) { 0 } else { step };
        let unproven_nanos = self.unproven_nanos.saturating_add(step);
        let is_trusted = step.saturating_abs() <= nanos(MAX_TRUSTED_STEP)
            && (-nanos(MAX_TRUSTED_BEHIND)..=nanos(MAX_TRUSTED_STEP)).contains(&unproven_nanos);
        is_trusted.then_some(Self { unproven_nanos, ..Self::trusted(now) })
    }

    /// What is left of it after a time run, which may be less than a millisecond.
    fn prove(unproven_nanos: i64, ran: Duration) -> i64 {
        let proven = nanos(ran).saturating_mul(PROVEN_PER_HOUR).min(unproven_nanos.saturating_abs());
        unproven_nanos - proven * unproven_nanos.signum()
    }

    /// Whether a server that starts now trusts its clock.
    pub fn would_trust(self, now: Timestamp) -> bool {
        self.at_start(now).0.is_trusted()
    }

    pub fn is_trusted(&self) -> bool {
        self.steady.is_none()
    }

    /// What the clock should show by now, or a little more: the time in which the server was off is not in it.
    pub fn expected(&self) -> Timestamp {
        self.trusted_at + self.ran
    }

    /// The time to go by.
    pub(super) fn now(&self) -> Timestamp {
        if self.is_trusted() { self.shown } else { self.shown.max(self.expected()) }
    }

    /// After a time in which the server was off.
    pub(super) fn at_start(self, now: Timestamp) -> (Self, Option<Change>) {
        if let Some(trusted) = self.trusted_after_step(now, self.expected()) {
            return (trusted, (!self.is_trusted()).then_some(Change::Mended));
        }
        match self.steady {
            None => (Self { shown: now, steady: Some(Duration::ZERO), ..self }, Some(Change::Distrusted)),
            // The same clock goes on: so does its time.
            Some(steady) if is_near(now, self.shown) => {
                (Self { shown: now, steady: Some(steady), ..self }, None)
            }
            Some(_) => (Self { shown: now, steady: Some(Duration::ZERO), ..self }, None),
        }
    }

    /// After so much time on the monotonic clock, in one process.
    pub(super) fn after(
        self,
        passed: Duration,
        now: Timestamp,
        trust_after: Duration,
    ) -> (Self, Option<Change>) {
        let leapt = !is_near(now, self.shown + passed);
        let unproven_nanos = Self::prove(self.unproven_nanos, passed);
        let moved = Self { ran: self.ran + passed, shown: now, unproven_nanos, ..self };
        let expected = if self.is_trusted() { self.shown + passed } else { moved.expected() };
        if let Some(trusted) = moved.trusted_after_step(now, expected) {
            return (trusted, (!self.is_trusted()).then_some(Change::Mended));
        }
        match self.steady {
            None => (Self { steady: Some(Duration::ZERO), ..moved }, Some(Change::Distrusted)),
            Some(_) if leapt => (Self { steady: Some(Duration::ZERO), ..moved }, Some(Change::Distrusted)),
            Some(steady) if steady + passed >= trust_after => (Self::trusted(now), Some(Change::Steady)),
            Some(steady) => (Self { steady: Some(steady + passed), ..moved }, None),
        }
    }

    /// As it is stored.
    pub fn to_bytes(self) -> Vec<u8> {
        let Self { trusted_at, ran, shown, steady, unproven_nanos: unproven } = self;
        let steady = steady.map_or(-1, millis);
        format!("1 {} {} {} {steady} {unproven}", trusted_at.millis(), millis(ran), shown.millis())
            .into_bytes()
    }

    /// `None`: it is none, or one of another version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut parts = text.split(' ');
        if parts.next() != Some("1") {
            return None;
        }
        let mut number = || parts.next()?.parse::<i64>().ok();
        let (trusted_at, ran, shown, steady) = (number()?, number()?, number()?, number()?);
        Some(Self {
            trusted_at: Timestamp::from_millis(trusted_at),
            ran: Duration::from_millis(ran.try_into().ok()?),
            shown: Timestamp::from_millis(shown),
            steady: u64::try_from(steady).ok().map(Duration::from_millis),
            // Former versions did not write it.
            unproven_nanos: number().unwrap_or(0),
        })
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

fn is_near(one: Timestamp, other: Timestamp) -> bool {
    one.since(other).max(other.since(one)) <= MAX_TRUSTED_STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const DAY: Duration = Duration::from_secs(24 * 3600);
    const MINUTE: Duration = Duration::from_secs(60);

    fn noon() -> Timestamp {
        Timestamp::from_millis(1_780_000_000_000)
    }

    #[test]
    fn a_start_within_a_day_ahead_or_an_hour_behind_is_trusted_and_one_beyond_it_is_not() {
        let record = ClockRecord::trusted(noon());
        for near in [noon() + DAY, noon() + HOUR, noon().before(HOUR), noon()] {
            let (after, change) = record.at_start(near);
            assert_eq!((after.trusted_at, after.is_trusted(), change), (near, true, None));
        }
        for far in [noon() + 25 * HOUR, noon().before(2 * HOUR), noon().before(25 * HOUR), noon() + 400 * DAY]
        {
            let (after, change) = record.at_start(far);
            assert_eq!((after.trusted_at, change), (noon(), Some(Change::Distrusted)));
            assert!(!after.is_trusted());
        }
    }

    #[test]
    fn a_wrong_clock_does_not_move_the_reference_however_often_it_starts() {
        let (mut record, _) = ClockRecord::trusted(noon()).at_start(noon() + 400 * DAY);
        for hour in 1..20 {
            record = record.after(HOUR, noon() + 400 * DAY + hour * HOUR, DAY).0;
            record = record.at_start(noon() + 400 * DAY + hour * HOUR).0;
        }
        assert_eq!((record.trusted_at, record.steady), (noon(), Some(19 * HOUR)), "the time run adds up");
        let (mended, change) = record.at_start(noon() + 20 * HOUR);
        assert_eq!(
            (mended.trusted_at, mended.steady, change),
            (noon() + 20 * HOUR, None, Some(Change::Mended))
        );
    }

    #[test]
    fn steps_that_are_trusted_one_by_one_do_not_add_up_to_more_than_a_day() {
        let (mut record, mut shown) = (ClockRecord::trusted(noon()), noon());
        for (start, trusted) in [(23, true), (46, false), (69, false)] {
            shown = noon() + start * HOUR;
            (record, _) = record.at_start(shown);
            assert_eq!(record.is_trusted(), trusted, "a start at {start} h");
            shown = shown + MINUTE;
            (record, _) = record.after(MINUTE, shown, DAY);
            assert_eq!(record.is_trusted(), trusted, "a minute later");
        }
        assert!(record.trusted_at < noon() + DAY, "the reference stays within a day");
        let (mended, change) = record.at_start(noon() + HOUR);
        assert_eq!(
            (mended.is_trusted(), change),
            (true, Some(Change::Mended)),
            "a step back takes one ahead back"
        );
        // The same while the server runs.
        let (stepped, change) = ClockRecord::trusted(noon()).after(MINUTE, noon() + 23 * HOUR, DAY);
        assert_eq!(change, None);
        let (stepped, change) = stepped.after(MINUTE, noon() + 46 * HOUR, DAY);
        assert_eq!(change, Some(Change::Distrusted));
        assert_eq!(stepped.after(MINUTE, noon() + 23 * HOUR + 2 * MINUTE, DAY).1, Some(Change::Mended));
        assert!(shown > noon());
        let proven = |passed| ClockRecord::prove(nanos(HOUR), passed);
        assert_eq!(proven(Duration::from_micros(10)), nanos(HOUR) - 20_000);
        assert_eq!((proven(HOUR), ClockRecord::prove(-nanos(HOUR), HOUR)), (0, 0));
    }

    #[test]
    fn a_clock_that_was_a_day_behind_and_is_a_day_ahead_is_not_trusted() {
        let (record, change) = ClockRecord::trusted(noon()).at_start(noon().before(DAY));
        assert_eq!(change, Some(Change::Distrusted), "what is written then would look two days older");
        let (record, change) = record.at_start(noon());
        assert_eq!(change, Some(Change::Mended));
        assert!(record.at_start(noon() + DAY).0.is_trusted());
        // One that was ahead and is right again is no clock that is behind.
        let (ahead, _) = ClockRecord::trusted(noon()).at_start(noon() + 20 * HOUR);
        assert!(ahead.at_start(noon()).0.is_trusted());
    }

    #[test]
    fn a_server_that_is_on_for_8_hours_a_day_stays_trusted() {
        let (mut record, mut now) = (ClockRecord::trusted(noon()), noon());
        for day in 0..400 {
            for _ in 0..8 * 60 {
                now = now + MINUTE;
                record = record.after(MINUTE, now, DAY).0;
            }
            // Often.
            for _ in 0..1000 {
                record = record.after(Duration::from_micros(10), now, DAY).0;
            }
            now = now + 16 * HOUR;
            record = record.at_start(now).0;
            assert!(record.is_trusted(), "day {day}");
        }
    }

    #[test]
    fn a_clock_that_is_mended_while_it_runs_is_trusted_at_once() {
        let (record, _) = ClockRecord::trusted(noon()).at_start(noon() + 400 * DAY);
        let (record, change) = record.after(MINUTE, noon() + 400 * DAY + MINUTE, DAY);
        assert_eq!(change, None);
        let (record, change) = record.after(MINUTE, noon() + 2 * MINUTE, DAY);
        assert_eq!((record, change), (ClockRecord::trusted(noon() + 2 * MINUTE), Some(Change::Mended)));
    }

    #[test]
    fn a_leap_while_it_runs_is_distrusted_and_only_steady_running_makes_it_trusted() {
        for leapt in [noon() + 25 * HOUR, noon().before(25 * HOUR)] {
            let (mut record, change) = ClockRecord::trusted(noon()).after(MINUTE, leapt, DAY);
            assert_eq!(change, Some(Change::Distrusted));
            for hour in 1..24 {
                let (next, change) = record.after(HOUR, leapt + hour * HOUR, DAY);
                assert!(change.is_none() && !next.is_trusted(), "{hour}");
                record = next;
            }
            assert_eq!(record.after(HOUR, leapt + DAY, DAY).1, Some(Change::Steady));
            // Another leap, and the time starts over.
            let (again, change) = record.after(HOUR, leapt + 500 * DAY, DAY);
            assert_eq!((again.steady, change), (Some(Duration::ZERO), Some(Change::Distrusted)));
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let distrusted = ClockRecord {
            ran: HOUR,
            shown: noon() + 400 * DAY,
            steady: Some(3 * HOUR),
            unproven_nanos: -7,
            ..ClockRecord::trusted(noon())
        };
        for record in [ClockRecord::trusted(noon()), distrusted] {
            assert_eq!(ClockRecord::from_bytes(&record.to_bytes()), Some(record));
        }
        let former =
            ClockRecord { ran: Duration::from_millis(2), ..ClockRecord::trusted(Timestamp::from_millis(1)) };
        let former = ClockRecord { shown: Timestamp::from_millis(3), ..former };
        assert_eq!(ClockRecord::from_bytes(b"1 1 2 3 -1"), Some(former), "of a former version");
        for bad in [&b""[..], b"2 1 2 3 4", b"1 1 2 3", b"1 1 -2 3 4", b"1 a 2 3 4", b"\xff"] {
            assert_eq!(ClockRecord::from_bytes(bad), None);
        }
    }
}
