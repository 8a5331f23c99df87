//! The attempts of a delivery in time: each is a ring that strikes a line. Filled: it was answered well. Open: it was not. Dashed: it is
//! planned.

use super::point;
use super::scale::logarithmic;
use aldaba_engine::escaped;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttemptMark {
    /// Since the delivery began to wait.
    pub(crate) after: Duration,
    /// `None`: it is planned.
    pub(crate) success: Option<bool>,
    /// Such as `Attempt 2: HTTP 503`.
    pub(crate) words: String,
}

const LINE: f64 = 36.0;
const RADIUS: f64 = 7.0;
/// The space beside the first and the last ring, in percent.
const MARGIN: f64 = 2.0;

/// The first seconds matter as much as days: the axis is logarithmic. Places are shares of the width, so that rings stay round.
pub(crate) fn attempt_timeline(label: &str, marks: &[AttemptMark]) -> String {
    let longest = marks.iter().map(|mark| mark.after).max().unwrap_or_default().as_secs_f64();
    let least = 0.2;
    let place = |after: Duration| {
        let share = logarithmic(after.as_secs_f64() + least, least, (longest + least).max(least * 10.0));
        MARGIN + share * (100.0 - 2.0 * MARGIN)
    };
    let mut parts = format!("<line class=\"axis\" x1=\"0\" y1=\"{LINE}\" x2=\"100%\" y2=\"{LINE}\"/>");
    for (index, mark) in marks.iter().enumerate() {
        let class = match mark.success {
            Some(true) => "struck answered",
            Some(false) => "struck unanswered",
            None => "planned",
        };
        // The newest one that ended may strike once, where motion is wanted.
        let is_last = marks[index + 1..].iter().all(|later| later.success.is_none());
        let newest = if is_last && mark.success.is_some() { " newest" } else { "" };
        let x = point(place(mark.after));
        parts.push_str(&format!(
            "<g class=\"attempt {class}{newest}\"><title>{}</title><line class=\"stem\" x1=\"{x}%\" y1=\"{}\" x2=\"{x}%\" y2=\"{LINE}\"/>\
             <circle cx=\"{x}%\" cy=\"{}\" r=\"{RADIUS}\"/></g>",
            escaped(&mark.words),
            point(LINE - 6.0),
            point(LINE - 6.0 - RADIUS),
        ));
    }
    format!("<svg class=\"chart timeline\" role=\"img\" aria-label=\"{}\">{parts}</svg>", escaped(label))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(seconds: u64, success: Option<bool>) -> AttemptMark {
        AttemptMark { after: Duration::from_secs(seconds), success, words: format!("{seconds} <s>") }
    }

    #[test]
    fn an_attempt_says_whether_it_was_answered_and_later_ones_stand_to_the_right() {
        let html =
            attempt_timeline("Attempts", &[mark(0, Some(false)), mark(5, Some(true)), mark(3600, None)]);
        let order: Vec<_> =
            ["unanswered", "answered newest", "planned"].map(|class| html.find(class).unwrap()).into();
        assert!(order.is_sorted(), "{html}");
        assert!(html.contains("3600 &lt;s&gt;"));
        let places: Vec<f64> = html
            .split("cx=\"")
            .skip(1)
            .map(|rest| rest.split('%').next().unwrap().parse().unwrap())
            .collect();
        assert!(places.is_sorted() && places[2] <= 100.0, "{places:?}");
    }

    #[test]
    fn one_attempt_at_once_is_at_the_beginning() {
        let html = attempt_timeline("Attempts", &[mark(0, Some(true))]);
        assert!(html.contains("cx=\"2%\"") && !html.contains("NaN"), "{html}");
    }
}
