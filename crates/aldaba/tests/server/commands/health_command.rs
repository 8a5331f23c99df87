//! `aldaba health`, against real servers.

use crate::commands::command_line::{Started, aldaba, text};
use std::net::TcpListener;
use std::path::Path;

/// Runs the command in a folder; returns its exit code and what it says on both outputs.
fn health(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let done = aldaba(folder).arg("health").args(arguments).output().unwrap();
    (done.status.code(), text(&done.stdout), text(&done.stderr))
}

#[test]
fn a_server_that_works_is_ready_and_live_for_who_has_no_token_and_finds_it_by_its_folder_or_url() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, hello) = Started::serve(folder.path(), &[]);
    let url = hello[0].strip_prefix("Aldaba listens on ").expect("the address");
    let elsewhere = tempfile::tempdir().unwrap();
    for (place, arguments) in [(&folder, &[][..]), (&elsewhere, &["--url", url])] {
        let ready = (Some(0), "ready\n".to_owned(), String::new());
        assert_eq!(health(place.path(), arguments), ready);
        let live = (Some(0), "live\n".to_owned(), String::new());
        assert_eq!(health(place.path(), &[arguments, &["--live"]].concat()), live);
    }
    assert!(elsewhere.path().read_dir().unwrap().next().is_none(), "it makes no folder");
}

#[test]
fn a_server_that_refuses_messages_is_live_but_not_ready_and_the_command_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let no_room = ("ALDABA_LOW_SPACE_BYTES", "1125899906842624");
    let (_server, _) = Started::serve(folder.path(), &[no_room]);
    assert_eq!(health(folder.path(), &["--live"]).0, Some(0));
    let (code, said, error) = health(folder.path(), &[]);
    assert_eq!(code, Some(1), "{error}");
    assert!(said.starts_with("not_ready\nspace failing: the disk has less room"), "{said}");
    assert!(said.contains("Free some space"), "{said}");
    assert!(error.contains("is not ready: it refuses messages, or does not deliver"), "{error}");
}

#[test]
fn no_server_and_another_program_and_a_wrong_url_have_an_exit_code_and_an_error_each() {
    let folder = tempfile::tempdir().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    std::fs::write(folder.path().join("a.toml"), format!("listen = '{closed}'")).unwrap();
    let (code, said, error) = health(folder.path(), &["--config", "a.toml"]);
    assert_eq!((code, said.as_str()), (Some(69), ""), "{error}");
    assert!(error.contains("no server runs on the data folder"), "{error}");
    let (code, _, error) = health(folder.path(), &["--url", &format!("http://{closed}")]);
    assert_eq!(code, Some(69), "{error}");
    assert!(error.contains("`--url` names another one"), "{error}");
    let (code, _, error) = health(folder.path(), &["--url", "localhost"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("--url localhost: expected http://host:port"), "{error}");
}
