//! Counters per endpoint and minute, and how many deliveries wait, so that nothing ever has to count
//! raw rows. They are summed up in memory over a batch and written in the same commit as what they
//! count.

use crate::operations::column::{Parameter, count};
use crate::operations::quota::MessageCounts;
use crate::operations::transaction::{statements, values};
use crate::operations::{Result, Statement, Transaction, statistics};
use crate::{Accept, Hour, ManualRecord, NewAttempt, Record};
use aldaba_delivery::{AppId, Ending, EndpointId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The columns of `endpoint_minute` that are added up, in the order of [`Minute::counts`].
pub(crate) const COLUMNS: [&str; 18] = [
    "attempts",
    "successes",
    "retries",
    "delivered",
    "dead",
    "within_5",
    "within_10",
    "within_25",
    "within_50",
    "within_100",
    "within_250",
    "within_500",
    "within_1000",
    "within_2500",
    "within_5000",
    "within_10000",
    "within_30000",
    "slower",
];
const ATTEMPTS: usize = 0;
const SUCCESSES: usize = 1;
const RETRIES: usize = 2;
const DELIVERED: usize = 3;
const DEAD: usize = 4;
const HISTOGRAM: usize = 5;
/// The upper bounds of the histogram, in milliseconds; what is above them all is `slower`.
const WITHIN_MILLIS: [u64; 12] = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000];

statements! {
    ADD_WAITING = "UPDATE total SET value = value + ?1 WHERE name = 'waiting'";
    ADD_MINUTE = add("endpoint_minute", "minute");
    ADD_HOUR = add("endpoint_hour", "hour");
}

/// Attempts by application, hour and event type, and the successes among them.
#[derive(Clone, Debug, Default)]
pub struct TypeCounts(pub BTreeMap<(AppId, Hour, Arc<str>), [i64; 2]>);

impl TypeCounts {
    fn attempted(&mut self, app: AppId, at: Timestamp, attempt: &NewAttempt) {
        self.add((app, Hour::of(at), attempt.event_type.clone()), [1, i64::from(attempt.success)]);
    }

    pub fn add(&mut self, key: (AppId, Hour, Arc<str>), [attempts, successes]: [i64; 2]) {
        let sums = self.0.entry(key).or_default();
        sums[0] += attempts;
        sums[1] += successes;
    }
}

#[derive(Clone, Debug, Default)]
pub struct Counters {
    minutes: BTreeMap<(EndpointId, i64), Minute>,
    pub types: TypeCounts,
    /// How many more deliveries wait than before the batch.
    waiting: i64,
    /// Of the day, by whose they are.
    pub messages: MessageCounts,
}

#[derive(Clone, Debug, Default)]
struct Minute {
    counts: [i64; COLUMNS.len()],
}

impl Minute {
    fn attempted(&mut self, attempt: &NewAttempt) {
        self.counts[ATTEMPTS] += 1;
        self.counts[SUCCESSES] += i64::from(attempt.success);
        self.counts[HISTOGRAM + bucket(attempt.duration)] += 1;
    }
}

impl Counters {
    pub fn accepted(&mut self, accept: &Accept) {
        let waiting = accept.deliveries.iter().filter(|delivery| delivery.skipped.is_none());
        self.waiting += count(waiting.count());
    }

    /// So many deliveries wait again.
    pub fn opened(&mut self, deliveries: usize) {
        self.waiting += count(deliveries);
    }

    pub fn resent(&mut self, app: AppId, resent: &ManualRecord) {
        let minute = resent.at.millis().div_euclid(60_000);
        self.minutes.entry((resent.endpoint, minute)).or_default().attempted(&resent.attempt);
        self.types.attempted(app, resent.at, &resent.attempt);
    }

    pub fn recorded(&mut self, record: &Record) {
        let minute = record.at.millis().div_euclid(60_000);
        let sums = self.minutes.entry((record.endpoint, minute)).or_default();
        if let Some(attempt) = &record.attempt {
            sums.attempted(attempt);
        }
        let counts = &mut sums.counts;
        let ending = record.transition.ending();
        self.waiting -= i64::from(ending.is_some());
        match ending {
            None => counts[RETRIES] += i64::from(record.counts()),
            Some(Ending::Delivered) => counts[DELIVERED] += 1,
            Some(Ending::Dead(_)) => counts[DEAD] += 1,
        }
        if let Some(attempt) = &record.attempt {
            self.types.attempted(record.app, record.at, attempt);
        }
    }

    pub fn write(&self, tx: &dyn Transaction) -> Result<()> {
        if self.waiting != 0 {
            tx.execute(&ADD_WAITING, values![self.waiting])?;
        }
        self.messages.write(tx)?;
        if self.minutes.is_empty() {
            return Ok(());
        }
        let begun = statistics::hours_begun(tx)?;
        for ((endpoint, minute), Minute { counts }) in &self.minutes {
            let add = |statement: &'static Statement, key: i64| {
                let mut parameters = vec![endpoint.value(), key.value()];
                parameters.extend(counts.iter().map(Parameter::value));
                tx.execute(statement, &parameters)
            };
            add(&ADD_MINUTE, *minute)?;
            let hour = minute.div_euclid(60);
            // A late result: its hour is summed up, or is about to be.
            if hour <= begun.0 {
                add(&ADD_HOUR, hour)?;
            }
        }
        Ok(())
    }
}

fn add(table: &str, span: &str) -> String {
    let marks: Vec<_> = (3..3 + COLUMNS.len()).map(|number| format!("?{number}")).collect();
    let sums = COLUMNS.map(|column| format!("{column} = {table}.{column} + excluded.{column}")).join(", ");
    format!(
        "INSERT INTO {table} (endpoint, {span}, {}) VALUES (?1, ?2, {})
         ON CONFLICT (endpoint, {span}) DO UPDATE SET {sums}",
        COLUMNS.join(", "),
        marks.join(", ")
    )
}

fn bucket(duration: Duration) -> usize {
    let over = |&&bound: &&u64| duration > Duration::from_millis(bound);
    WITHIN_MILLIS.iter().take_while(over).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_histogram_has_a_column_for_every_bound_and_one_beyond() {
        assert_eq!(COLUMNS.len(), HISTOGRAM + WITHIN_MILLIS.len() + 1);
        for (column, bound) in COLUMNS[HISTOGRAM..].iter().zip(WITHIN_MILLIS) {
            assert_eq!(*column, format!("within_{bound}"));
        }
        assert_eq!(COLUMNS[HISTOGRAM + bucket(Duration::from_millis(5))], "within_5");
        assert_eq!(COLUMNS[HISTOGRAM + bucket(Duration::from_micros(5001))], "within_10");
        assert_eq!(COLUMNS[HISTOGRAM + bucket(Duration::MAX)], "slower");
    }
}
