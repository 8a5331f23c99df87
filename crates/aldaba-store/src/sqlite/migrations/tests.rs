use super::*;
use crate::conformance::Scene;
use crate::sqlite::{Options, SqliteStore};
use crate::{DeliveryState, Recorded, Store};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

fn to_present(connection: &Connection) {
    migrate(connection, Path::new("memory"), REPORT_INTERVAL, |_| {}).unwrap();
}

#[test]
fn every_step_is_run_once() {
    let connection = Connection::open_in_memory().unwrap();
    to_present(&connection);
    to_present(&connection);
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
    to_present(&connection);
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
    to_present(&connection);
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
    to_present(&connection);
    let row = "hex(org) || ' ' || origin || ' ' || hex(scope) || ' ' || failures || ' ' || held_until || ' ' || hold
        || ' ' || failed_at || ' ' || probing || ' ' || since || ' ' || why";
    let mut gates = connection.prepare(&format!("SELECT {row} FROM gate")).unwrap();
    let rows: Vec<String> = gates.query_map((), |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
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
    to_present(&connection);
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

#[test]
fn addresses_from_before_mails_are_confirmed_unless_a_portal_may_have_given_them() {
    let connection = Connection::open_in_memory().unwrap();
    let without: Vec<_> = STEPS.iter().take_while(|step| !step.contains("mail_address")).collect();
    without.iter().for_each(|step| connection.execute_batch(step).unwrap());
    connection.pragma_update(None, "user_version", without.len() as i64).unwrap();
    let endpoint = |id: &str, owner: &str| {
        format!(
            "INSERT INTO endpoint (id, app, org, disabled, version, created_at, updated_at, health_status,
                 health_failure_count, health_probe_gap, policy, url, description, event_types, channels,
                 metadata, sealed, owner_email)
             VALUES (x'{id}', x'02', x'03', 0, 1, 0, 0, 0, 0, 0, 'standard', 'https://a', '', '', '', '{{}}', x'', {owner});"
        )
    };
    let audit = |id: &str, endpoint: &str, actor: u8, action: &str, fields: &str| {
        format!(
            "INSERT INTO audit (id, org, app, endpoint, actor_kind, action, resource, fields, count)
             VALUES (x'{id}', x'03', x'02', x'{endpoint}', {actor}, '{action}', '', '{fields}', 1);"
        )
    };
    let rows = [
        endpoint("a1", "'operator@example.com'"),
        endpoint("a2", "'portal@example.com'"),
        endpoint("a3", "'made@example.com'"),
        endpoint("a4", "NULL"),
        audit("b1", "a1", 0, "endpoint.update", "ownerEmail"),
        audit("b2", "a1", 2, "endpoint.update", "name"),
        audit("b3", "a2", 2, "endpoint.update", "name,ownerEmail"),
        audit("b4", "a3", 2, "endpoint.create", ""),
    ];
    connection.execute_batch(&rows.concat()).unwrap();
    to_present(&connection);
    let mut confirmed =
        connection.prepare("SELECT address FROM mail_address WHERE confirmed_at IS NOT NULL").unwrap();
    let found: Vec<String> =
        confirmed.query_map((), |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(found, ["operator@example.com"]);
}

#[test]
fn addresses_from_before_readers_are_one_where_only_letters_in_upper_case_differ_and_stay_confirmed() {
    let connection = Connection::open_in_memory().unwrap();
    let without: Vec<_> = STEPS.iter().take_while(|step| !step.contains("reader")).collect();
    without.iter().for_each(|step| connection.execute_batch(step).unwrap());
    connection.pragma_update(None, "user_version", without.len() as i64).unwrap();
    connection
        .execute_batch(
            "INSERT INTO mail_address (app, address, asked_at, confirmed_at) VALUES
                 (x'01', 'A@Example.com', 5, 9), (x'01', 'a@example.com', 7, NULL), (x'01', 'B@example.com', 8, NULL);
             INSERT INTO mail_unsubscribed (subject, address, at) VALUES
                 (x'01', 'A@example.com', 1), (x'01', 'a@example.com', 2), (x'02', 'A@example.com', 3);
             INSERT INTO mail (seq, org, address, kind, body, more, created_at, due_at, attempts)
             VALUES (1, x'03', 'A@Example.com', 'a', '{}', 0, 0, 0, 0);",
        )
        .unwrap();
    to_present(&connection);
    let texts = |sql: &str| -> Vec<String> {
        let mut found = connection.prepare(sql).unwrap();
        found.query_map((), |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let addresses =
        "SELECT address || ' ' || coalesce(confirmed_at, 'no') || ' ' || given_at FROM mail_address";
    assert_eq!(texts(addresses), ["a@example.com 9 7", "b@example.com no 8"]);
    let unsubscribed = "SELECT hex(subject) || ' ' || address FROM mail_unsubscribed";
    assert_eq!(texts(unsubscribed), ["01 a@example.com", "02 a@example.com"]);
    assert_eq!(texts("SELECT address || ' ' || reader FROM mail"), ["A@Example.com a@example.com"]);
}

#[test]
fn an_outage_of_a_failed_endpoint_that_was_told_stays_told() {
    let connection = Connection::open_in_memory().unwrap();
    let without: Vec<_> = STEPS.iter().take_while(|step| !step.contains("last_at")).collect();
    without.iter().for_each(|step| connection.execute_batch(step).unwrap());
    connection.pragma_update(None, "user_version", without.len() as i64).unwrap();
    connection
        .execute_batch("INSERT INTO mail_outage (endpoint, level) VALUES (x'01', 1), (x'02', 2);")
        .unwrap();
    to_present(&connection);
    let mut levels = connection.prepare("SELECT level FROM mail_outage ORDER BY endpoint").unwrap();
    let found: Vec<u32> = levels.query_map((), |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(found, [1, 3], "warned, and failed behind the step between them");
}

/// A data folder with the schema of a former version, and so many messages that were delivered at their second attempt.
fn past(folder: &Path, version: usize, messages: usize) {
    let [org, app, endpoint] = ["01", "02", "03"].map(|byte| format!("x'{}'", byte.repeat(20)));
    let connection = Connection::open(folder.join("aldaba.db")).unwrap();
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
    STEPS[..version].iter().for_each(|step| connection.execute_batch(step).unwrap());
    connection.pragma_update(None, "user_version", version as i64).unwrap();
    connection
        .execute_batch(&format!(
            "BEGIN;
             INSERT INTO application (id, org, name, version, created_at, updated_at, metadata)
             VALUES ({app}, {org}, 'a', 1, 0, 0, '{{}}');
             INSERT INTO endpoint (id, app, org, disabled, version, created_at, updated_at, health_status,
                 health_failure_count, health_probe_gap, policy, url, description, event_types, channels, metadata,
                 sealed)
             VALUES ({endpoint}, {app}, {org}, 0, 1, 0, 0, 0, 0, 0, 'standard', 'https://a', '', '', '', '{{}}',
                 x'');
             CREATE TEMP VIEW number AS WITH RECURSIVE number (i) AS
                 (SELECT 1 UNION ALL SELECT i + 1 FROM number WHERE i < {messages})
                 SELECT i, CAST(printf('%020d', i) AS BLOB) AS id FROM number;
             INSERT INTO message (app, id, created_at, event_type, channels, event_id, payload, payload_until)
             SELECT {app}, id, i, 'invoice.paid', '', 'event ' || i, randomblob(300), i FROM number;
             INSERT INTO unique_key (owner, kind, key, resource)
             SELECT {app}, 0, CAST('event ' || i AS BLOB), id FROM number;
             INSERT INTO delivery (endpoint, message, state, due_at, attempts, clock_start, settled_at)
             SELECT {endpoint}, id, 1, i, 2, i, i FROM number;
             INSERT INTO attempt (id, seq, endpoint, message, started_at, duration, status_code, made_by, success,
                 error, response)
             SELECT CAST(printf('%019d%d', i, n) AS BLOB), i, {endpoint}, id, i, 1000,
                 CASE n WHEN 1 THEN 503 ELSE 200 END, 0, n - 1, '', x'6f6b'
             FROM number, (SELECT 1 AS n UNION ALL SELECT 2);
             UPDATE total SET value = 2 * {messages} WHERE name = 'types_counted';
             COMMIT;"
        ))
        .unwrap();
}

fn version_of(folder: &Path) -> i64 {
    let connection = Connection::open(folder.join("aldaba.db")).unwrap();
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

fn files(folder: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    files.map(|file| (file.file_name(), std::fs::read(file.path()).unwrap())).collect()
}

#[test]
fn a_migration_that_fails_at_its_last_step_leaves_the_folder_as_it_was_and_the_next_start_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    past(folder.path(), 27, 2000);
    let before = files(folder.path());
    let pages = before[&OsString::from("aldaba.db")].len() / 4096;
    let full = Options { largest_file_pages: Some(pages as u32 + 10), ..Options::new(folder.path()) };
    match SqliteStore::open(&full) {
        Err(OpenError::Migration { version, .. }) => {
            assert!(version > 28, "other steps have been run before");
        }
        other => panic!("{other:?}"),
    }
    assert!(files(folder.path()) == before, "something has changed");
    assert_eq!(version_of(folder.path()), 27, "the former version can go on");
    drop(SqliteStore::open(&Options::new(folder.path())).unwrap());
    assert_eq!(version_of(folder.path()), STEPS.len() as i64);
}

#[tokio::test]
async fn folders_of_the_last_three_versions_are_opened_with_everything_in_them_and_go_on() {
    for version in STEPS.len() - 3..STEPS.len() {
        let folder = tempfile::tempdir().unwrap();
        past(folder.path(), version, 300);
        let connection = Connection::open(folder.path().join("aldaba.db")).unwrap();
        let [org, app, endpoint] = ["01", "02", "03"].map(|byte| format!("x'{}'", byte.repeat(20)));
        connection
            .execute_batch(&format!(
                "INSERT INTO delivery (seq, endpoint, message, state, due_at, clock_start)
                 SELECT 1000, {endpoint}, id, 0, 5, 5 FROM message LIMIT 1;
                 UPDATE total SET value = 1000 WHERE name = 'numbers';
                 INSERT INTO api_key (id, org, name, prefix, digest, scope, created_at)
                 VALUES (x'0707070707070707070707070707070707070707', {org}, 'a key', 'p', x'08', 0, 0);
                 INSERT INTO setting (name, value) VALUES ('encryption-check', x'09');"
            ))
            .unwrap();
        if version >= 33 {
            let columns = "seq, org, address, kind, body, more, created_at, due_at, attempts";
            let mail = format!(
                "INSERT INTO mail ({columns}) VALUES (1001, {org}, 'a@example.com', 'a', '{{}}', 0, 0, 0, 0)"
            );
            connection.execute_batch(&mail).unwrap();
        }
        drop(connection);
        let rows = |table: &str| -> i64 {
            let connection = Connection::open(folder.path().join("aldaba.db")).unwrap();
            connection.query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get(0)).unwrap()
        };
        // There are mails from schema 33 on.
        let mails = if version >= 33 { "mail" } else { "audit" };
        let tables = [
            "application",
            "endpoint",
            "message",
            "delivery",
            "attempt",
            "unique_key",
            mails,
            "api_key",
            "setting",
        ];
        let before = tables.map(rows);
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&Options::new(folder.path())).unwrap());
        assert_eq!(version_of(folder.path()), STEPS.len() as i64);
        let after = tables.map(rows);
        // What a start adds by itself is in the settings.
        assert_eq!(after[..8], before[..8], "from schema {version}");
        assert!(after[8] > before[8], "the version that wrote it is noted");
        let app_id = aldaba_delivery::AppId::from_bytes([2; 20]);
        let message = aldaba_delivery::MessageId::from_bytes(*b"00000000000000000042");
        let deliveries = store.deliveries(message).await.unwrap();
        let [delivered] = &deliveries[..] else { panic!("{deliveries:?}") };
        assert!(matches!(delivered.state, DeliveryState::Delivered { .. }), "{delivered:?}");
        assert_eq!(delivered.attempts, 2);
        let contents = store.contents(vec![(app_id, message)]).await.unwrap();
        assert_eq!(contents[0].as_ref().map(|content| content.payload.len()), Some(300));
        assert_eq!(store.setting("encryption-check").await.unwrap(), Some(vec![9]));
        // It takes new messages, and ends them.
        let scene = Scene::new(store.clone());
        let tenant = scene.with_endpoints(1).await;
        let event = scene.event(&tenant);
        let seq = scene.accepted(&event).await;
        assert!(seq.0 > 1000, "no number is given twice");
        assert_eq!(scene.record(vec![scene.delivered(&event, seq)]).await, [Recorded::Applied]);
        let app = app.as_str();
        assert_eq!(rows(&format!("message WHERE app = {app}")), 300, "what was there stays");
    }
}

const KILL_FOLDER: &str = "ALDABA_TEST_MIGRATION_FOLDER";

/// Not a test of its own: the process that is killed. It migrates the folder and prints at which step it is.
#[test]
#[ignore = "started by the test below"]
fn migrate_until_killed() {
    let Ok(folder) = std::env::var(KILL_FOLDER) else { return };
    let file = Path::new(&folder).join("aldaba.db");
    let connection = Connection::open(&file).unwrap();
    let report = |Progress { step, .. }| println!("at step {step}");
    migrate(&connection, &file, Duration::from_micros(20), report).unwrap();
}

#[test]
fn a_migration_that_is_killed_leaves_the_former_version_or_the_present_one_and_every_row() {
    const MESSAGES: i64 = 3000;
    let program = std::env::current_exe().unwrap();
    let (mut former, mut present) = (0, 0);
    let last = STEPS.len() as i64;
    // Past the last step: it is not killed.
    for step in [28, 29, last, last, last, last + 1] {
        let folder = tempfile::tempdir().unwrap();
        past(folder.path(), 27, MESSAGES as usize);
        let mut child = std::process::Command::new(&program)
            .args(["migrate_until_killed", "--ignored", "--nocapture", "--test-threads=1"])
            .env(KILL_FOLDER, folder.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let reached = |line: &str| {
            line.split("at step ")
                .nth(1)
                .and_then(|at| at.trim().parse().ok())
                .is_some_and(|at: i64| at >= step)
        };
        let _ = lines.into_iter().any(|line| reached(&line));
        // One that has ended by itself cannot be killed.
        let _ = child.kill();
        child.wait().unwrap();
        match version_of(folder.path()) {
            27 => former += 1,
            version => {
                assert_eq!(version, STEPS.len() as i64, "killed at step {step}, between two versions");
                present += 1;
            }
        }
        drop(SqliteStore::open(&Options::new(folder.path())).unwrap());
        assert_eq!(version_of(folder.path()), STEPS.len() as i64);
        let connection = Connection::open(folder.path().join("aldaba.db")).unwrap();
        let rows = |table: &str| -> i64 {
            connection.query_row(&format!("SELECT COUNT(*) FROM {table}"), [], |row| row.get(0)).unwrap()
        };
        let counted = ["message", "delivery", "attempt", "unique_key"].map(rows);
        assert_eq!(counted, [MESSAGES, MESSAGES, 2 * MESSAGES, MESSAGES], "killed at step {step}");
    }
    assert!(former > 0 && present > 0, "killed {former} times before the commit, {present} times after it");
}

#[test]
fn a_long_migration_says_at_which_step_it_is() {
    let folder = tempfile::tempdir().unwrap();
    past(folder.path(), 27, 5000);
    let connection = Connection::open(folder.path().join("aldaba.db")).unwrap();
    let heard = Mutex::new(Vec::new());
    let report = |progress| heard.lock().push(progress);
    migrate(&connection, folder.path(), Duration::from_micros(50), report).unwrap();
    let heard = heard.into_inner();
    let steps: Vec<i64> = heard.iter().map(|progress| progress.step).collect();
    assert!(!steps.is_empty() && steps.is_sorted(), "{steps:?}");
    assert!(heard.iter().all(|progress| (28..=progress.of).contains(&progress.step)), "{heard:?}");
}

#[test]
#[ignore = "it writes a gigabyte: run it by name, with --nocapture, to measure"]
fn a_folder_of_the_former_version_with_a_million_messages_is_open_within_a_minute() {
    #[expect(clippy::disallowed_methods, reason = "it measures")]
    let now = std::time::Instant::now;
    let folder = tempfile::tempdir().unwrap();
    past(folder.path(), STEPS.len() - 1, 1_000_000);
    let size = std::fs::metadata(folder.path().join("aldaba.db")).unwrap().len() >> 20;
    let begun = now();
    let store = SqliteStore::open(&Options::new(folder.path())).unwrap();
    let took = now().duration_since(begun);
    println!("{size} MiB with 1,000,000 messages were migrated and open after {took:?}");
    assert!(took < Duration::from_secs(60), "{took:?}");
    drop(store);
}
