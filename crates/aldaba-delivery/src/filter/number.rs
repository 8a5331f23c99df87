//! JSON numbers, compared exactly at any length, without rounding.

use std::cmp::Ordering;

/// A JSON number.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonNumber<'a> {
    text: &'a str,
    read: ParsedNumber<'a>,
}

#[derive(Clone, Copy, Debug)]
enum ParsedNumber<'a> {
    Whole(i64),
    /// Another notation, or a longer number.
    Digits(Digits<'a>),
}

/// The significant digits of a number, and the exponent of the first.
#[derive(Clone, Copy, Debug)]
struct Digits<'a> {
    /// -1, 0 or 1.
    sign: i8,
    /// From the first to the last digit that is not zero, with the point in between.
    digits: &'a [u8],
    /// The power of ten of the first digit.
    power: i64,
}

/// A number of a filter, parsed as far as possible.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NumberLiteral {
    text: Box<str>,
    whole: Option<i64>,
}

impl NumberLiteral {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.into(), whole: text.parse().ok() }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn number(&self) -> JsonNumber<'_> {
        let read =
            self.whole.map_or_else(|| ParsedNumber::Digits(Digits::of(&self.text)), ParsedNumber::Whole);
        JsonNumber { text: &self.text, read }
    }
}

impl<'a> JsonNumber<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let read = text.parse().map_or_else(|_| ParsedNumber::Digits(Digits::of(text)), ParsedNumber::Whole);
        Self { text, read }
    }

    /// The exponents must not both exceed an `i64`.
    pub(super) fn compare(&self, other: &JsonNumber<'_>) -> Ordering {
        match (&self.read, &other.read) {
            (ParsedNumber::Whole(one), ParsedNumber::Whole(two)) => one.cmp(two),
            _ => self.digits().compare(&other.digits()),
        }
    }

    fn digits(&self) -> Digits<'a> {
        match self.read {
            ParsedNumber::Whole(_) => Digits::of(self.text),
            ParsedNumber::Digits(digits) => digits,
        }
    }
}

impl<'a> Digits<'a> {
    fn of(text: &'a str) -> Self {
        let (sign, text) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        let (significand, exponent) = match text.split_once(['e', 'E']) {
            Some((significand, exponent)) => (significand, self::exponent(exponent)),
            None => (text, 0),
        };
        let counts = |byte: u8| matches!(byte, b'1'..=b'9');
        let (first, last) = (significand.bytes().position(counts), significand.bytes().rposition(counts));
        let (Some(first), Some(last)) = (first, last) else {
            return Self { sign: 0, digits: &[], power: 0 };
        };
        let point = significand.find('.').unwrap_or(significand.len());
        let exponent_of = |distance: usize| i64::try_from(distance).unwrap_or(i64::MAX / 4);
        let exponent_of =
            if first < point { exponent_of(point - first - 1) } else { -exponent_of(first - point) };
        let digits = significand.as_bytes().get(first..=last).unwrap_or_default();
        Self { sign, digits, power: exponent + exponent_of }
    }

    fn compare(&self, other: &Digits<'_>) -> Ordering {
        self.sign.cmp(&other.sign).then_with(|| match self.sign {
            0 => Ordering::Equal,
            1 => self.size(other),
            _ => other.size(self),
        })
    }

    /// Compares without the sign. Trailing zeros are left out, so of two with a common prefix the longer is
    /// larger.
    fn size(&self, other: &Digits<'_>) -> Ordering {
        fn digits(digits: &[u8]) -> impl Iterator<Item = &u8> {
            digits.iter().filter(|byte| byte.is_ascii_digit())
        }
        self.power.cmp(&other.power).then_with(|| digits(self.digits).cmp(digits(other.digits)))
    }
}

/// An exponent beyond any memory becomes the largest; operands of filters are far below it.
fn exponent(text: &str) -> i64 {
    let largest = i64::MAX / 4;
    let exponent = text.parse().unwrap_or(if text.starts_with('-') { -largest } else { largest });
    exponent.clamp(-largest, largest)
}

/// The exponent in a number's text.
pub(super) fn written_exponent(text: &str) -> i64 {
    text.split_once(['e', 'E']).map_or(0, |(_, text)| exponent(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn compare(one: &str, two: &str) -> Ordering {
        JsonNumber::of(one).compare(&JsonNumber::of(two))
    }

    #[test]
    fn equal_numbers_compare_equal_in_any_notation() {
        for same in [
            ["1", "1.0"],
            ["1", "1e0"],
            ["1000", "1E+3"],
            ["0.001", "1e-3"],
            ["0", "-0"],
            ["0", "0e999999999999999999999"],
            ["-0.0", "0.00"],
            ["120", "1.20e2"],
            ["100000000000000000000", "1e20"],
            ["0.1", "0.10000000000000000000000000"],
            ["12.5e-1", "1.25"],
        ] {
            assert_eq!(compare(same[0], same[1]), Ordering::Equal, "{same:?}");
        }
        for [less, more] in [
            ["9007199254740992", "9007199254740993"],
            ["9007199254740992.0", "9007199254740993"],
            ["18446744073709551615", "18446744073709551616"],
            ["0.1", "0.10000000000000000000000001"],
            ["-2", "-1"],
            ["-1", "0"],
            ["-1e400", "1"],
            ["1e-400", "1e-399"],
            ["0", "1e-999999999999999999999"],
            ["1e9999", "1e999999999999999999999"],
            ["-1e999999999999999999999", "-1e9999"],
            ["9", "10"],
            ["99.9", "100"],
            ["0.09", "0.1"],
            ["2", "10e0"],
        ] {
            assert_eq!(compare(less, more), Ordering::Less, "{less} {more}");
            assert_eq!(compare(more, less), Ordering::Greater, "{less} {more}");
        }
    }

    /// A number of at most nine digits after the point, written in one of many ways.
    fn written() -> impl Strategy<Value = (i128, String)> {
        let substrings = (any::<bool>(), 0..100_000_000_000_u128, 0..10_usize, 0..3_usize, -4..5_i32);
        substrings.prop_map(|(negative, digits, decimals, zeros, shift)| {
            let all = format!("{digits:0>width$}", width = decimals + 1);
            let (whole, fraction) = all.split_at(all.len() - decimals);
            let sign = if negative { "-" } else { "" };
            let mut text = format!("{sign}{whole}");
            if decimals > 0 {
                text = format!("{text}.{fraction}{}", "0".repeat(zeros));
            }
            if shift != 0 {
                text = format!("{text}e{shift}");
            }
            let scale = 13 - i32::try_from(decimals).unwrap() + shift;
            let value = i128::try_from(digits).unwrap() * 10_i128.pow(u32::try_from(scale).unwrap());
            (if negative { -value } else { value }, text)
        })
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_scaled_whole_numbers((one, a) in written(), (two, b) in written()) {
            prop_assert_eq!(compare(&a, &b), one.cmp(&two), "{} {}", a, b);
        }
    }
}
