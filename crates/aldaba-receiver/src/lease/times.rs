use std::ops::RangeInclusive;
use std::time::Duration;
use thiserror::Error;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a lease and a mark live, and how long their store may take to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimes {
    /// How long an event stays an owner's after the owner was last heard of, from 100 ms to 1 h. A living owner
    /// renews its lease at every third of this. After a crash, copies of the event wait for the rest of it.
    pub life: Duration,
    /// How long it is remembered that an event was handled, from 1 s to ten years, and never less than `life`: at
    /// least as long as its sender may send it again.
    pub marks: Duration,
    /// How long one question to the store may take, from 10 ms to 1 min, and at most a third of `life`, so that one
    /// renewal may fail.
    pub answer: Duration,
}

impl LeaseTimes {
    /// The default of `life`: 30 seconds.
    pub const LIFE: Duration = Duration::from_secs(30);
    /// The default of `marks`: 30 days.
    pub const MARKS: Duration = Duration::from_secs(30 * 24 * 60 * 60);
    /// The default of `answer`: 2 seconds.
    pub const ANSWER: Duration = Duration::from_secs(2);

    const LIFE_BOUNDS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(60 * 60);
    const MARKS_BOUNDS: RangeInclusive<Duration> = SECOND..=Duration::from_secs(3650 * DAY.as_secs());
    const ANSWER_BOUNDS: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(60);

    pub(crate) fn check(self) -> Result<Self, LeaseOptionError> {
        within("a lease's life", self.life, &Self::LIFE_BOUNDS)?;
        within("a mark's life", self.marks, &Self::MARKS_BOUNDS)?;
        within("the time for an answer", self.answer, &Self::ANSWER_BOUNDS)?;
        if self.marks < self.life {
            return Err(LeaseOptionError::MarksTooShort(self));
        }
        if self.answer > self.life / 3 {
            return Err(LeaseOptionError::AnswerTooLong(self));
        }
        Ok(self)
    }
}

/// A lease of 30 seconds, marks of 30 days, answers within 2 seconds.
impl Default for LeaseTimes {
    fn default() -> Self {
        Self { life: Self::LIFE, marks: Self::MARKS, answer: Self::ANSWER }
    }
}

fn within(
    what: &'static str,
    given: Duration,
    bounds: &RangeInclusive<Duration>,
) -> Result<(), LeaseOptionError> {
    if bounds.contains(&given) {
        return Ok(());
    }
    let (shortest, longest) = (*bounds.start(), *bounds.end());
    Err(LeaseOptionError::OutOfBounds { what, given, shortest, longest })
}

/// How many characters a prefix of keys may have.
pub const LONGEST_PREFIX: usize = 64;

/// A prefix is part of keys that people read and type.
pub(crate) fn check_prefix(prefix: &str) -> Result<(), LeaseOptionError> {
    let typed = prefix.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}'));
    if prefix.is_empty() || prefix.len() > LONGEST_PREFIX || !typed {
        return Err(LeaseOptionError::Prefix);
    }
    Ok(())
}

/// An option of a lease ledger that cannot be.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LeaseOptionError {
    /// A time is out of its bounds.
    #[error("{what} is {given:?}: make it at least {shortest:?} and at most {longest:?}")]
    OutOfBounds {
        /// Which time.
        what: &'static str,
        /// Its value.
        given: Duration,
        /// The lower bound.
        shortest: Duration,
        /// The upper bound.
        longest: Duration,
    },
    /// Marks would expire before leases.
    #[error(
        "marks live for {:?} and leases for {:?}: let marks live at least as long, or an event that was handled is handled again",
        .0.marks, .0.life
    )]
    MarksTooShort(LeaseTimes),
    /// One question to the store may take more than a third of a lease's life.
    #[error(
        "an answer may take {:?}, which is more than a third of a lease's life of {:?}: make it shorter, or the life longer",
        .0.answer, .0.life
    )]
    AnswerTooLong(LeaseTimes),
    /// The prefix of the keys is empty, too long, or has characters that are not allowed.
    #[error("a prefix of keys has 1 to {LONGEST_PREFIX} visible ASCII characters, and no braces")]
    Prefix,
    /// What came of the address is not shown with it: it may hold a password.
    #[error(
        "this is not the address of a Redis server ({0}): write it as redis://[user:password@]host[:port][/database]"
    )]
    Address(String),
}
