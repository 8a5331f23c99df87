//! What cannot be backed up or restored is refused with a reason, and nothing changes.

use super::{BINARY, Stage, aldaba, content, said};
use crate::black_box::{Server, free_address, wait_until};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a backup that is expected to fail, and checks that nothing of it is left.
fn refused_backup(stage: &Stage, target: &Path, code: i32, why: &str) {
    let before = target.parent().and_then(content);
    let output = aldaba(&["backup", target.to_str().expect("text"), "--data"], &stage.data, &[]);
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    assert!(said(&output).contains(why), "expected {why:?}: {}", said(&output));
    assert!(target.parent().and_then(content) == before, "{why}: something was changed");
}

/// Runs a restore that is expected to fail, and checks that nothing is changed.
fn refused_restore(backup: &Path, folder: &Path, code: i32, why: &str) {
    let before = content(folder);
    let output = aldaba(&["restore", backup.to_str().expect("text"), "--data"], folder, &[]);
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    assert!(said(&output).contains(why), "expected {why:?}: {}", said(&output));
    assert!(content(folder) == before, "{why}: something was changed");
}

#[test]
fn a_target_that_exists_is_inside_the_data_folder_or_cannot_be_made_is_refused() {
    let (stage, _server) = Stage::quiet();
    let there = stage.path("there");
    std::fs::create_dir(&there).expect("a folder");
    refused_backup(&stage, &there, 1, "exists already");
    let file = stage.path("file");
    std::fs::write(&file, "mine").expect("a file");
    refused_backup(&stage, &file, 1, "exists already");
    refused_backup(&stage, &file.join("below"), 1, "Not a directory");
    refused_backup(&stage, &stage.path("missing/below"), 1, "No such file");
    // The folder of the server changes meanwhile, so only its names are compared.
    let output =
        aldaba(&["backup", stage.data.join("b").to_str().expect("text"), "--data"], &stage.data, &[]);
    assert!(said(&output).contains("inside of the data folder"), "{}", said(&output));
    assert!(!stage.data.join("b").exists() && !stage.data.join("b.unfinished").exists());
}

#[test]
fn a_folder_without_an_installation_and_a_database_url_are_refused() {
    let outer = tempfile::tempdir().expect("a folder");
    let target = outer.path().join("backup");
    let backup = ["backup", target.to_str().expect("text"), "--data"];
    let output = aldaba(&backup, &outer.path().join("nothing"), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("there is no Aldaba installation"), "{}", said(&output));
    let variable = ("ALDABA_DATABASE_URL", "postgres://a");
    for output in [
        aldaba(&backup, outer.path(), &[variable]),
        aldaba(&["backup", "b", "--database-url", "postgres://a", "--data"], outer.path(), &[]),
    ] {
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains("pg_dump"), "{}", said(&output));
    }
    assert!(!target.exists());
}

#[test]
fn a_database_that_has_gone_back_is_not_backed_up() {
    let (stage, server) = Stage::quiet();
    stage.send(stage.address, 1);
    server.kill();
    std::fs::remove_file(stage.data.join("aldaba.db-wal")).expect("a log");
    let target = stage.path("backup");
    let output = aldaba(&["backup", target.to_str().expect("text"), "--data"], &stage.data, &[]);
    assert!(said(&output).contains("has gone back"), "{}", said(&output));
    assert!(!target.exists() && !stage.path("backup.unfinished").exists());
}

#[test]
fn a_disk_that_takes_no_more_leaves_nothing_of_a_backup() {
    let (stage, _server) = Stage::quiet();
    let target = stage.path("backup");
    // Files of this shell may have 64 KiB; the signal about it is ignored, as on a disk that is full.
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" backup \"$1\" --data \"$2\"";
    let output = Command::new("sh").args(["-c", script, BINARY]).args([&target, &stage.data]).output();
    let output = output.expect("a shell");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("Nothing is left of it"), "{}", said(&output));
    assert!(!target.exists() && !stage.path("backup.unfinished").exists());
}

