//! Percentiles, medians, fairness, and readable numbers.

/// The smallest value that at least `percent` of all values do not exceed; NaN for no values.
pub(crate) fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// The middle value, or the mean of the two middle ones; NaN for no values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub(crate) fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::max)
}

/// Jain's index: 1 if all have the same, 1/n if one of n has everything.
pub(crate) fn fairness(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

/// A number with this many decimals and a comma between thousands.
pub(crate) fn shown(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "–".into() } else { "never".into() };
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').map_or((&*text, None), |(whole, rest)| (whole, Some(rest)));
    let mut grouped = String::new();
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 && text.bytes().any(|byte| byte.is_ascii_digit() && byte != b'0') {
        "−"
    } else {
        ""
    };
    fraction.map_or_else(|| format!("{sign}{grouped}"), |fraction| format!("{sign}{grouped}.{fraction}"))
}

/// A count, with a comma between thousands.
pub(crate) fn counted(count: usize) -> String {
    shown(count as f64, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values_in_any_order() {
        let values: Vec<f64> = (1..=1000).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 50.0), 500.0);
        assert_eq!(percentile(&values, 99.0), 990.0);
        assert_eq!(percentile(&values, 100.0), 1000.0);
        assert_eq!(percentile(&values, 0.0), 1.0);
        assert_eq!(percentile(&[7.0], 99.0), 7.0);
        assert!(percentile(&[], 50.0).is_nan());
    }

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&[9.0, 1.0, 5.0, 6.0]), 5.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn jains_index_is_one_for_equals_and_one_nth_for_a_winner_who_takes_all() {
        assert_eq!(fairness(&[3.0; 8]), 1.0);
        assert_eq!(fairness(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert!((fairness(&[1.0, 2.0, 3.0]) - 36.0 / 42.0).abs() < 1e-12);
    }

    #[test]
    fn the_largest_of_no_values_is_nan() {
        assert_eq!(largest(&[1.0, 3.0, 2.0]), 3.0);
        assert!(largest(&[]).is_nan());
    }

    #[test]
    fn numbers_are_grouped_and_rounded() {
        assert_eq!(shown(1_234_567.8, 0), "1,234,568");
        assert_eq!(shown(999.0, 0), "999");
        assert_eq!(shown(0.18342, 3), "0.183");
        assert_eq!(shown(-12_345.678, 1), "−12,345.7");
        assert_eq!(shown(-0.04, 1), "0.0");
        assert_eq!(shown(f64::NAN, 1), "–");
        assert_eq!(shown(f64::INFINITY, 1), "never");
    }
}
