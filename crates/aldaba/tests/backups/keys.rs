//! Keys that are in the folder, and keys that are not.

use super::{Stage, aldaba, content, manifest, messages, said};
use crate::black_box::{Server, free_address};

const SECRET: (&str, &str) = ("ALDABA_JWT_SECRET", "a secret of forty bytes for tests of keys");
const KEY: (&str, &str) =
    ("ALDABA_ENCRYPTION_KEY", "0101010101010101010101010101010101010101010101010101010101010101");

/// A stopped folder whose server had its keys from the environment.
fn with_given_keys() -> Stage {
    let (stage, server) = Stage::quiet();
    drop(server);
    std::fs::remove_dir_all(&stage.data).expect("it is ours");
    let server = Server::start_with(&stage.data, stage.address, &[SECRET, KEY]);
    let made = aldaba(&["token", "create", "--data"], &stage.data, &[SECRET]);
    let token = String::from_utf8(made.stdout).expect("text").trim().to_owned();
    let stage = Stage { token, ..stage };
    let app = stage.client(stage.address).post("/app", None, r#"{"name": "a"}"#).expect("an answer");
    let app = app.body["id"].as_str().expect("an application").to_owned();
    let stage = Stage { app, ..stage };
    stage.send(stage.address, 1);
    assert_eq!(server.stop(), Some(0));
    stage
}

#[test]
fn keys_of_the_environment_are_named_and_a_restore_without_them_writes_nothing() {
    let stage = with_given_keys();
    let target = stage.path("backup");
    let output = aldaba(&["backup", target.to_str().expect("text"), "--data"], &stage.data, &[SECRET, KEY]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("it comes from the setting `encryption_key`"), "{}", said(&output));
    assert_eq!(manifest(&target)["keys"]["encryption"]["setting"], "encryption_key");
    assert_eq!(manifest(&target)["keys"]["tokens"]["setting"], "jwt_secret");
    assert!(!target.join("encryption.key").exists() && !target.join("jwt.secret").exists());
    for (bytes, what) in [(KEY.1, "key"), (SECRET.1, "secret")] {
        for (name, (_, content)) in content(&target).expect("a folder") {
            let text = String::from_utf8_lossy(&content).into_owned();
            assert!(!text.contains(bytes), "the {what} is in {name}");
        }
    }
    let folder = stage.path("restored");
    let other = (KEY.0, "0202020202020202020202020202020202020202020202020202020202020202");
    let restore = ["restore", target.to_str().expect("text"), "--data"];
    for (variables, why) in [
        (&[][..], "the server was given it by `encryption_key`"),
        (&[SECRET], "is not the one that the database was encrypted with"),
        (&[SECRET, other], "is not the one that the database was encrypted with"),
        (&[KEY], "ALDABA_JWT_SECRET"),
    ] {
        let output = aldaba(&restore, &folder, variables);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains(why), "expected {why}: {}", said(&output));
        assert!(!folder.exists(), "something was written");
    }
    let output = aldaba(&restore, &folder, &[SECRET, KEY]);
    assert!(output.status.success(), "{}", said(&output));
    let server = Server::start_with(&folder, free_address(), &[SECRET, KEY]);
    assert_eq!(messages(&stage, server.address).len(), 1);
}

#[test]
fn a_backup_without_the_settings_of_the_server_says_that_the_keys_are_elsewhere() {
    let stage = with_given_keys();
    let target = stage.path("backup");
    let output = aldaba(&["backup", target.to_str().expect("text"), "--data"], &stage.data, &[]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("no setting was given. Keep it apart"), "{}", said(&output));
    assert_eq!(manifest(&target)["keys"]["encryption"]["place"], "elsewhere");
    let restore = ["restore", target.to_str().expect("text"), "--data"];
    let folder = stage.path("restored");
    assert_eq!(aldaba(&restore, &folder, &[]).status.code(), Some(1));
    assert!(!folder.exists());
    assert!(aldaba(&restore, &folder, &[SECRET, KEY]).status.success());
}

#[test]
fn a_key_file_that_does_not_fit_the_database_is_not_taken_for_its_key() {
    let stage = with_given_keys();
    std::fs::write(stage.data.join("encryption.key"), "03".repeat(32)).expect("it can be written");
    let target = stage.path("backup");
    let output = aldaba(&["backup", target.to_str().expect("text"), "--data"], &stage.data, &[]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(manifest(&target)["keys"]["encryption"]["place"], "elsewhere");
    assert!(!target.join("encryption.key").exists());
}
