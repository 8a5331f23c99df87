//! Scales of axes.

/// The next round number: 1, 2 or 5 with zeros.
pub(super) fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|step| *step >= value * 0.999_999).unwrap_or(value)
}

/// The place of a value between two others, from 0 to 1, on a logarithmic axis.
pub(super) fn logarithmic(value: f64, least: f64, most: f64) -> f64 {
    if most <= least {
        return 0.0;
    }
    ((value.max(least) / least).ln() / (most / least).ln()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_number() {
        for (value, end) in [(0.0, 1.0), (1.0, 1.0), (3.0, 5.0), (11.0, 20.0), (999.0, 1000.0), (0.3, 0.5)] {
            assert!((round_up(value) - end).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn each_tenfold_takes_the_same_space() {
        let at = |value| logarithmic(value, 1.0, 10_000.0);
        assert!((at(100.0) - 0.5).abs() < 1e-9 && at(0.1) == 0.0 && at(1e9) == 1.0);
        assert_eq!(logarithmic(5.0, 1.0, 1.0), 0.0);
    }
}