/// Runs a script in which `$1` is a small disk of its own: as root, or as root of a namespace.
fn with_small_disk(options: &str, stage: &Stage, script: &str) -> std::process::Output {
    let disk = stage.path("disk");
    std::fs::create_dir_all(&disk).expect("a folder");
    let script = format!(
        "mount -t tmpfs -o {options} none \"$1\" || exit 99; {script}; code=$?; ls -A \"$1\"; umount \"$1\"; exit $code"
    );
    let unshared = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", &script, BINARY])
        .args([&disk, &stage.data])
        .output();
    unshared.expect("unshare")
}

#[test]
#[ignore = "needs the right to mount: cargo xtask backups runs it"]
fn a_full_disk_is_named_before_and_during_a_backup_and_nothing_is_left_on_it() {
    let (stage, _server) = Stage::quiet();
    let backup = "\"$0\" backup \"$1/backup\" --data \"$2\"";
    for (options, why) in
        [("size=256k", "bytes free, and the backup needs about"), ("size=64m,nr_inodes=4", "full")]
    {
        let output = with_small_disk(options, &stage, backup);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(why), "expected {why:?}: {text}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "something is left on the disk");
    }
}

#[test]
fn a_backup_that_is_stopped_leaves_nothing_and_one_that_is_killed_is_cleared_away_by_the_next() {
    let (stage, _server) = Stage::quiet();
    // Large enough that the signal comes meanwhile.
    let body = format!(r#"{{"eventType": "a", "payload": {{"x": "{}"}}}}"#, "y".repeat(900_000));
    for _ in 0..100 {
        let path = format!("/app/{}/msg", stage.app);
        assert_eq!(stage.client(stage.address).post(&path, None, &body).expect("an answer").status, 202);
    }
    let (target, unfinished) = (stage.path("backup"), stage.path("backup.unfinished"));
    for signal in ["-TERM", "-INT", "-KILL"] {
        let mut child = Command::new(BINARY)
            .arg("backup")
            .arg(&target)
            .arg("--data")
            .arg(&stage.data)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command runs");
        let database = unfinished.join("aldaba.db");
        wait_until("it copies", || database.metadata().is_ok_and(|file| file.len() > 0));
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("a signal");
        assert!(sent.success(), "it was over too soon");
        let ended = child.wait().expect("it ends");
        assert!(!target.exists(), "{signal}: it looks whole");
        if signal == "-KILL" {
            assert!(unfinished.exists(), "nobody could remove it");
        } else {
            assert_eq!(ended.code(), Some(130), "{signal}");
            assert!(!unfinished.exists(), "{signal}: something is left");
        }
    }
    let backup = stage.backup("backup");
    assert!(!unfinished.exists());
    stage.restore(&backup, "restored");
}

#[test]
fn a_folder_that_is_not_empty_or_in_use_is_not_restored_into() {
    let (stage, _server) = Stage::quiet();
    let backup = stage.backup("backup");
    let output = aldaba(&["restore", backup.to_str().expect("text"), "--data"], &stage.data, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("a server uses"), "{}", said(&output));
    let folder = stage.path("mine");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("mine"), "mine").expect("a file");
    refused_restore(&backup, &folder, 1, "is not empty: it has mine");
    std::fs::remove_file(folder.join("mine")).expect("it is there");
    stage.restore(&backup, "mine");
    refused_restore(&backup, &folder, 1, "is not empty");
}

