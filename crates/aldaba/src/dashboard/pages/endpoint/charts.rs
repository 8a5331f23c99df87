//! A day of an endpoint: what it answered, and how fast.

use super::DAY;
use super::texts::EndpointTexts;
use crate::dashboard::charts::{
    Bar, LatencyPoint, PlannedAttempt, Series, latency_chart, schedule, stacked_bars,
};
use crate::dashboard::texts::{Format, ShellTexts, StateTexts};
use crate::dashboard::visit::Visit;
use aldaba_delivery::policy::Preview;
use aldaba_delivery::{Chance, Policy};
use aldaba_store::{EndpointCounts, Hour};
use std::collections::BTreeMap;
use std::time::Duration;

/// Classes of answers as they are drawn, from below: the number of the class, and its colour.
const ANSWERS: [(usize, &str); 5] =
    [(2, "delivered"), (3, "waiting"), (4, "retrying"), (5, "failed"), (0, "held")];

/// The answers, then the times.
pub(super) fn of(
    visit: &Visit,
    t: &dyn EndpointTexts,
    hours: &BTreeMap<Hour, EndpointCounts>,
) -> [String; 2] {
    let (format, shell) = (Format(visit.view.tongue), <dyn ShellTexts>::of(visit.view.tongue));
    let states = <dyn StateTexts>::of(visit.view.tongue);
    let last = Hour::of(visit.now());
    let day: Vec<_> = (last.0 - DAY + 1..=last.0)
        .map(|hour| {
            (format!("{:02}:00", hour.rem_euclid(24)), hours.get(&Hour(hour)).copied().unwrap_or_default())
        })
        .collect();
    let series = ANSWERS.map(|(class, colour)| Series { class: colour, label: states.answer_class(class) });
    let bars: Vec<_> = day
        .iter()
        .map(|(label, counts)| {
            let count = |(class, _): (usize, &str)| counts.by_answer[class];
            Bar { label: label.clone(), counts: ANSWERS.map(count).into() }
        })
        .collect();
    let points: Vec<_> = day
        .iter()
        .map(|(label, counts)| LatencyPoint {
            label: label.clone(),
            median: counts.quantile(0.5),
            p95: counts.quantile(0.95),
        })
        .collect();
    let head = [shell.hour(), t.median(), t.slow()];
    [
        stacked_bars(&t.answers(), (&shell.as_table(), &shell.hour()), &series, &bars, |count| {
            format.count(count)
        }),
        latency_chart(&t.times(), (&shell.as_table(), head), &points, |time| format.duration(time)),
    ]
}

/// Attempts of a schedule that are drawn, the first ones.
const MOST_DRAWN: usize = 60;

/// When the endpoint's policy tries again while nobody answers.
pub(super) fn schedule_of(visit: &Visit, t: &dyn EndpointTexts, policy: &Policy) -> String {
    let (format, shell) = (Format(visit.view.tongue), <dyn ShellTexts>::of(visit.view.tongue));
    let at = |chance: u64| Preview::of(policy, None, || Chance(chance)).attempts;
    let first = PlannedAttempt { earliest: Duration::ZERO, latest: Duration::ZERO };
    let later = at(0).into_iter().zip(at(u64::MAX));
    let later = later.map(|(earliest, latest)| PlannedAttempt { earliest, latest });
    let attempts: Vec<_> = [first].into_iter().chain(later).take(MOST_DRAWN).collect();
    let head = [t.attempt(), t.earliest(), t.latest()];
    schedule(&t.schedule(), (&shell.as_table(), head), &attempts, None, |time| format.duration(time))
}
