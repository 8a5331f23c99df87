//! What is kept about the clock, and how it changes. Pure: no clock is read here.

use crate::clock::MAX_TRUSTED_STEP;
use aldaba_delivery::Timestamp;
use std::time::Duration;

/// What is known of the clock, as it is kept on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockRecord {
    /// A moment that a trusted clock has shown. Since then it has run with the monotonic clock, but for less than a second.
    pub trusted_at: Timestamp,
    /// How long the server has run since then.
    pub ran: Duration,
    /// The newest moment that the clock has shown, trusted or not.
    pub shown: Timestamp,
    /// How long a clock that is not trusted has run steadily. `None`: it is trusted.
    pub steady: Option<Duration>,
    /// How far a trusted clock was ahead of the time that is proven to have passed, in nanoseconds, at `trusted_at`; negative:
    /// behind. What it has moved in steps, and while the server was off, is not proven. Each hour run proves two hours of it.
    pub unproven_nanos: i64,
    /// How far a trusted clock has stepped ahead, in nanoseconds. It may step back as far, though the time is proven meanwhile:
    /// then the step ahead was wrong.
    pub ahead_nanos: i64,
    /// How long the server has run since the last such step.
    pub ran_since_ahead: Duration,
}

/// Twice the time run: a server that is on for 8 hours a day, and off for 16, stays trusted.
const PROVEN_PER_HOUR: i64 = 2;
/// How far a trusted clock may be behind the time that is proven to have passed. What is written on such a clock looks older
/// than it is once the clock is right, and older still on one that is ahead: a day behind and a day ahead would be two days.
const MAX_TRUSTED_BEHIND: Duration = Duration::from_secs(3600);
/// A clock that is less than this off is left alone. Beyond it counts as a step, however it came about.
const SMALLEST_STEP: Duration = Duration::from_secs(1);
/// A clock that gains a step in less time runs too fast, or is set ahead again and again: that time proves nothing.
const SHORTEST_PROOF: Duration = Duration::from_secs(60);
/// A step ahead that may be taken back.
const SMALLEST_STEP_AHEAD: Duration = Duration::from_secs(60);
/// A step ahead that was not taken back in so much time of running was right.
const TAKEN_BACK_WITHIN: Duration = Duration::from_secs(24 * 3600);

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
        Self {
            trusted_at: now,
            ran: Duration::ZERO,
            shown: now,
            steady: None,
            unproven_nanos: 0,
            ahead_nanos: 0,
            ran_since_ahead: Duration::ZERO,
        }
    }

    /// How far the clock is from where it is expected, in nanoseconds.
    fn deviation(&self) -> i64 {
        let shown = self.shown.millis().saturating_sub(self.trusted_at.millis()).saturating_mul(1_000_000);
        shown.saturating_sub(nanos(self.ran))
    }

    /// The same after a step to the moment that it shows. `None`: it is not trusted, because the step or all of them together
    /// are more than a day ahead, or leave the clock more than an hour behind.
    fn trusted_after_step(self) -> Option<Self> {
        let step = self.deviation();
        let is_hasty = step > 0 && self.ran < SHORTEST_PROOF;
        let unproven = Self::prove(self.unproven_nanos, if is_hasty { Duration::ZERO } else { self.ran });
        let taken_back = step.saturating_neg().clamp(0, self.ahead_nanos);
        // What is taken back may be proven by now: then the clock is not behind.
        let unproven = (unproven - taken_back).max(unproven.min(0));
        let unproven_nanos = unproven.saturating_add(step.saturating_add(taken_back));
        let is_trusted = step <= nanos(MAX_TRUSTED_STEP)
            && (-nanos(MAX_TRUSTED_BEHIND)..=nanos(MAX_TRUSTED_STEP)).contains(&unproven_nanos);
        let (ahead_nanos, ran_since_ahead) = match step >= nanos(SMALLEST_STEP_AHEAD) {
            true => (self.ahead_nanos.saturating_add(step).min(nanos(MAX_TRUSTED_STEP)), Duration::ZERO),
            false => (self.ahead_nanos - taken_back, self.ran_since_ahead),
        };
        is_trusted.then_some(Self {
            unproven_nanos,
            ahead_nanos,
            ran_since_ahead,
            ..Self::trusted(self.shown)
        })
    }

    /// What is left of it after a time run, which may be less than a millisecond.
    fn prove(unproven_nanos: i64, ran: Duration) -> i64 {
        let proven = nanos(ran).saturating_mul(PROVEN_PER_HOUR).min(unproven_nanos.saturating_abs());
        unproven_nanos - proven * unproven_nanos.signum()
    }

    /// The same after a time run.
    fn run(self, passed: Duration, now: Timestamp) -> Self {
        let ran_since_ahead = self.ran_since_ahead.saturating_add(passed);
        let may_be_taken_back = self.ahead_nanos > 0 && ran_since_ahead < TAKEN_BACK_WITHIN;
        let (ahead_nanos, ran_since_ahead) =
            if may_be_taken_back { (self.ahead_nanos, ran_since_ahead) } else { (0, Duration::ZERO) };
        Self { ran: self.ran.saturating_add(passed), shown: now, ahead_nanos, ran_since_ahead, ..self }
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
        if let Some(trusted) = (Self { shown: now, ..self }).trusted_after_step() {
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
        let moved = self.run(passed, now);
        if self.is_trusted() && moved.deviation().saturating_abs() < nanos(SMALLEST_STEP) {
            return (moved, None);
        }
        if let Some(trusted) = moved.trusted_after_step() {
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
        let Self {
            trusted_at,
            ran,
            shown,
            steady,
            unproven_nanos: unproven,
            ahead_nanos: ahead,
            ran_since_ahead,
        } = self;
        let (trusted_at, shown) = (trusted_at.millis(), shown.millis());
        let (steady, ran, ran_since_ahead) =
            (steady.map_or(-1, millis), millis(ran), millis(ran_since_ahead));
        format!("1 {trusted_at} {ran} {shown} {steady} {unproven} {ahead} {ran_since_ahead}").into_bytes()
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
            // Former versions did not write these.
            unproven_nanos: number().unwrap_or(0),
            ahead_nanos: number().unwrap_or(0).max(0),
            ran_since_ahead: Duration::from_millis(number().unwrap_or(0).try_into().unwrap_or(0)),
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
    fn a_step_ahead_can_be_taken_back_for_a_day_though_the_time_run_has_proven_it() {
        for (hours_ahead, hours_run) in [(2, 0), (20, 1), (20, 10), (24, 23)] {
            let wrong = noon() + hours_ahead * HOUR;
            for in_one_process in [true, false] {
                let (mut record, _) = ClockRecord::trusted(noon()).at_start(wrong);
                for minutes in 1..=hours_run * 60 {
                    record = record.after(MINUTE, wrong + minutes * MINUTE, DAY).0;
                }
                let right = noon() + hours_run * HOUR;
                let (record, change) = match in_one_process {
                    true => record.after(MINUTE, right + MINUTE, DAY),
                    false => ClockRecord::from_bytes(&record.to_bytes()).unwrap().at_start(right),
                };
                assert!(record.is_trusted() && change.is_none(), "{hours_ahead} h, after {hours_run} h");
                // The same step is not taken back twice.
                assert!(!record.at_start(right.before(2 * HOUR)).0.is_trusted());
            }
        }
        // After a day the clock is taken to be right.
        let (mut record, _) = ClockRecord::trusted(noon()).at_start(noon() + 20 * HOUR);
        for hour in 21..=44 {
            record = record.after(HOUR, noon() + hour * HOUR, DAY).0;
        }
        assert!(!record.after(HOUR, noon() + 25 * HOUR, DAY).0.is_trusted());
    }

    #[test]
    fn a_clock_that_runs_fast_is_distrusted_before_it_is_much_more_than_a_day_ahead() {
        for (passed, moved) in [(10, 900), (500, 1000), (1, 2), (30_000, 31_000)]
            .map(|(passed, moved)| (Duration::from_millis(passed), Duration::from_millis(moved)))
        {
            let (mut record, mut right, mut shown) = (ClockRecord::trusted(noon()), noon(), noon());
            while record.is_trusted() {
                (right, shown) = (right + passed, shown + moved);
                assert!(shown.since(right) < DAY + MINUTE, "{passed:?}");
                record = record.after(passed, shown, DAY).0;
            }
            assert!(shown.since(right) > 23 * HOUR, "{passed:?}");
        }
        // The quartz of a cheap machine: 100 s in a million.
        let (mut record, mut shown) = (ClockRecord::trusted(noon()), noon());
        for _ in 0..400 * 24 {
            shown = shown + HOUR + Duration::from_millis(360);
            record = record.after(HOUR, shown, DAY).0;
            assert!(record.is_trusted());
        }
    }

    #[test]
    fn the_frequency_of_looks_does_not_move_a_trusted_clock() {
        let (mut record, mut passed) = (ClockRecord::trusted(noon()), Duration::ZERO);
        for _ in 0..100_000 {
            passed += Duration::from_micros(300);
            record = record.after(Duration::from_micros(300), noon() + passed, DAY).0;
        }
        assert_eq!((record.trusted_at, record.unproven_nanos, record.ran), (noon(), 0, passed));
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
            ahead_nanos: 11,
            ran_since_ahead: MINUTE,
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
