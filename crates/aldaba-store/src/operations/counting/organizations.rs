//! Counts of organizations: how what happens is counted, and the rows that keep it. What waits is exact in every commit; all else
//! is written together, once a second (`live.rs`).

use crate::operations::column::{Columns, FromRow, Parameter, from_row};
use crate::operations::endpoint::NOT_DELETED;
use crate::operations::transaction::{ReadingExt, Value, statements, values};
use crate::operations::{Reading, Result, Slice, Statement, Transaction};
use crate::{
    Accept, CountKind, CountedSpans, DeadLetterCounts, ExpiringCertificate, FailedEndpoints, ManualRecord,
    NewAttempt, OrganizationCounts, OrganizationCountsQuery, Record, Seq, WaitingLanes,
};
use aldaba_delivery::{Ending, EndpointId, OrgId, Reason, Timestamp};

/// How long minutes are kept.
const MINUTES_KEPT: i64 = 7 * 24 * 60;
/// How long hours are kept.
const HOURS_KEPT: i64 = 400 * 24;
/// Old rows that are removed with each row that is written. More than one, so that they all go.
const REMOVED_AT_ONCE: usize = 2;
/// Deliveries of one endpoint that are counted as deferred, at most.
const MAX_DEFERRED_COUNTED: usize = 100_000;
/// Rows of the dead letter that one statement counts.
const REASONS_AT_ONCE: usize = 5000;
/// The names of the totals of what waits: this and the id of the organization.
const WAITING: &str = "waiting ";

statements! {
    ADD_WAITING = "UPDATE total SET value = value + ?2 WHERE name = ?1";
    BEGIN_WAITING = "INSERT INTO total (name, value) VALUES (?1, ?2)";
    ALL_WAITING = "SELECT name, value FROM total WHERE name >= 'waiting ' AND name < 'waiting!'";
    TOTAL_WAITING = "SELECT CAST(coalesce(sum(value), 0) AS BIGINT) FROM total
        WHERE name >= 'waiting ' AND name < 'waiting!'";
    ADD_MINUTE = add("organization_minute", "minute");
    ADD_HOUR = add("organization_hour", "hour");
    OLD_MINUTES = "SELECT org, minute FROM organization_minute WHERE minute < ?1 ORDER BY minute, org LIMIT ?2";
    OLD_HOURS = "SELECT org, hour FROM organization_hour WHERE hour < ?1 ORDER BY hour, org LIMIT ?2";
    REMOVE_MINUTE = "DELETE FROM organization_minute WHERE org = ?1 AND minute = ?2";
    REMOVE_HOUR = "DELETE FROM organization_hour WHERE org = ?1 AND hour = ?2";
    MINUTES = of_organization("organization_minute", "minute");
    HOURS = of_organization("organization_hour", "hour");
    NEWEST_MINUTES = newest("organization_minute", "minute");
    NEWEST_HOURS = newest("organization_hour", "hour");
    FAILED = format!(
        "SELECT org, count(*) FROM endpoint WHERE health_status >= 1 AND health_status <= 2 AND {NOT_DELETED} GROUP BY org"
    );
    CERTIFICATES = format!(
        "SELECT org, min(certificate_expires_at) FROM endpoint
         WHERE certificate_expires_at IS NOT NULL AND disabled = 0 AND {NOT_DELETED} GROUP BY org"
    );
    /// The next endpoint for which deliveries wait, with the first due time.
    NEXT_LANE = "SELECT endpoint, due_at FROM delivery
        WHERE state = 0 AND endpoint > ?1 ORDER BY endpoint, due_at, seq LIMIT 1";
    FIRST_TRIED = "SELECT clock_start FROM delivery
        WHERE state = 0 AND clock_start < due_at AND endpoint = ?1 ORDER BY clock_start LIMIT 1";
    /// Whether anything is sent to the endpoint.
    OPEN = format!(
        "SELECT org, CASE WHEN health_status = 0 AND disabled = 0 AND {NOT_DELETED} THEN 1 ELSE 0 END
         FROM endpoint WHERE id = ?1"
    );
    HELD = "SELECT count(*) FROM (SELECT seq FROM delivery WHERE state = 0 AND endpoint = ?1 LIMIT ?2) AS held";
    SCHEDULED = "SELECT count(*) FROM (SELECT seq FROM delivery
        WHERE state = 0 AND endpoint = ?1 AND due_at > ?2 AND clock_start = due_at LIMIT ?3) AS scheduled";
    DEAD_LETTER = "SELECT seq, reason FROM dead_letter WHERE seq > ?1 ORDER BY seq LIMIT ?2";
}

fn add(table: &str, span: &str) -> String {
    let columns = CountKind::COLUMNS;
    let marks: Vec<_> = (3..3 + columns.len()).map(|number| format!("?{number}")).collect();
    let sums = columns.map(|column| format!("{column} = {table}.{column} + excluded.{column}")).join(", ");
    format!(
        "INSERT INTO {table} (org, {span}, {}) VALUES (?1, ?2, {})
         ON CONFLICT (org, {span}) DO UPDATE SET {sums}",
        columns.join(", "),
        marks.join(", ")
    )
}

