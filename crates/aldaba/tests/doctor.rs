//! `aldaba doctor`, on folders and servers with something wrong.

mod black_box;

use black_box::{Client, Server, free_address, token, wait_until};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const BINARY: &str = env!("CARGO_BIN_EXE_aldaba");

fn doctor(data: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(BINARY);
    command.arg("doctor").args(arguments).arg("--data").arg(data).envs(variables.iter().copied());
    command.output().expect("the command runs")
}

/// The exit code, and the findings that are not ok: the check with its state, detail and action.
fn found(data: &Path, variables: &[(&str, &str)]) -> (i32, Vec<(String, String, String)>) {
    let output = doctor(data, &["--json"], variables);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = report["findings"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let bad = findings.filter(|finding| finding["state"] != "ok").map(|finding| {
        assert!(finding["action"].is_string(), "it says what to do: {finding}");
        let says = format!("{} {}", text(&finding["detail"]), text(&finding["action"]));
        (text(&finding["check"]), text(&finding["state"]), says)
    });
    (output.status.code().expect("it ends"), bad.collect())
}

/// Expects one finding that is not ok.
fn only(data: &Path, variables: &[(&str, &str)], code: i32, check: &str, says: &str) {
    let (ended, findings) = found(data, variables);
    let [(found, state, detail)] = &findings[..] else { panic!("expected {check} alone: {findings:?}") };
    assert_eq!(found, check, "{findings:?}");
    assert!(detail.contains(says), "expected {says:?}: {detail}");
    assert_eq!((ended, state.as_str()), (code, if code == 0 { "warning" } else { "problem" }));
}

/// A folder whose server has messages and was stopped.
fn stopped(messages: usize) -> (tempfile::TempDir, PathBuf) {
    let outer = tempfile::tempdir().expect("a folder");
    let data = outer.path().join("data");
    let token = token(&data);
    let server = Server::start(&data, free_address());
    let mut client = Client::connect(server.address, &token).expect("the server listens");
    client.post("/app", None, r#"{"name": "a", "uid": "a"}"#).expect("an answer");
    for _ in 0..messages {
        let body = format!(r#"{{"eventType": "a", "payload": {{"x": "{}"}}}}"#, "y".repeat(50_000));
        assert_eq!(client.post("/app/a/msg", None, &body).expect("an answer").status, 202);
    }
    assert_eq!(server.stop(), Some(0));
    (outer, data)
}

fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    entries.map(|path| (name(&path), std::fs::read(&path).expect("a file"))).collect()
}

#[test]
fn a_healthy_folder_is_healthy_stopped_and_running_and_is_not_changed() {
    let (_outer, data) = stopped(3);
    let before = content(&data);
    assert_eq!(found(&data, &[]), (0, vec![]));
    let mut after = content(&data);
    // An empty log and its index are no change: every start makes them.
    after.retain(|name, bytes| before.contains_key(name) || !(name.ends_with("-shm") || bytes.is_empty()));
    assert!(after == before, "something was changed");
    let server = Server::start(&data, free_address());
    assert_eq!(found(&data, &[]), (0, vec![]));
    let output = doctor(&data, &["--thorough"], &[]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("is ready") && text.ends_with("Nothing is wrong.\n"), "{text}");
    assert!(text.contains("the database is whole, with its indexes"), "{text}");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_folder_without_an_installation_is_a_problem() {
    let outer = tempfile::tempdir().expect("a folder");
    only(outer.path(), &[], 1, "folder", "there is no Aldaba installation");
    assert_eq!(std::fs::read_dir(outer.path()).expect("a folder").count(), 0, "nothing is made");
}

#[test]
fn a_damaged_database_is_a_problem_that_says_where() {
    let (_outer, data) = stopped(20);
    let file = std::fs::File::options().write(true).open(data.join("aldaba.db")).expect("a database");
    let pages = file.metadata().expect("a file").len() / 4096;
    for page in pages / 2..pages / 2 + 40 {
        file.write_all_at(&[0xaa; 4096], page * 4096).expect("it can be written");
    }
    let (code, findings) = found(&data, &[]);
    assert_eq!(code, 1);
    let (_, _, says) = findings.iter().find(|(check, ..)| check == "integrity").expect("the finding");
    assert!(says.contains("restore a backup"), "{says}");
}

#[test]
fn lost_commits_are_a_problem() {
    let outer = tempfile::tempdir().expect("a folder");
    let data = outer.path().join("data");
    let token = token(&data);
    let server = Server::start(&data, free_address());
    let mut client = Client::connect(server.address, &token).expect("the server listens");
    client.post("/app", None, r#"{"name": "a"}"#).expect("an answer");
    server.kill();
    assert_eq!(found(&data, &[]).0, 0, "a kill loses nothing");
    std::fs::remove_file(data.join("aldaba.db-wal")).expect("a log");
    only(&data, &[], 1, "watermark", "has gone back");
}

#[test]
fn missing_wrong_and_damaged_keys_are_problems() {
    let (outer, data) = stopped(0);
    let other = "11".repeat(32);
    only(&data, &[("ALDABA_ENCRYPTION_KEY", &other)], 1, "encryption-key", "with another key");
    let key = data.join("encryption.key");
    std::fs::rename(&key, outer.path().join("key")).expect("it is there");
    only(&data, &[], 1, "encryption-key", "neither in the folder nor in the settings");
    std::fs::write(&key, "half").expect("it can be written");
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("it is ours");
    only(&data, &[], 1, "encryption-key", "is damaged");
    std::fs::rename(outer.path().join("key"), &key).expect("it goes back");
    std::fs::remove_file(data.join("jwt.secret")).expect("it is there");
    only(&data, &[], 0, "token-secret", "every token signed before is invalid");
    let secret = ("ALDABA_JWT_SECRET", "a secret that is long enough for tokens");
    let key = std::fs::read_to_string(&key).expect("a key").trim().to_owned();
    assert_eq!(found(&data, &[secret, ("ALDABA_ENCRYPTION_KEY", &key)]), (0, vec![]));
}

#[test]
fn files_that_others_can_read_are_a_warning() {
    let (_outer, data) = stopped(0);
    std::fs::set_permissions(data.join("encryption.key"), Permissions::from_mode(0o644)).expect("it is ours");
    only(&data, &[], 0, "permissions", "encryption.key (0644)");
}

#[test]
fn too_little_room_is_a_problem() {
    let (_outer, data) = stopped(0);
    only(&data, &[("ALDABA_LOW_SPACE_BYTES", "1125899906842624")], 1, "space", "messages are refused (507)");
}

#[test]
fn a_clock_that_is_not_where_it_should_be_is_a_warning() {
    let (_outer, data) = stopped(0);
    let connection = rusqlite::Connection::open(data.join("aldaba.db")).expect("a database");
    // Without its record the clock is compared with the newest message.
    connection.execute("DELETE FROM setting WHERE name = 'clock'", ()).expect("it can be written");
    connection
        .execute(
            "INSERT INTO message (app, id, created_at, event_type, channels, payload)
             VALUES (x'01', x'02', 4000000000000, 'a', '', x'')",
            (),
        )
        .expect("it can be written");
    drop(connection);
    only(&data, &[], 0, "clock", "aldaba clock trust");
}

#[test]
fn a_restored_folder_that_was_not_resumed_is_a_warning() {
    let (outer, data) = stopped(1);
    let (backup, restored) = (outer.path().join("backup"), outer.path().join("restored"));
    for (command, what, folder) in [("backup", &backup, &data), ("restore", &backup, &restored)] {
        let ended = Command::new(BINARY).arg(command).arg(what).arg("--data").arg(folder).output();
        assert!(ended.expect("the command runs").status.success(), "{command}");
    }
    only(&restored, &[], 0, "sending", "aldaba restore --resume");
}

#[test]
fn a_server_that_does_not_answer_is_a_problem_and_one_that_is_not_ready_says_why() {
    let (_outer, data) = stopped(0);
    let server = Server::start_with(&data, free_address(), &[("ALDABA_LOW_SPACE_BYTES", "1125899906842624")]);
    only(&data, &[], 1, "server", "space: the disk has less room");
    drop(server);
    let server = Server::start(&data, free_address());
    server.signal("-STOP");
    // The command gives up by itself.
    let mut ended = None;
    wait_until("the doctor gives up", || {
        ended = Some(found(&data, &[]));
        true
    });
    server.signal("-CONT");
    let (code, findings) = ended.expect("it ended");
    let (_, state, says) = findings.iter().find(|(check, ..)| check == "server").expect("the finding");
    assert_eq!((code, state.as_str()), (1, "problem"), "{says}");
    assert!(says.contains("does not answer"), "{says}");
}
