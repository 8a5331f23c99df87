//! Conditions: which values are compared, and how.

use super::value::{PayloadValue, Scalar};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::slice;

#[derive(Clone, Debug)]
pub(super) enum FilterCondition {
    Of(ConditionSource, Requirement),
    /// The number of the condition among those on the payload.
    Payload(u16),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConditionSource {
    EventType,
    Channel,
    Tag,
    /// In lower case.
    Header(Box<str>),
}

/// What a condition requires of the values of its source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Requirement {
    /// There is no value.
    None,
    /// One value satisfies all operators.
    One(Box<[Operator]>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operator {
    /// Any value matches.
    Exists,
    Eq(Scalar),
    Ne(Scalar),
    /// Compares with a number or a text.
    Gt(Scalar),
    Gte(Scalar),
    Lt(Scalar),
    Lte(Scalar),
    In(Box<[Scalar]>),
    NotIn(Box<[Scalar]>),
    StartsWith(Box<str>),
    EndsWith(Box<str>),
    Contains(Scalar),
}

impl Requirement {
    /// Whether the requirement is met, given whether one value decided it.
    pub(super) fn is_met(&self, hit: bool) -> bool {
        match self {
            Self::None => !hit,
            Self::One(_) => hit,
        }
    }

    /// Whether a value decides the condition: it satisfies all operators, or it exists where none should.
    /// `contains`: the result of `contains`, if known already.
    pub(super) fn is_hit(&self, value: &PayloadValue<'_>, contains: Option<bool>) -> bool {
        self.operators().all(|operator| match (operator, contains) {
            (Operator::Contains(_), Some(contains)) => contains,
            _ => operator.holds(value),
        })
    }

    fn operators(&self) -> slice::Iter<'_, Operator> {
        match self {
            Self::None => [].iter(),
            Self::One(operators) => operators.iter(),
        }
    }

    /// The operand of `contains`. A condition has each operator at most once.
    pub(super) fn substring(&self) -> Option<&Scalar> {
        self.operators().find_map(|operator| match operator {
            Operator::Contains(substring) => Some(substring),
            _ => None,
        })
    }

    /// The cost of judging one value.
    pub(super) fn cost(&self) -> u64 {
        let of_one = |operator: &Operator| match operator {
            Operator::Exists | Operator::StartsWith(_) | Operator::EndsWith(_) => 1,
            Operator::Eq(scalar)
            | Operator::Ne(scalar)
            | Operator::Gt(scalar)
            | Operator::Gte(scalar)
            | Operator::Lt(scalar)
            | Operator::Lte(scalar)
            | Operator::Contains(scalar) => scalar.cost(),
            Operator::In(scalars) | Operator::NotIn(scalars) => scalars.iter().map(Scalar::cost).sum(),
        };
        self.operators().map(of_one).sum::<u64>().max(1)
    }

    pub(super) fn is_hit_by(&self, text: &str) -> bool {
        self.is_hit(&PayloadValue::Text(Cow::Borrowed(text.as_bytes())), None)
    }
}

impl Operator {
    pub(super) fn holds(&self, value: &PayloadValue<'_>) -> bool {
        let text = |check: fn(&[u8], &[u8]) -> bool, substring: &str| match value {
            PayloadValue::Text(text) => check(text, substring.as_bytes()),
            _ => false,
        };
        match self {
            Self::Exists => true,
            Self::Eq(scalar) => scalar.is(value),
            Self::Ne(scalar) => !scalar.is(value),
            Self::Gt(scalar) => scalar.order(value).is_some_and(Ordering::is_gt),
            Self::Gte(scalar) => scalar.order(value).is_some_and(Ordering::is_ge),
            Self::Lt(scalar) => scalar.order(value).is_some_and(Ordering::is_lt),
            Self::Lte(scalar) => scalar.order(value).is_some_and(Ordering::is_le),
            Self::In(scalars) => scalars.iter().any(|scalar| scalar.is(value)),
            Self::NotIn(scalars) => !scalars.iter().any(|scalar| scalar.is(value)),
            Self::StartsWith(start) => text(<[u8]>::starts_with, start),
            Self::EndsWith(end) => text(<[u8]>::ends_with, end),
            Self::Contains(scalar) => scalar.is_in(value),
        }
    }
}
