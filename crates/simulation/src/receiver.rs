//! How receivers behave: in moods that change over time.

use crate::entropy::Dice;
use crate::log::Fate;
use crate::store::Span;
use aldaba_delivery::FailureKind;
use aldaba_delivery::policy::Timeouts;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Healthy,
    /// Answers well, but takes seconds.
    Slow,
    /// Any of the others, by chance.
    Flaky,
    Answers(u16),
    TooMany(Duration),
    Unavailable(Duration),
    /// Takes the request and never answers.
    Silent,
    /// Takes the request, and the answer is lost.
    Breaks,
    Refuses,
    Unresolved,
    /// A bug in the sending itself.
    Panics,
}

/// What a receiver does with one request.
#[derive(Clone, Copy, Debug)]
pub struct Reaction {
    pub after: Duration,
    pub fate: Fate,
}

/// A mood and when it holds.
#[derive(Clone, Copy, Debug)]
pub struct Spell {
    pub span: Span,
    pub mood: Mood,
}

const FLAKY: [Mood; 9] = [
    Mood::Healthy,
    Mood::Healthy,
    Mood::Slow,
    Mood::Answers(500),
    Mood::Answers(503),
    Mood::Breaks,
    Mood::Silent,
    Mood::Refuses,
    Mood::Panics,
];

impl Mood {
    pub fn react(self, timeouts: Timeouts, dice: &mut Dice) -> Reaction {
        let quick = dice.millis(1, 80);
        let reaction = |after, fate| Reaction { after, fate };
        let answer = |status| Fate::Answered { status, retry_after: None };
        match self {
            Self::Healthy => reaction(quick, answer(200)),
            Self::Slow => reaction(dice.millis(500, 8000), answer(200)),
            Self::Flaky => dice.pick(&FLAKY).react(timeouts, dice),
            Self::Answers(status) => reaction(quick, answer(status)),
            Self::TooMany(wish) => reaction(quick, Fate::Answered { status: 429, retry_after: Some(wish) }),
            Self::Unavailable(wish) => {
                reaction(quick, Fate::Answered { status: 503, retry_after: Some(wish) })
            }
            Self::Silent => reaction(timeouts.total, Fate::Failed(FailureKind::Timeout)),
            Self::Breaks => reaction(quick, Fate::Failed(FailureKind::Broken)),
            Self::Refuses => reaction(dice.millis(0, 5), Fate::Failed(FailureKind::Connect)),
            Self::Unresolved => reaction(dice.millis(0, 2000), Fate::Failed(FailureKind::Dns)),
            Self::Panics => reaction(quick, Fate::Panicked),
        }
    }
}
