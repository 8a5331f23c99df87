use std::ops::RangeInclusive;
use std::time::Duration;
use thiserror::Error;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long leases and marks live, and the timeout of their store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimes {
    /// How long a lease lives without a renewal, from 100 ms to 1 h. Its owner renews it every third of this time. After a
    /// crash, copies of the event wait for the rest of it.
    pub life: Duration,
    /// How long a mark lives, from 1 s to ten years and at least `life`. It should be at least as long as the sender may
    /// send the event again.
    pub marks: Duration,
    /// The timeout of one operation of the store, from 10 ms to 1 min and at most a third of `life`, so that one renewal may
    /// fail.
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
        within("the life of a lease", self.life, &Self::LIFE_BOUNDS)?;
        within("the life of a mark", self.marks, &Self::MARKS_BOUNDS)?;
        within("the timeout of the store", self.answer, &Self::ANSWER_BOUNDS)?;
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

/// The maximum length of a key prefix, in characters.
pub const LONGEST_PREFIX: usize = 64;

/// Checks a prefix: people read and type the keys.
pub(crate) fn check_prefix(prefix: &str) -> Result<(), LeaseOptionError> {
    let typed = prefix.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}'));
    if prefix.is_empty() || prefix.len() > LONGEST_PREFIX || !typed {
        return Err(LeaseOptionError::Prefix);
    }
    Ok(())
}

/// An invalid option of a lease ledger.
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
        "marks live for {:?} and leases for {:?}: marks must live at least as long as leases",
        .0.marks, .0.life
    )]
    MarksTooShort(LeaseTimes),
    /// The timeout of the store is more than a third of a lease's life.
    #[error(
        "the timeout of the store is {:?}, more than a third of a lease's life of {:?}: shorten it, or lengthen the life",
        .0.answer, .0.life
    )]
    AnswerTooLong(LeaseTimes),
    /// The prefix is empty, too long, or contains a forbidden character.
    #[error("the prefix must have 1 to {LONGEST_PREFIX} visible ASCII characters and no braces")]
    Prefix,
    /// The address is invalid. The error does not show it: it may contain a password.
    #[error(
        "invalid address of a Redis server ({0}): write it as redis://[user:password@]host[:port][/database]"
    )]
    Address(String),
}