fn of_organization(table: &str, span: &str) -> String {
    format!(
        "SELECT {span}, {} FROM {table} WHERE org = ?1 AND {span} BETWEEN ?2 AND ?3 ORDER BY {span} LIMIT ?4",
        CountKind::COLUMNS.join(", ")
    )
}

fn newest(table: &str, span: &str) -> String {
    format!(
        "SELECT org, {span}, {} FROM {table} WHERE {span} BETWEEN ?1 AND ?2 ORDER BY {span}, org",
        CountKind::COLUMNS.join(", ")
    )
}

impl FromRow for OrganizationCounts {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        Self::of_columns(|| columns.take())
    }
}

impl FromRow for FailedEndpoints {
    fn from_row(columns: &mut Columns<'_>) -> Result<Self> {
        let (org, endpoints) = columns.take()?;
        Ok(Self { org, endpoints })
    }
}

from_row!(ExpiringCertificate { org, at });

impl OrganizationCounts {
    pub(crate) fn accepted(&mut self, accept: &Accept, deliveries: usize) {
        self.count(CountKind::Accepted, 1);
        self.count(CountKind::Deliveries, deliveries as u64);
        self.count(CountKind::InboundReceived, u64::from(accept.is_of_source()));
    }

    pub(crate) fn recorded(&mut self, record: &Record) {
        let ending = record.transition.ending();
        if let Some(attempt) = &record.attempt {
            self.attempted(attempt, ending.is_none());
            self.count(CountKind::Retries, u64::from(record.attempts_before > 0));
        }
        let Some(ending) = ending else { return };
        if let Ending::Dead(reason) = ending
            && reason.is_manual()
        {
            return self.count_dead(reason);
        }
        let attempts = u64::from(record.attempts_before) + u64::from(record.attempt.is_some());
        let retries = attempts.saturating_sub(1);
        self.count(CountKind::SettledAfterRetry, u64::from(retries > 0));
        self.count(CountKind::SettledRetries, retries);
        match ending {
            Ending::Delivered => {
                self.count(CountKind::Delivered, 1);
                self.count_latency(record.at.since(record.clock_start));
            }
            Ending::Dead(reason) => self.count_dead(reason),
        }
    }

    /// A manual attempt of a settled delivery. It plans no other one.
    pub(crate) fn resent(&mut self, resent: &ManualRecord) {
        self.attempted(&resent.attempt, false);
    }

    fn attempted(&mut self, attempt: &NewAttempt, another_is_planned: bool) {
        let status = match (attempt.success, another_is_planned) {
            (true, _) => CountKind::Success,
            (false, true) => CountKind::Retry,
            (false, false) => CountKind::Failed,
        };
        self.count(status, 1);
        self.count_attempt_time(attempt.duration);
    }
}

/// Changes how many deliveries of an organization wait. The row shares its page with the number of the commit, which every
/// commit changes anyway: a table of its own would be another page in each commit.
pub(crate) fn add_waiting(tx: &dyn Transaction, org: OrgId, more: i64) -> Result<()> {
    let name = waiting_name(org);
    if tx.execute(&ADD_WAITING, values![name, more])? == 0 {
        tx.execute(&BEGIN_WAITING, values![name, more])?;
    }
    Ok(())
}

fn waiting_name(org: OrgId) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut name = String::with_capacity(WAITING.len() + 40);
    name.push_str(WAITING);
    for byte in org.as_bytes() {
        name.push(char::from(DIGITS[usize::from(byte >> 4)]));
        name.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    name
}

fn organization_of(name: &str) -> Option<OrgId> {
    let digits = name.strip_prefix(WAITING)?;
    let mut bytes = [0; 20];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(OrgId::from_bytes(bytes))
}

/// How many deliveries of each organization wait.
pub(crate) fn all_waiting(reading: &dyn Reading) -> Result<Vec<(OrgId, u64)>> {
    let found: Vec<(String, i64)> = reading.all(&ALL_WAITING, values![])?;
    let of =
        |(name, value): (String, i64)| Some((organization_of(&name)?, u64::try_from(value).unwrap_or(0)));
    Ok(found.into_iter().filter_map(of).collect())
}

/// How many deliveries wait, in all.
pub(crate) fn total_waiting(reading: &dyn Reading) -> Result<u64> {
    Ok(u64::try_from(reading.number(&TOTAL_WAITING, values![])?).unwrap_or(0))
}

