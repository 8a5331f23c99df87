//! One condition: what is looked at, and what is wanted of it.

use super::value::{Scalar, Value};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::slice;

#[derive(Clone, Debug)]
pub(super) enum Condition {
    Of(Source, Wanted),
    /// The number of the condition among those about the payload.
    Payload(u16),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    EventType,
    Channel,
    Tag,
    /// In lower case.
    Header(Box<str>),
}

/// What is wanted of the values that a source has for a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wanted {
    /// That there is none.
    None,
    /// That one of them is so in every respect.
    One(Box<[Operator]>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operator {
    /// Any value will do.
    Exists,
    Eq(Scalar),
    Ne(Scalar),
    /// A number or a text.
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

impl Wanted {
    /// Whether all is as wanted, where one of the values decides or none does.
    pub(super) fn is_met(&self, hit: bool) -> bool {
        match self {
            Self::None => !hit,
            Self::One(_) => hit,
        }
    }

    /// Whether a value decides: it is as wanted, or it is there where none should be. `contains` says whether
    /// the value contains what is asked for, where that is known already.
    pub(super) fn is_hit(&self, value: &Value<'_>, contains: Option<bool>) -> bool {
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

    /// What a value must contain. A condition has each operator once.
    pub(super) fn part(&self) -> Option<&Scalar> {
        self.operators().find_map(|operator| match operator {
            Operator::Contains(part) => Some(part),
            _ => None,
        })
    }

    /// Looks that it takes to judge one value.
    pub(super) fn looks(&self) -> u64 {
        let of_one = |operator: &Operator| match operator {
            Operator::Exists | Operator::StartsWith(_) | Operator::EndsWith(_) => 1,
            Operator::Eq(scalar)
            | Operator::Ne(scalar)
            | Operator::Gt(scalar)
            | Operator::Gte(scalar)
            | Operator::Lt(scalar)
            | Operator::Lte(scalar)
            | Operator::Contains(scalar) => scalar.looks(),
            Operator::In(scalars) | Operator::NotIn(scalars) => scalars.iter().map(Scalar::looks).sum(),
        };
        self.operators().map(of_one).sum::<u64>().max(1)
    }

    pub(super) fn is_hit_by(&self, text: &str) -> bool {
        self.is_hit(&Value::Text(Cow::Borrowed(text.as_bytes())), None)
    }
}

impl Operator {
    pub(super) fn holds(&self, value: &Value<'_>) -> bool {
        let text = |check: fn(&[u8], &[u8]) -> bool, part: &str| match value {
            Value::Text(text) => check(text, part.as_bytes()),
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
