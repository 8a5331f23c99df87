//! Numbers, shares and times as each language writes them.

use super::Tongue;
use std::time::Duration;

/// How a language writes numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format(pub(crate) Tongue);

impl Format {
    fn is_spanish(self) -> bool {
        self.0 == Tongue::Spanish
    }

    /// With a sign between thousands; Spanish needs none with four digits.
    pub(crate) fn count(self, number: impl Into<u64>) -> String {
        let digits = number.into().to_string();
        let separator = if self.is_spanish() { '.' } else { ',' };
        if digits.len() <= if self.is_spanish() { 4 } else { 3 } {
            return digits;
        }
        let mut text = String::with_capacity(digits.len() + digits.len() / 3);
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push(separator);
            }
            text.push(digit);
        }
        text
    }

    /// A count that was given up at a limit ends in a plus.
    pub(crate) fn count_up_to(self, number: u64, most: usize) -> String {
        match number > most as u64 {
            true => format!("{}+", self.count(most as u64)),
            false => self.count(number),
        }
    }

    fn decimal(self, text: String) -> String {
        if self.is_spanish() { text.replace('.', ",") } else { text }
    }

    /// A share, from 0 to 1. What is not whole never reads as 0 % or 100 %.
    pub(crate) fn percent(self, share: f64) -> String {
        let percent = share * 100.0;
        let text = match percent {
            _ if percent == 100.0 || percent == 0.0 => format!("{percent:.0}"),
            _ if percent > 99.9 => format!("{:.2}", (percent * 100.0).floor() / 100.0),
            _ if percent < 0.1 => "0.1".to_owned(),
            _ => format!("{percent:.1}").trim_end_matches(".0").to_owned(),
        };
        format!("{}\u{202f}%", self.decimal(text))
    }

    /// In at most two units.
    pub(crate) fn duration(self, time: Duration) -> String {
        let (millis, seconds) = (time.as_millis(), time.as_secs());
        let two = |large: u64, unit: &str, small: u64, other: &str| match small {
            0 => format!("{large}\u{202f}{unit}"),
            _ => format!("{large}\u{202f}{unit} {small}\u{202f}{other}"),
        };
        match seconds {
            0 if millis == 0 => "0\u{202f}s".to_owned(),
            0 => format!("{millis}\u{202f}ms"),
            1..10 => {
                let text = format!("{:.1}", time.as_secs_f64());
                format!("{}\u{202f}s", self.decimal(text.trim_end_matches(".0").to_owned()))
            }
            10..60 => format!("{seconds}\u{202f}s"),
            60..3600 => two(seconds / 60, "min", seconds % 60, "s"),
            3600..86_400 => two(seconds / 3600, "h", seconds % 3600 / 60, "min"),
            _ => two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
        }
    }

    pub(crate) fn bytes(self, bytes: u64) -> String {
        match bytes {
            ..1024 => format!("{bytes}\u{202f}B"),
            1024..1_048_576 => {
                format!("{}\u{202f}KiB", self.decimal(format!("{:.1}", bytes as f64 / 1024.0)))
            }
            _ => format!("{}\u{202f}MiB", self.decimal(format!("{:.1}", bytes as f64 / 1_048_576.0))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EN: Format = Format(Tongue::English);
    const ES: Format = Format(Tongue::Spanish);

    #[test]
    fn thousands_are_separated_as_the_language_does() {
        assert_eq!(
            [EN.count(7_u64), EN.count(1234_u64), EN.count(12_345_678_u64)],
            ["7", "1,234", "12,345,678"]
        );
        assert_eq!([ES.count(1234_u64), ES.count(12_345_u64)], ["1234", "12.345"]);
        assert_eq!(
            (EN.count_up_to(10_001, 10_000), EN.count_up_to(10_000, 10_000)),
            ("10,000+".into(), "10,000".into())
        );
    }

    #[test]
    fn a_share_that_is_not_whole_does_not_read_so() {
        let percent = |share| EN.percent(share).replace('\u{202f}', "");
        assert_eq!(
            [percent(1.0), percent(0.99999), percent(0.0), percent(0.00001)],
            ["100%", "99.99%", "0%", "0.1%"]
        );
        assert_eq!(ES.percent(0.1234).replace('\u{202f}', ""), "12,3%");
    }

    #[test]
    fn times_have_at_most_two_units() {
        let text = |millis| EN.duration(Duration::from_millis(millis)).replace('\u{202f}', "");
        assert_eq!(
            [text(0), text(999), text(1000), text(1250), text(59_999)],
            ["0s", "999ms", "1s", "1.2s", "59s"]
        );
        assert_eq!([text(61_000), text(3_600_000), text(90_061_000)], ["1min 1s", "1h", "1d 1h"]);
        assert_eq!(ES.duration(Duration::from_millis(1500)).replace('\u{202f}', ""), "1,5s");
        assert_eq!(EN.bytes(1536).replace('\u{202f}', ""), "1.5KiB");
    }
}
