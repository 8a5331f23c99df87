//! The statements of the ledgers, for any table name.

use super::{POSTGRES_MIGRATION, SQLITE_MIGRATION, Table};

/// For PostgreSQL.
#[derive(Clone, Debug)]
pub struct PostgresStatements {
    /// Marks the event `$1` of the type `$2` with the payload `$3`. Returns the number of the transaction, or no row if the
    /// event is already marked. Waits for an uncommitted transaction that has marked it.
    pub mark: String,
    /// Whether the mark of `$1` has one of the payloads `$2` and `$3`. A mark without a payload, of another program, matches.
    pub compare: String,
    /// Removes up to `$2` marks older than `$1` seconds, in batches that lock nothing for long. Skips marks that another
    /// process is removing.
    pub clean: String,
    /// Creates the table in its own transaction, under a lock: with `IF NOT EXISTS` alone, processes that start at once may
    /// fail.
    pub migrate: String,
    /// Fails if an existing table lacks columns or a unique id.
    pub check: String,
    /// Stores that the event `$1` of the type `$2` failed with the error `$3`.
    pub note_failure: String,
    /// Type, error and time of the last failure of the event `$1`, unless it is marked.
    pub failure: String,
    /// Removes up to `$2` failures older than `$1` seconds.
    pub clean_failures: String,
    /// Adds `$1` new events and `$2` duplicates to the counts of this hour.
    pub count: String,
    /// The new events and the duplicates of the last `$1` seconds, by whole hours, of which the present one is the last.
    pub counts: String,
    /// Removes the counts of hours older than `$1` seconds.
    pub clean_counts: String,
}

const NOTE_FAILURE: &str = "INSERT INTO webhook_events_failures (event_id, event_type, error, failed_at)
    VALUES ($1, $2, $3, timezone('utc', now()))
    ON CONFLICT (event_id) DO UPDATE SET event_type = EXCLUDED.event_type, error = EXCLUDED.error,
        failed_at = EXCLUDED.failed_at";

const FAILURE: &str = "SELECT event_type, error, to_char(failed_at, 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')
    FROM webhook_events_failures WHERE event_id = $1
        AND NOT EXISTS (SELECT 1 FROM webhook_events WHERE event_id = $1)";

const CLEAN_FAILURES: &str = "DELETE FROM webhook_events_failures WHERE event_id = ANY (ARRAY (
    SELECT event_id FROM webhook_events_failures WHERE failed_at < timezone('utc', now()) - make_interval(secs => $1)
    ORDER BY failed_at LIMIT $2 FOR UPDATE SKIP LOCKED))";

const COUNT: &str = "INSERT INTO webhook_events_counts (hour, new_events, duplicates)
    VALUES (date_trunc('hour', timezone('utc', now())), $1, $2)
    ON CONFLICT (hour) DO UPDATE SET new_events = webhook_events_counts.new_events + EXCLUDED.new_events,
        duplicates = webhook_events_counts.duplicates + EXCLUDED.duplicates";

const COUNTS: &str = "SELECT COALESCE(SUM(new_events), 0)::bigint, COALESCE(SUM(duplicates), 0)::bigint
    FROM webhook_events_counts
    WHERE hour > date_trunc('hour', timezone('utc', now())) - make_interval(secs => $1)";

const CLEAN_COUNTS: &str =
    "DELETE FROM webhook_events_counts WHERE hour < timezone('utc', now()) - make_interval(secs => $1)";

const MARK: &str = "INSERT INTO webhook_events (event_id, event_type, payload, processed_at)
    VALUES ($1, $2, $3::text::jsonb, timezone('utc', now())) ON CONFLICT (event_id) DO NOTHING RETURNING txid_current()";

const COMPARE: &str =
    "SELECT COALESCE(payload::jsonb = $2::text::jsonb OR payload::jsonb = $3::text::jsonb, true)
    FROM webhook_events WHERE event_id = $1";

const CLEAN: &str = "DELETE FROM webhook_events WHERE event_id = ANY (ARRAY (
    SELECT event_id FROM webhook_events WHERE processed_at < timezone('utc', now()) - make_interval(secs => $1)
    ORDER BY processed_at LIMIT $2 FOR UPDATE SKIP LOCKED))";

const ONE_AT_A_TIME: &str = "SELECT pg_advisory_xact_lock(hashtext('aldaba webhook_events'))";

const CHECK: &str = "EXPLAIN INSERT INTO webhook_events (event_id, event_type, payload, processed_at)
    VALUES ('', '', '{}'::jsonb, timezone('utc', now())) ON CONFLICT (event_id) DO NOTHING";

impl PostgresStatements {
    /// The statements for a table.
    pub fn of(table: &Table) -> Self {
        let migrate = format!("BEGIN READ WRITE; {ONE_AT_A_TIME}; {POSTGRES_MIGRATION}; COMMIT");
        Self {
            mark: table.statement(MARK),
            compare: table.statement(COMPARE),
            clean: table.statement(CLEAN),
            migrate: table.statement(&migrate),
            check: table.statement(CHECK),
            note_failure: table.statement(NOTE_FAILURE),
            failure: table.statement(FAILURE),
            clean_failures: table.statement(CLEAN_FAILURES),
            count: table.statement(COUNT),
            counts: table.statement(COUNTS),
            clean_counts: table.statement(CLEAN_COUNTS),
        }
    }

