//! Counters per endpoint and minute, and how many deliveries wait, so that nothing ever has to count
//! raw rows. They are summed up in memory over a batch and written in the same commit as what they
//! count. What is counted of organizations is written a little later (`live.rs`).

use crate::operations::column::{Parameter, count};
use crate::operations::quota::MessageCounts;
use crate::operations::transaction::statements;
use crate::operations::{Result, Statement, Transaction, organizations, statistics};
use crate::{Accept, CountKind, Hour, ManualRecord, NewAttempt, OrganizationCounts, Record};
use aldaba_delivery::{AppId, Ending, EndpointId, OrgId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The columns of `endpoint_minute` that are added up, in the order of [`Minute::counts`].
pub(crate) const COLUMNS: [&str; 24] = [
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
    "no_answer",
    "status_1xx",
    "status_2xx",
    "status_3xx",
    "status_4xx",
    "status_5xx",
];
const ATTEMPTS: usize = 0;
const SUCCESSES: usize = 1;
const RETRIES: usize = 2;
const DELIVERED: usize = 3;
const DEAD: usize = 4;
const HISTOGRAM: usize = 5;
/// Attempts without an answer, then those with an answer by the class of its status.
const ANSWERS: usize = 18;
/// The upper bounds of the histogram, in milliseconds; what is above them all is `slower`.
const WITHIN_MILLIS: [u64; 12] = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000];

statements! {
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

/// What a batch has counted that goes on in memory once it is on disk.
#[derive(Clone, Debug, Default)]
pub struct BatchCounts {
    pub types: TypeCounts,
    /// By organization and minute.
    pub organizations: BTreeMap<(OrgId, i64), OrganizationCounts>,
    /// How many more deliveries wait than before the batch.
    pub waiting: BTreeMap<OrgId, i64>,
}

#[derive(Clone, Debug, Default)]
pub struct Counters {
    minutes: BTreeMap<(EndpointId, i64), Minute>,
    pub batch: BatchCounts,
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
        self.counts[ANSWERS + status_class(attempt.status_code)] += 1;
    }
}

fn minute_of(at: Timestamp) -> i64 {
    at.millis().div_euclid(60_000)
}

impl Counters {
    pub fn accepted(&mut self, accept: &Accept) {
        let waiting = accept.deliveries.iter().filter(|delivery| delivery.skipped.is_none()).count();
        self.organization(accept.org, accept.message.created_at).accepted(accept, waiting);
        self.waiting(accept.org, count(waiting));
    }

    /// An endpoint is erased in this batch, in which its last result may have been recorded.
    pub fn forget_endpoint(&mut self, endpoint: EndpointId) {
        self.minutes.retain(|(counted, _), _| *counted != endpoint);
    }

    /// The same of its application.
    pub fn forget_application(&mut self, app: AppId) {
        self.batch.types.0.retain(|(counted, ..), _| *counted != app);
    }

    /// So many deliveries wait again.
    pub fn opened(&mut self, org: OrgId, at: Timestamp, deliveries: usize) {
        if deliveries > 0 {
            self.organization(org, at).count(CountKind::Deliveries, deliveries as u64);
            self.waiting(org, count(deliveries));
        }
    }

    /// An event of a source was received before.
    pub fn duplicate(&mut self, org: OrgId, at: Timestamp) {
        self.organization(org, at).count(CountKind::InboundDuplicates, 1);
    }

    pub fn resent(&mut self, app: AppId, resent: &ManualRecord) {
        self.minutes.entry((resent.endpoint, minute_of(resent.at))).or_default().attempted(&resent.attempt);
        self.organization(resent.org, resent.at).resent(resent);
        self.batch.types.attempted(app, resent.at, &resent.attempt);
    }

    pub fn recorded(&mut self, org: OrgId, record: &Record) {
        let sums = self.minutes.entry((record.endpoint, minute_of(record.at))).or_default();
        if let Some(attempt) = &record.attempt {
            sums.attempted(attempt);
        }
        let counts = &mut sums.counts;
        let ending = record.transition.ending();
        match ending {
            None => counts[RETRIES] += i64::from(record.counts()),
            Some(Ending::Delivered) => counts[DELIVERED] += 1,
            Some(Ending::Dead(_)) => counts[DEAD] += 1,
        }
        self.organization(org, record.at).recorded(record);
        if ending.is_some() {
            self.waiting(org, -1);
        }
        if let Some(attempt) = &record.attempt {
            self.batch.types.attempted(record.app, record.at, attempt);
        }
    }

    fn organization(&mut self, org: OrgId, at: Timestamp) -> &mut OrganizationCounts {
        self.batch.organizations.entry((org, minute_of(at))).or_default()
    }

    fn waiting(&mut self, org: OrgId, more: i64) {
        *self.batch.waiting.entry(org).or_default() += more;
    }

    pub fn write(&self, tx: &dyn Transaction) -> Result<()> {
        for (org, more) in self.batch.waiting.iter().filter(|(_, more)| **more != 0) {
            organizations::add_waiting(tx, *org, *more)?;
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

/// 0 for no answer, otherwise the first digit of the status.
fn status_class(status: Option<u16>) -> usize {
    usize::from(status.map_or(0, |status| (status / 100).clamp(1, 5)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_histogram_has_a_column_for_every_bound_and_one_beyond() {
        assert_eq!(ANSWERS, HISTOGRAM + WITHIN_MILLIS.len() + 1);
        for (column, bound) in COLUMNS[HISTOGRAM..].iter().zip(WITHIN_MILLIS) {
            assert_eq!(*column, format!("within_{bound}"));
        }
        assert_eq!(COLUMNS[HISTOGRAM + bucket(Duration::from_millis(5))], "within_5");
        assert_eq!(COLUMNS[HISTOGRAM + bucket(Duration::from_micros(5001))], "within_10");
        assert_eq!(COLUMNS[HISTOGRAM + bucket(Duration::MAX)], "slower");
    }
    #[test]
    fn each_class_of_answers_has_a_column() {
        let column = |status| COLUMNS[ANSWERS + status_class(status)];
        assert_eq!(column(None), "no_answer");
        assert_eq!((column(Some(204)), column(Some(503))), ("status_2xx", "status_5xx"));
        assert_eq!((column(Some(101)), column(Some(999))), ("status_1xx", "status_5xx"));
        assert_eq!(COLUMNS.len(), ANSWERS + 6);
    }
}
