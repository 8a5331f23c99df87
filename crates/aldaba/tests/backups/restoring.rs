//! What is in a backup comes back.

use super::{Stage, aldaba, all, content, manifest, messages, said};
use crate::black_box::{Server, free_address, wait_until};
use std::collections::BTreeSet;

#[test]
fn a_backup_of_a_running_server_is_restored_with_every_message_and_its_keys() {
    let (stage, server) = Stage::quiet();
    let mut sent: Vec<_> = (0..20).map(|number| stage.send(stage.address, number)).collect();
    let secret = |address| {
        let endpoints = all(&stage, address, &format!("/app/{}/endpoint?limit=250", stage.app), "id");
        let path = format!("/app/{}/endpoint/{}/secret", stage.app, endpoints[0]);
        stage.client(address).get(&path).expect("an answer").body["key"].clone()
    };
    let key = secret(stage.address);
    let backup = stage.backup("backup");
    drop(server);
    let folder = stage.restore(&backup, "restored");
    let server = Server::start(&folder, free_address());
    let mut found = messages(&stage, server.address);
    found.sort();
    sent.sort();
    assert_eq!(found, sent);
    assert_eq!(secret(server.address), key, "its key opens the secrets, and its tokens are valid");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_backup_of_a_killed_server_has_what_only_its_log_has_and_changes_nothing() {
    let (stage, server) = Stage::quiet();
    let mut sent: Vec<_> = (0..20).map(|number| stage.send(stage.address, number)).collect();
    server.kill();
    assert!(stage.data.join("aldaba.db-wal").metadata().expect("a log").len() > 0);
    let before = content(&stage.data);
    let backup = stage.backup("backup");
    let mut after = content(&stage.data).expect("a folder");
    // SQLite makes the index of the log again, and the mark of the copy stays as an empty file.
    assert_eq!(after.remove("aldaba.copying").expect("the mark").1, b"");
    after.insert("aldaba.db-shm".into(), before.as_ref().expect("a folder")["aldaba.db-shm"].clone());
    assert!(Some(after) == before, "something else has changed");
    let server = Server::start(&stage.restore(&backup, "restored"), free_address());
    let mut found = messages(&stage, server.address);
    found.sort();
    sent.sort();
    assert_eq!(found, sent);
}

#[test]
fn a_backup_of_a_stopped_server_works_and_the_server_starts_afterwards() {
    let (stage, server) = Stage::quiet();
    let sent = stage.send(stage.address, 1);
    assert_eq!(server.stop(), Some(0));
    let backup = stage.backup("backup");
    let server = Server::start(&stage.data, stage.address);
    assert_eq!(messages(&stage, server.address), std::slice::from_ref(&sent));
    drop(server);
    let server = Server::start(&stage.restore(&backup, "restored"), free_address());
    assert_eq!(messages(&stage, server.address), [sent]);
}

#[test]
fn a_backup_is_private_and_says_what_it_holds() {
    let (stage, _server) = Stage::quiet();
    stage.send(stage.address, 1);
    let backup = stage.backup("backup");
    let files = content(&backup).expect("a folder");
    let names: Vec<_> = files.keys().map(String::as_str).collect();
    assert_eq!(names, ["aldaba.db", "encryption.key", "jwt.secret", "manifest.json"]);
    assert!(files.values().all(|(mode, _)| *mode == 0o600), "others can read it");
    let manifest = manifest(&backup);
    assert_eq!(manifest["format"], 1);
    assert_eq!(manifest["made_by"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["written_by"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["waiting"], 1);
    assert!(manifest["commit"].as_u64().expect("a number") > 0);
    assert_eq!(manifest["keys"]["encryption"]["place"], "inside");
    assert_eq!(manifest["files"].as_array().expect("a list").len(), 3);
}

#[test]
fn a_restored_folder_is_accepted_by_every_later_start() {
    let (stage, _server) = Stage::quiet();
    stage.send(stage.address, 1);
    let folder = stage.restore(&stage.backup("backup"), "restored");
    for number in 0..3 {
        let server = Server::start(&folder, free_address());
        stage.send(server.address, number);
        match number {
            0 => server.kill(),
            _ => assert_eq!(server.stop(), Some(0)),
        }
    }
    let server = Server::start(&folder, free_address());
    assert_eq!(messages(&stage, server.address).len(), 4);
}

#[test]
fn ids_of_deliveries_are_never_given_twice_however_often_a_backup_is_restored() {
    let (stage, server) = Stage::quiet();
    let backup = stage.backup("backup");
    let mut ids = BTreeSet::new();
    let mut collect = |address, what: &str| {
        for number in 0..5 {
            stage.send(address, number);
        }
        let path = format!("/app/{}/delivery?limit=250", stage.app);
        let mut found = Vec::new();
        wait_until("all are listed", || {
            found = all(&stage, address, &path, "id");
            found.len() == 5
        });
        for id in found {
            assert!(ids.insert(id.clone()), "{what}: {id} names two deliveries");
        }
    };
    collect(stage.address, "the lost server");
    drop(server);
    for name in ["first", "second"] {
        let server = Server::start(&stage.restore(&backup, name), free_address());
        collect(server.address, name);
    }
}

#[test]
fn a_restore_says_what_would_be_sent_and_a_check_makes_nothing() {
    let (stage, server) = Stage::quiet();
    for number in 0..3 {
        stage.send(stage.address, number);
    }
    let later = r#"{"eventType": "a", "payload": {}, "deliverAt": "2999-01-01T00:00:00Z"}"#;
    // The farthest time that is allowed is not the point here.
    let planned = stage.client(stage.address).post(&format!("/app/{}/msg", stage.app), None, later);
    let planned = usize::from(planned.expect("an answer").status == 202);
    let backup = stage.backup("backup");
    drop(server);
    let folder = stage.path("restored");
    let output = aldaba(&["restore", "--check", backup.to_str().expect("text"), "--data"], &folder, &[]);
    let text = said(&output);
    assert!(output.status.success() && text.contains("is whole"), "{text}");
    assert!(!folder.exists(), "a check makes nothing");
    let output = aldaba(&["restore", backup.to_str().expect("text"), "--data"], &folder, &[]);
    let text = said(&output);
    assert!(text.contains("What was accepted after that is not in it"), "{text}");
    assert!(text.contains("receivers find them by their id"), "{text}");
    assert!(text.contains("sends nothing") && text.contains("restore --resume --data"), "{text}");
    let counted = |words: &str| -> usize {
        let mut sentences = text.split(['\n', '.']);
        let sentence = sentences.find(|sentence| sentence.contains(words)).unwrap_or_default();
        sentence.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(0)
    };
    assert_eq!(counted("due") + counted("wait for a later time"), 3 + planned, "{text}");
}

#[test]
fn a_command_for_a_restored_folder_never_reaches_the_server_of_the_original() {
    let (stage, _server) = Stage::quiet();
    let folder = stage.restore(&stage.backup("backup"), "copy");
    let listen = stage.address.to_string();
    let beside = [("ALDABA_LISTEN", listen.as_str())];
    for command in
        [&["erase", &stage.app, "--yes", "--data"][..], &["health", "--data"], &["alerts", "--data"]]
    {
        let output = aldaba(command, &folder, &beside);
        assert_eq!(output.status.code(), Some(69), "{command:?}: {}", said(&output));
        assert!(said(&output).contains("no server runs on the data folder"), "{}", said(&output));
    }
    let application = stage.client(stage.address).get(&format!("/app/{}", stage.app)).expect("an answer");
    assert_eq!(application.status, 200);
    let missing = aldaba(&["health", "--data"], &stage.path("missing"), &beside);
    assert_eq!(missing.status.code(), Some(69), "{}", said(&missing));
}

#[test]
fn a_restore_that_was_ended_midway_is_done_again_by_the_same_command() {
    let (stage, server) = Stage::quiet();
    let sent = stage.send(stage.address, 1);
    let backup = stage.backup("backup");
    drop(server);
    let folder = stage.restore(&backup, "restored");
    // As after a kill before the database got its place.
    std::fs::create_dir(folder.join(".restoring")).expect("a folder");
    std::fs::rename(folder.join("aldaba.db"), folder.join(".restoring/aldaba.db")).expect("a rename");
    let folder = stage.restore(&backup, "restored");
    let server = Server::start(&folder, free_address());
    assert_eq!(messages(&stage, server.address), [sent]);
}

#[test]
fn a_server_does_not_start_on_a_backup() {
    let (stage, server) = Stage::quiet();
    let backup = stage.backup("backup");
    drop(server);
    let before = content(&backup);
    let output = aldaba(&["serve", "--listen", "127.0.0.1:0", "--data"], &backup, &[]);
    assert!(!output.status.success() && said(&output).contains("is a backup"), "{}", said(&output));
    assert!(content(&backup) == before, "the backup has changed");
}
