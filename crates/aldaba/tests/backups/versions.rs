//! Newer and older versions of the program.

use super::{Stage, aldaba, content, messages, said};
use crate::black_box::{Server, free_address};
use rusqlite::Connection;
use std::path::Path;

fn with_database(folder: &Path, change: impl FnOnce(&Connection)) {
    let connection = Connection::open(folder.join("aldaba.db")).expect("a database");
    change(&connection);
}

/// As a newer version would leave it.
fn of_the_future(connection: &Connection) {
    connection.pragma_update(None, "user_version", 1000).expect("it can be written");
    connection
        .execute("UPDATE setting SET value = ?1 WHERE name = 'program'", (b"9.8.7",))
        .expect("it can be written");
}

#[test]
fn a_folder_of_a_newer_version_is_refused_with_the_version_that_reads_it() {
    let (stage, server) = Stage::quiet();
    assert_eq!(server.stop(), Some(0));
    with_database(&stage.data, of_the_future);
    let target = stage.path("backup");
    let run = |arguments: &[&str]| {
        let before = content(&stage.data);
        let output = aldaba(arguments, &stage.data, &[]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains("run Aldaba 9.8.7 or newer"), "{}", said(&output));
        assert!(said(&output).contains("(schema 1000)"), "{}", said(&output));
        let mut after = content(&stage.data).expect("a folder");
        // An empty log and its index may stay, which every start makes.
        let known = before.expect("a folder");
        after.retain(|name, (_, bytes)| {
            known.contains_key(name) || !(name.ends_with("-shm") || bytes.is_empty())
        });
        assert!(after == known, "something was changed");
    };
    run(&["serve", "--listen", "127.0.0.1:0", "--data"]);
    run(&["backup", target.to_str().expect("text"), "--data"]);
    run(&["doctor", "--data"]);
    assert!(!target.exists());
}

#[test]
fn a_backup_of_a_newer_version_is_refused_with_the_version_that_reads_it() {
    let (stage, _server) = Stage::quiet();
    let backup = stage.backup("backup");
    let file = backup.join("manifest.json");
    let manifest = super::manifest(&backup);
    let mut newer = manifest.clone();
    newer["schema"] = 1000.into();
    newer["written_by"] = "9.8.7".into();
    std::fs::write(&file, newer.to_string()).expect("it can be written");
    let folder = stage.path("restored");
    let output = aldaba(&["restore", backup.to_str().expect("text"), "--data"], &folder, &[]);
    assert_eq!(output.status.code(), Some(65), "{}", said(&output));
    assert!(said(&output).contains("run Aldaba 9.8.7 or newer"), "{}", said(&output));
    assert!(!folder.exists());
}

#[test]
fn a_folder_says_which_version_wrote_it_last() {
    let (stage, server) = Stage::quiet();
    assert_eq!(server.stop(), Some(0));
    let program = |connection: &Connection| -> Vec<u8> {
        let text = "SELECT value FROM setting WHERE name = 'program'";
        connection.query_row(text, (), |row| row.get(0)).expect("it is noted")
    };
    with_database(&stage.data, |connection| {
        assert_eq!(program(connection), env!("CARGO_PKG_VERSION").as_bytes());
        connection
            .execute("UPDATE setting SET value = x'30' WHERE name = 'program'", ())
            .expect("it is written");
    });
    assert_eq!(Server::start(&stage.data, free_address()).stop(), Some(0));
    with_database(&stage.data, |connection| {
        assert_eq!(program(connection), env!("CARGO_PKG_VERSION").as_bytes());
    });
}

#[test]
fn a_downgrade_is_a_restore_of_the_backup_from_before_the_upgrade() {
    let (stage, server) = Stage::quiet();
    let sent = stage.send(stage.address, 1);
    assert_eq!(server.stop(), Some(0));
    let backup = stage.backup("before-the-upgrade");
    with_database(&stage.data, of_the_future);
    let server = Server::start(&stage.restore(&backup, "restored"), free_address());
    assert_eq!(messages(&stage, server.address), [sent]);
}
