//! What the process of a server keeps in memory.

mod black_box;

use black_box::{Client, Server, free_address, token, wait_at_most};
use std::time::Duration;

const APPLICATIONS: usize = 1000;
/// The caches of the database fill in these rounds.
const ROUNDS_TO_FILL: usize = 3;
const MORE_ROUNDS: usize = 4;
/// What may be added then in all of the further rounds: under 1 KiB an application.
const MAX_GROWTH_KIB: u64 = 3 * 1024;
/// Making the document takes several times this.
const DOCUMENT_KIB: u64 = 3 * 1024;

#[test]
fn the_api_document_is_made_when_it_is_asked_for_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_address();
    let token = token(folder.path());
    let server = Server::start(folder.path(), address);
    let mut client = Client::connect(address, &token).expect("the server listens");
    assert_eq!(client.get("/app").expect("an answer").status, 200);
    let before = server.memory_kib("VmHWM");
    assert_eq!(client.get("/openapi.json").expect("an answer").status, 200);
    let first = server.memory_kib("VmHWM");
    assert!(
        first >= before + DOCUMENT_KIB,
        "{before} KiB before, {first} KiB after: was it made at the start?"
    );
    assert_eq!(client.get("/openapi.json").expect("an answer").status, 200);
    let second = server.memory_kib("VmHWM");
    assert!(second < first + DOCUMENT_KIB / 3, "{first} KiB, then {second} KiB: it is made once");
}

#[test]
fn applications_that_were_made_and_deleted_leave_no_memory_in_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_address();
    let token = token(folder.path());
    let server = Server::start(folder.path(), address);
    let mut client = Client::connect(address, &token).expect("the server listens");
    let mut round = || {
        let mut made = Vec::new();
        for number in 0..APPLICATIONS {
            let answer =
                client.post("/app", None, &format!(r#"{{"name": "a {number}"}}"#)).expect("an answer");
            assert_eq!(answer.status, 201, "{}", answer.body);
            made.push(answer.body["id"].as_str().expect("an id").to_owned());
        }
        for app in &made {
            assert_eq!(client.delete(&format!("/app/{app}")).expect("an answer").status, 204);
        }
    };
    (0..ROUNDS_TO_FILL).for_each(|_| round());
    let filled = server.memory_kib("RssAnon");
    (0..MORE_ROUNDS).for_each(|_| round());
    // Its tasks may be busy with the last of them.
    let is_bounded = || server.memory_kib("RssAnon") < filled + MAX_GROWTH_KIB;
    assert!(
        wait_at_most(Duration::from_secs(20), is_bounded),
        "{filled} KiB, then {}",
        server.memory_kib("RssAnon")
    );
}
