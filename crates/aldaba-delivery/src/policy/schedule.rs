use crate::Chance;
use std::time::Duration;

/// The delay after the n-th failure, before jitter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// `base · factor^(n − 1)`, at most `cap`.
    Exponential { base: Duration, factor: u32, cap: Duration },
    /// The n-th entry; past the end, the last one.
    List(Vec<Duration>),
}

impl Schedule {
    /// The delay after `failures` failed attempts (1 for the first).
    pub fn delay(&self, failures: u32) -> Duration {
        let step = failures.saturating_sub(1);
        match self {
            Self::Exponential { base, factor, cap } => {
                let growth = u64::from(*factor).saturating_pow(step);
                let millis = u64::try_from(base.as_millis()).unwrap_or(u64::MAX).saturating_mul(growth);
                Duration::from_millis(millis).min(*cap)
            }
            Self::List(delays) => {
                let step = usize::try_from(step).unwrap_or(usize::MAX);
                delays.get(step).or(delays.last()).copied().unwrap_or_default()
            }
        }
    }

    /// The longest delay before jitter.
    pub fn longest(&self) -> Duration {
        match self {
            Self::Exponential { cap, .. } => *cap,
            Self::List(delays) => delays.iter().copied().max().unwrap_or_default(),
        }
    }
}

/// Randomness added to a delay, so that simultaneous failures do not retry together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jitter {
    None,
    /// Adds up to this much.
    AddUpTo(Duration),
    /// Adds up to this share of the delay.
    AddPercent(u8),
    /// Between this share less and this share more.
    AroundPercent(u8),
    /// Between zero and the whole delay.
    Full,
}

impl Jitter {
    /// The longest delay with jitter.
    pub fn longest(self, delay: Duration) -> Duration {
        let more = match self {
            Self::None | Self::Full => Duration::ZERO,
            Self::AddUpTo(most) => most,
            Self::AddPercent(share) | Self::AroundPercent(share) => {
                delay.saturating_mul(u32::from(share)) / 100
            }
        };
        delay.saturating_add(more)
    }

    pub fn apply(self, delay: Duration, chance: Chance) -> Duration {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let percent =
            |share: u8| u64::try_from(u128::from(millis) * u128::from(share) / 100).unwrap_or(u64::MAX);
        let jittered = match self {
            Self::None => millis,
            Self::AddUpTo(most) => {
                let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
                millis.saturating_add(chance.share_of(most))
            }
            Self::AddPercent(share) => millis.saturating_add(chance.share_of(percent(share))),
            Self::AroundPercent(share) => {
                let spread = percent(share);
                millis.saturating_sub(spread).saturating_add(chance.share_of(spread.saturating_mul(2)))
            }
            Self::Full => chance.share_of(millis),
        };
        Duration::from_millis(jittered)
    }
}