    /// The statement before each commit. It fails unless the transaction with this number is open and has not failed: a bare
    /// `COMMIT` of a failed transaction rolls back and reports success, and it does not notice that the handler ended the
    /// transaction and began another. The error is `division_by_zero`.
    ///
    /// It also turns `synchronous_commit` on for this commit: after a 200 the sender does not send the event again.
    pub fn before_commit(transaction: i64) -> String {
        format!(
            "SELECT 1 / (COALESCE(txid_current_if_assigned(), 0) = {transaction})::int, \
             CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END"
        )
    }
}

/// For SQLite.
#[derive(Clone, Debug)]
pub struct SqliteStatements {
    /// The payload of the event `?1`, if it is marked. It may be null in a table of another program.
    pub find: String,
    /// Marks the event `?1` of the type `?2` with the payload `?3`, unless it is marked.
    pub mark: String,
    /// Removes up to `?2` marks older than `?1`, as in `-60 seconds`. Marks of other programs with a numeric time stay.
    pub clean: String,
    /// Creates the table.
    pub migrate: String,
    /// Stores that the event `?1` of the type `?2` failed with the error `?3`.
    pub note_failure: String,
    /// Type, error and time of the last failure of the event `?1`, unless it is marked.
    pub failure: String,
    /// Removes up to `?2` failures older than `?1`, as in `-60 seconds`.
    pub clean_failures: String,
    /// Adds `?1` new events and `?2` duplicates to the counts of this hour.
    pub count: String,
    /// The new events and the duplicates since `?1`, as in `-3600 seconds`, by whole hours, of which the present one is the
    /// last.
    pub counts: String,
    /// Removes the counts of hours older than `?1`, as in `-60 seconds`.
    pub clean_counts: String,
}

const SQLITE_NOTE_FAILURE: &str =
    "INSERT INTO webhook_events_failures (event_id, event_type, error, failed_at)
    VALUES (?1, ?2, ?3, strftime('%Y-%m-%d %H:%M:%f', 'now'))
    ON CONFLICT (event_id) DO UPDATE SET event_type = excluded.event_type, error = excluded.error,
        failed_at = excluded.failed_at";

const SQLITE_FAILURE: &str = "SELECT event_type, error, replace(failed_at, ' ', 'T') || 'Z'
    FROM webhook_events_failures WHERE event_id = ?1
        AND NOT EXISTS (SELECT 1 FROM webhook_events WHERE event_id = ?1)";

const SQLITE_CLEAN_FAILURES: &str = "DELETE FROM webhook_events_failures WHERE event_id IN (
    SELECT event_id FROM webhook_events_failures
    WHERE failed_at <= strftime('%Y-%m-%d %H:%M:%f', 'now', ?1) ORDER BY failed_at LIMIT ?2)";

const SQLITE_COUNT: &str = "INSERT INTO webhook_events_counts (hour, new_events, duplicates)
    VALUES (strftime('%Y-%m-%d %H:00:00', 'now'), ?1, ?2)
    ON CONFLICT (hour) DO UPDATE SET new_events = new_events + excluded.new_events,
        duplicates = duplicates + excluded.duplicates";

const SQLITE_COUNTS: &str = "SELECT COALESCE(SUM(new_events), 0), COALESCE(SUM(duplicates), 0)
    FROM webhook_events_counts
    WHERE hour > strftime('%Y-%m-%d %H:%M:%f', strftime('%Y-%m-%d %H:00:00', 'now'), ?1)";

const SQLITE_CLEAN_COUNTS: &str =
    "DELETE FROM webhook_events_counts WHERE hour < strftime('%Y-%m-%d %H:%M:%f', 'now', ?1)";

const SQLITE_FIND: &str = "SELECT CAST(payload AS TEXT) FROM webhook_events WHERE event_id = ?1";

const SQLITE_MARK: &str = "INSERT INTO webhook_events (event_id, event_type, payload, processed_at)
    VALUES (?1, ?2, ?3, strftime('%Y-%m-%d %H:%M:%f', 'now')) ON CONFLICT (event_id) DO NOTHING";

// Excludes numeric times, which sort before any text: their unit is unknown.
const SQLITE_CLEAN: &str = "DELETE FROM webhook_events WHERE event_id IN (
    SELECT event_id FROM webhook_events
    WHERE processed_at >= '' AND processed_at <= strftime('%Y-%m-%d %H:%M:%f', 'now', ?1) ORDER BY processed_at LIMIT ?2)";

impl SqliteStatements {
    /// The statements for a table.
    pub fn of(table: &Table) -> Self {
        Self {
            find: table.statement(SQLITE_FIND),
            mark: table.statement(SQLITE_MARK),
            clean: table.statement(SQLITE_CLEAN),
            migrate: table.statement(SQLITE_MIGRATION),
            note_failure: table.statement(SQLITE_NOTE_FAILURE),
            failure: table.statement(SQLITE_FAILURE),
            clean_failures: table.statement(SQLITE_CLEAN_FAILURES),
            count: table.statement(SQLITE_COUNT),
            counts: table.statement(SQLITE_COUNTS),
            clean_counts: table.statement(SQLITE_CLEAN_COUNTS),
        }
    }
}