#[test]
fn a_damaged_cut_off_or_unfinished_backup_is_refused_and_nothing_is_written() {
    let (stage, _server) = Stage::quiet();
    stage.send(stage.address, 1);
    let backup = stage.backup("backup");
    let folder = stage.path("restored");
    refused_restore(&stage.path("missing"), &folder, 65, "it has no manifest.json");
    let damaged = |name: &str, damage: &dyn Fn(Vec<u8>) -> Vec<u8>, why: &str| {
        let file = backup.join(name);
        let whole = std::fs::read(&file).expect("it is there");
        std::fs::write(&file, damage(whole.clone())).expect("it can be written");
        refused_restore(&backup, &folder, 65, why);
        std::fs::write(&file, whole).expect("it can be written");
    };
    damaged("aldaba.db", &|bytes| bytes[..bytes.len() / 2].to_vec(), "bytes, and had");
    damaged(
        "aldaba.db",
        &|mut bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            bytes
        },
        "SHA-256",
    );
    damaged("encryption.key", &|_| Vec::new(), "bytes, and had");
    damaged("manifest.json", &|bytes| bytes[..bytes.len() / 2].to_vec(), "is damaged");
    let replaced = |from: &'static str, to: &'static str| {
        move |bytes: Vec<u8>| String::from_utf8(bytes).expect("text").replace(from, to).into_bytes()
    };
    damaged("manifest.json", &replaced("\"format\": 1", "\"format\": 2"), "which reads format 1");
    damaged("manifest.json", &replaced("\"aldaba.db\"", "\"../aldaba.db\""), "is no name of a file");
    std::fs::rename(backup.join("jwt.secret"), stage.path("moved")).expect("it is there");
    refused_restore(&backup, &folder, 65, "it is missing");
    std::fs::rename(stage.path("moved"), backup.join("jwt.secret")).expect("it goes back");
    stage.restore(&backup, "restored");
}

#[test]
fn a_server_does_not_start_on_a_restore_that_was_ended_midway_and_the_next_restore_goes_on() {
    let (stage, _server) = Stage::quiet();
    let backup = stage.backup("backup");
    let folder = stage.path("restored");
    // What a restore has made when it is killed before its end.
    std::fs::create_dir_all(folder.join(".restoring")).expect("a folder");
    std::fs::write(folder.join(".restoring/aldaba.db"), "half").expect("a file");
    std::fs::write(folder.join("aldaba.lock"), "").expect("a file");
    let output = aldaba(&["serve", "--listen", "127.0.0.1:0", "--data"], &folder, &[]);
    assert!(said(&output).contains("was ended midway: run `aldaba restore` again"), "{}", said(&output));
    let server = Server::start(&stage.restore(&backup, "restored"), free_address());
    assert_eq!(server.stop(), Some(0));
    assert!(!folder.join(".restoring").exists());
}

#[test]
fn a_folder_of_somebody_else_is_neither_removed_nor_used() {
    let (stage, _server) = Stage::quiet();
    let (target, foreign) = (stage.path("notes"), stage.path("notes.unfinished"));
    std::fs::create_dir(&foreign).expect("a folder");
    std::fs::write(foreign.join("mine.txt"), "mine").expect("a file");
    let output = aldaba(&["backup", "--data", &stage.data.display().to_string()], &target, &[]);
    assert!(!output.status.success() && said(&output).contains("notes.unfinished"), "{}", said(&output));
    assert_eq!(std::fs::read_to_string(foreign.join("mine.txt")).expect("the file"), "mine");
    // Nor is a link followed.
    std::fs::rename(&foreign, stage.path("elsewhere")).expect("a rename");
    std::os::unix::fs::symlink(stage.path("elsewhere"), &foreign).expect("a link");
    let output = aldaba(&["backup", "--data", &stage.data.display().to_string()], &target, &[]);
    assert!(!output.status.success() && !target.exists(), "{}", said(&output));
    assert_eq!(std::fs::read_dir(stage.path("elsewhere")).expect("a folder").count(), 1);
}

#[test]
fn a_backup_is_not_restored_into_itself() {
    let (stage, server) = Stage::quiet();
    let backup = stage.backup("backup");
    drop(server);
    let before = content(&backup);
    refused_restore(&backup, &backup.join("within/data"), 1, "is inside of the backup");
    assert!(content(&backup) == before, "the backup has changed");
}