/// Adds to a minute and its hour, and removes old ones.
pub(crate) fn add_counts(
    tx: &dyn Transaction,
    (org, minute): (OrgId, i64),
    counts: &OrganizationCounts,
) -> Result<()> {
    let hour = minute.div_euclid(60);
    let add = |statement: &'static Statement, span: i64| {
        let mut parameters: Vec<Value<'_>> = vec![org.value(), span.value()];
        parameters.extend(counts.columns().iter().map(Parameter::value));
        tx.execute(statement, &parameters)
    };
    add(&ADD_MINUTE, minute)?;
    add(&ADD_HOUR, hour)?;
    remove_old(tx, (&OLD_MINUTES, &REMOVE_MINUTE), minute - MINUTES_KEPT)?;
    remove_old(tx, (&OLD_HOURS, &REMOVE_HOUR), hour - HOURS_KEPT)
}

fn remove_old(
    tx: &dyn Transaction,
    (old, remove): (&'static Statement, &'static Statement),
    before: i64,
) -> Result<()> {
    let found: Vec<(OrgId, i64)> = tx.all(old, values![before, REMOVED_AT_ONCE])?;
    for (org, span) in found {
        tx.execute(remove, values![org, span])?;
    }
    Ok(())
}

pub(crate) fn counts(
    reading: &dyn Reading,
    query: &OrganizationCountsQuery,
) -> Result<Vec<(i64, OrganizationCounts)>> {
    let (statement, spans) = match &query.spans {
        CountedSpans::Minutes(spans) => (&MINUTES, spans),
        CountedSpans::Hours(spans) => (&HOURS, spans),
    };
    let most = OrganizationCountsQuery::MAX_ROWS;
    reading.all(statement, values![query.org, spans.start(), spans.end(), most])
}

/// The counts of all organizations.
pub(crate) fn newest_counts(
    reading: &dyn Reading,
    spans: &CountedSpans,
) -> Result<Vec<(OrgId, i64, OrganizationCounts)>> {
    let (statement, spans) = match spans {
        CountedSpans::Minutes(spans) => (&NEWEST_MINUTES, spans),
        CountedSpans::Hours(spans) => (&NEWEST_HOURS, spans),
    };
    reading.all(statement, values![spans.start(), spans.end()])
}

pub(crate) fn failed(reading: &dyn Reading) -> Result<Vec<FailedEndpoints>> {
    reading.all(&FAILED, values![])
}

pub(crate) fn expiring_certificates(reading: &dyn Reading) -> Result<Vec<ExpiringCertificate>> {
    reading.all(&CERTIFICATES, values![])
}

/// What was never tried is due since it began to wait; the rest is looked for by when it began.
pub(crate) fn waiting_lanes(
    reading: &dyn Reading,
    slice: &Slice<'_>,
    after: Option<EndpointId>,
    now: Timestamp,
) -> Result<WaitingLanes> {
    let mut found = WaitingLanes::default();
    let mut reached = after.unwrap_or(EndpointId::from_bytes([0; 20]));
    loop {
        let lane: Option<(EndpointId, Timestamp)> = reading.one(&NEXT_LANE, values![reached])?;
        let Some((endpoint, due_at)) = lane else { return Ok(WaitingLanes { next: None, ..found }) };
        reached = endpoint;
        if let Some((org, is_open)) = reading.one::<(OrgId, bool)>(&OPEN, values![endpoint])? {
            let deferred = if is_open {
                let tried: Option<Timestamp> = reading.one(&FIRST_TRIED, values![endpoint])?;
                let oldest = found.oldest.entry(org).or_insert(due_at);
                *oldest = tried.into_iter().chain([due_at, *oldest]).min().unwrap_or(due_at);
                reading.number(&SCHEDULED, values![endpoint, now, MAX_DEFERRED_COUNTED])?
            } else {
                reading.number(&HELD, values![endpoint, MAX_DEFERRED_COUNTED])?
            };
            if deferred > 0 {
                *found.deferred.entry(org).or_default() += u64::try_from(deferred).unwrap_or(0);
            }
        }
        if slice.is_over() {
            return Ok(WaitingLanes { next: Some(reached), ..found });
        }
    }
}

pub(crate) fn dead_letter_reasons(
    reading: &dyn Reading,
    slice: &Slice<'_>,
    after: Option<Seq>,
) -> Result<DeadLetterCounts> {
    let mut counts = Reason::ALL.map(|reason| (reason, 0));
    let mut reached = after.unwrap_or(Seq(0));
    loop {
        let found: Vec<(Seq, Reason)> = reading.all(&DEAD_LETTER, values![reached, REASONS_AT_ONCE])?;
        for (_, reason) in &found {
            for (counted, count) in &mut counts {
                *count += u64::from(counted == reason);
            }
        }
        let is_last = found.len() < REASONS_AT_ONCE;
        if let Some((seq, _)) = found.last() {
            reached = *seq;
        }
        if is_last || slice.is_over() {
            return Ok(DeadLetterCounts { counts: counts.to_vec(), next: (!is_last).then_some(reached) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_total_names_its_organization() {
        let org = OrgId::from_bytes([0xa7; 20]);
        assert_eq!(waiting_name(org), format!("waiting {}", "a7".repeat(20)));
        assert_eq!(organization_of(&waiting_name(org)), Some(org));
        assert_eq!(organization_of("waiting zz"), None);
    }
}
