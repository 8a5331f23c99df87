//! The numbered steps from an empty file to the schema of this version.

use super::OpenError;
use super::failure::describe;
use rusqlite::Connection;
use std::path::Path;

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
];

/// How many steps a database has run, without changing it. One that this version does not know is refused.
pub(super) fn version(connection: &Connection, file: &Path) -> Result<i64, OpenError> {
    let failed = |error: rusqlite::Error| OpenError::database(file, &error);
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    let known = STEPS.len() as i64;
    if !(0..=known).contains(&found) {
        return Err(OpenError::FromTheFuture { file: file.to_owned(), found, known });
    }
    Ok(found)
}

pub(super) fn migrate(connection: &Connection, file: &Path) -> Result<(), OpenError> {
    let found = version(connection, file)?;
    for (version, step) in (1..).zip(STEPS).skip(found as usize) {
        // The version is part of the transaction: a step has been run, or it has not.
        let step = format!("BEGIN IMMEDIATE; {step}\nPRAGMA user_version = {version}; COMMIT;");
        connection.execute_batch(&step).map_err(|error| OpenError::Migration {
            file: file.to_owned(),
            version,
            message: describe(&error),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_run_once() {
        let connection = Connection::open_in_memory().unwrap();
        migrate(&connection, Path::new("memory")).unwrap();
        migrate(&connection, Path::new("memory")).unwrap();
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(version, STEPS.len() as i64);
    }

    #[test]
    fn endpoints_from_before_http2_do_not_speak_it() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(STEPS[0]).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        connection
            .execute_batch(
                "INSERT INTO endpoint (id, app, org, disabled, version, created_at, updated_at, health_status,
                     health_failure_count, health_probe_gap, policy, url, description, event_types, channels,
                     metadata, sealed)
                 VALUES (x'01', x'02', x'03', 0, 1, 0, 0, 0, 0, 0, 'standard', 'https://a', '', '', '', '{}', x'')",
            )
            .unwrap();
        migrate(&connection, Path::new("memory")).unwrap();
        let http2: bool = connection.query_row("SELECT http2 FROM endpoint", [], |row| row.get(0)).unwrap();
        assert!(!http2);
    }

    #[test]
    fn notices_from_before_organizations_took_turns_are_counted() {
        let connection = Connection::open_in_memory().unwrap();
        let without: Vec<_> = STEPS.iter().take_while(|step| !step.contains("notice_count")).collect();
        without.iter().for_each(|step| connection.execute_batch(step).unwrap());
        connection.pragma_update(None, "user_version", without.len() as i64).unwrap();
        connection
            .execute_batch("INSERT INTO notice (org, event, body) VALUES (x'01', 'a', ''), (x'02', 'a', ''), (x'01', 'a', '')")
            .unwrap();
        migrate(&connection, Path::new("memory")).unwrap();
        let mut counts = connection.prepare("SELECT org, waiting, left_out FROM notice_count").unwrap();
        let rows: Vec<(Vec<u8>, i64, i64)> = counts
            .query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(rows, [(vec![1], 2, 0), (vec![2], 1, 0)]);
    }

    #[test]
    fn gates_of_applications_get_their_organization_and_those_of_whole_hosts_are_dropped() {
        let connection = Connection::open_in_memory().unwrap();
        let without: Vec<_> = STEPS.iter().take_while(|step| !step.contains("gate_of_org")).collect();
        without.iter().for_each(|step| connection.execute_batch(step).unwrap());
        connection.pragma_update(None, "user_version", without.len() as i64).unwrap();
        connection
            .execute_batch(
                "INSERT INTO application (id, org, name, version, created_at, updated_at, metadata)
                 VALUES (x'02', x'0a', 'a', 1, 0, 0, '{}');
                 INSERT INTO gate (origin, scope, failures, held_until, hold, probing, since, why)
                 VALUES ('https://a:443', x'', 5, 9000, 1000000000, 0, 8000, 'no'),
                     ('https://a:443', x'02', 6, 70000, 32000000000, 1, 9000, 'HTTP 503'),
                     ('https://a:443', x'03', 7, 70000, 32000000000, 0, 9000, 'of nobody');",
            )
            .unwrap();
        migrate(&connection, Path::new("memory")).unwrap();
        let row = "hex(org) || ' ' || origin || ' ' || hex(scope) || ' ' || failures || ' ' || held_until || ' ' || hold
            || ' ' || failed_at || ' ' || probing || ' ' || since || ' ' || why";
        let mut gates = connection.prepare(&format!("SELECT {row} FROM gate")).unwrap();
        let rows: Vec<String> =
            gates.query_map((), |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(rows, ["0A https://a:443 02 6 70000 32000000000 38000 1 9000 HTTP 503"]);
    }

    #[test]
    fn what_died_before_there_was_a_dead_letter_is_in_it() {
        let connection = Connection::open_in_memory().unwrap();
        let without: Vec<_> = STEPS.iter().take_while(|step| !step.contains("dead_letter")).collect();
        without.iter().for_each(|step| connection.execute_batch(step).unwrap());
        connection.pragma_update(None, "user_version", without.len() as i64).unwrap();
        connection
            .execute_batch(
                "INSERT INTO endpoint (id, app, org, disabled, version, created_at, updated_at, health_status,
                     health_failure_count, health_probe_gap, policy, url, description, event_types, channels,
                     metadata, sealed)
                 VALUES (x'01', x'02', x'03', 0, 1, 0, 0, 0, 0, 0, 'standard', 'https://a', '', '', '', '{}', x'');
                 INSERT INTO message (app, id, created_at, event_type, channels, payload)
                 VALUES (x'02', x'04', 0, 'paid', '', x'');
                 INSERT INTO delivery (endpoint, message, state, due_at, clock_start, settled_at, reason)
                 VALUES (x'01', x'04', 2, 0, 0, 70, 3), (x'01', x'05', 2, 0, 0, 80, 1), (x'01', x'04', 1, 0, 0, 90, NULL),
                     (x'01', x'04', 0, 0, 0, NULL, NULL);",
            )
            .unwrap();
        migrate(&connection, Path::new("memory")).unwrap();
        let mut letter = connection
            .prepare("SELECT seq, settled_at, reason, event_type FROM dead_letter ORDER BY seq")
            .unwrap();
        let rows: Vec<(i64, i64, i64, String)> = letter
            .query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(rows, [(1, 70, 3, "paid".into()), (2, 80, 1, String::new())]);
    }
}
