//! The numbered steps from an empty file to the schema of this version.

use super::failure::describe;
use super::{OpenError, program};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How often a long migration says in the log where it is.
pub(super) const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// Step n brings a database from version n − 1 to version n. A step that was released is never
/// edited: databases in the field have run it.
const STEPS: &[&str] = &[
    include_str!("schema/0001_first.sql"),
    include_str!("schema/0002_http2.sql"),
    include_str!("schema/0003_policy.sql"),
    include_str!("schema/0004_replay.sql"),
    include_str!("schema/0005_dead_letter.sql"),
    include_str!("schema/0006_profile.sql"),
    include_str!("schema/0007_ordering.sql"),
    include_str!("schema/0008_retention.sql"),
    include_str!("schema/0009_health.sql"),
    include_str!("schema/0010_replay_bounds.sql"),
    include_str!("schema/0011_endpoint_url.sql"),
    include_str!("schema/0012_history.sql"),
    include_str!("schema/0013_event_type.sql"),
    include_str!("schema/0014_api_keys.sql"),
    include_str!("schema/0015_audit.sql"),
    include_str!("schema/0016_filter.sql"),
    include_str!("schema/0017_message_count.sql"),
    include_str!("schema/0018_notice.sql"),
    include_str!("schema/0019_alert_email.sql"),
    include_str!("schema/0020_dispatch.sql"),
    include_str!("schema/0021_notice_org.sql"),
    include_str!("schema/0022_source.sql"),
    include_str!("schema/0023_deleted_applications.sql"),
    include_str!("schema/0024_gate_org.sql"),
    include_str!("schema/0025_stop_dates.sql"),
    include_str!("schema/0026_places.sql"),
    include_str!("schema/0027_payload_retention.sql"),
    include_str!("schema/0028_retries.sql"),
    include_str!("schema/0029_audit_changes.sql"),
    include_str!("schema/0030_numbers.sql"),
    include_str!("schema/0031_endpoint_owner.sql"),
    include_str!("schema/0032_organization_counts.sql"),
    include_str!("schema/0033_mail.sql"),
    include_str!("schema/0034_alert.sql"),
    include_str!("schema/0035_mail_reader.sql"),
    include_str!("schema/0036_observing.sql"),
    include_str!("schema/0037_mail_pace.sql"),
    include_str!("schema/0038_erasure.sql"),
];

/// The schema that this version makes.
pub fn known_schema() -> i64 {
    STEPS.len() as i64
}

/// How many steps a database has run, without changing it. One that this version does not know is refused.
pub(super) fn version(connection: &Connection, file: &Path) -> Result<i64, OpenError> {
    let failed = |error: rusqlite::Error| OpenError::database(file, &error);
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    let known = STEPS.len() as i64;
    if !(0..=known).contains(&found) {
        let program = program::last(connection);
        return Err(OpenError::FromTheFuture { file: file.to_owned(), program, found, known });
    }
    Ok(found)
}

/// Where a migration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) step: i64,
    pub(super) of: i64,
}

/// Brings a database to the present schema. All steps are one transaction: they have been run, or the database is as it was.
/// While it lasts, `report` hears now and then where it is.
pub(super) fn migrate(
    connection: &Connection,
    file: &Path,
    every: Duration,
    report: impl Fn(Progress) + Send,
) -> Result<(), OpenError> {
    let (found, known) = (version(connection, file)?, STEPS.len() as i64);
    if found == known {
        return Ok(());
    }
    let step = AtomicI64::new(found + 1);
    let (over, wait) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let step = &step;
        let reporting = move || {
            while wait.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                report(Progress { step: step.load(Ordering::Relaxed), of: known });
            }
        };
        if let Err(error) =
            std::thread::Builder::new().name("aldaba-migrate".into()).spawn_scoped(scope, reporting)
        {
            tracing::warn!(%error, "nothing can say how far the migration is");
        }
        let migrated = run_steps(connection, step).map_err(|error| OpenError::Migration {
            file: file.to_owned(),
            version: step.load(Ordering::Relaxed),
            message: describe(&error),
        });
        drop(over);
        migrated
    })
}

/// Runs the steps from this one on.
fn run_steps(connection: &Connection, at: &AtomicI64) -> rusqlite::Result<()> {
    let first = at.load(Ordering::Relaxed);
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    for (version, step) in (1..).zip(STEPS).skip(first as usize - 1) {
        at.store(version, Ordering::Relaxed);
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", version)?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests;
