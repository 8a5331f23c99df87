//! `kill -9` while mails are queued and sent: none is lost, and one that comes twice has the same Message-ID.

mod black_box;

use black_box::{Client, Receiver, Server, free_address, token, wait_until};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use test_servers::Smtp;

const ENDPOINTS: usize = 40;
/// After so many mails the server is killed.
const KILLS: [usize; 3] = [1, 20, 50];
const STRICT: &str = r#"{"name": "strict", "schedule": {"type": "list", "delays": ["100ms", "100ms", "100ms", "100ms", "100ms"]},
    "jitter": {"type": "none"}, "gate": {"type": "apart"}, "endpointFails": {"type": "whenExhausted"},
    "probe": null}"#;

#[test]
fn no_mail_is_lost_by_kill_9_and_a_repeat_has_the_same_message_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_address();
    let receiver = Receiver::start(|_, _| 500);
    let smtp = Smtp::start();
    let token = token(folder.path());
    let url = format!("smtp://127.0.0.1:{}", smtp.port());
    let settings = [
        ("ALDABA_SMTP_URL", url.as_str()),
        ("ALDABA_MAIL_FROM", "hooks@example.com"),
        ("ALDABA_MAIL_DELAY_SECONDS", "0"),
    ];
    let start = || Server::start_with(folder.path(), address, &settings);
    let mut server = start();
    let mut client = Client::connect(address, &token).expect("the server listens");
    let mut post = |path: &str, body: &str| -> Value {
        let answer = client.post(path, None, body).expect("an answer");
        assert!((200..300).contains(&answer.status), "{path}: {} {}", answer.status, answer.body);
        answer.body
    };
    post("/policy", STRICT);
    let app = post("/app", r#"{"name": "kill"}"#)["id"].as_str().expect("an id").to_owned();
    for n in 0..ENDPOINTS {
        let body = format!(
            r#"{{"url": "http://{}/hook", "policy": "strict", "name": "Door {n}", "ownerEmail": "owner{n}@example.com"}}"#,
            receiver.address
        );
        post(&format!("/app/{app}/endpoint"), &body);
    }
    post(&format!("/app/{app}/msg"), r#"{"eventType": "kill.test", "payload": {}}"#);
    for mails in KILLS {
        wait_until(&format!("{mails} mails"), || smtp.mails().len() >= mails);
        server.kill();
        server = start();
    }
    let expected: BTreeSet<_> = (0..ENDPOINTS)
        .flat_map(|n| {
            let warning = format!("Webhook 'Door {n}' is failing: 3 failures in a row");
            [warning, format!("Webhook 'Door {n}' has failed after 5 retries")]
        })
        .collect();
    let got = || {
        let mut ids: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for mail in smtp.mails() {
            let mail: Value = serde_json::from_str(&mail).expect("it is JSON");
            let header = |name: &str| {
                let headers = mail["headers"].as_array().expect("a list").iter();
                headers
                    .filter(|header| header[0] == name)
                    .map(|header| header[1].to_string())
                    .collect::<String>()
            };
            ids.entry(header("Subject").trim_matches('"').to_owned())
                .or_default()
                .insert(header("Message-ID"));
        }
        ids
    };
    wait_until("every mail", || got().len() >= expected.len());
    let got = got();
    assert_eq!(got.keys().cloned().collect::<BTreeSet<_>>(), expected);
    let several: Vec<_> = got.iter().filter(|(_, ids)| ids.len() > 1).collect();
    assert!(several.is_empty(), "{several:?}");
    println!(
        "{} mails, {} kills: 0 lost, {} again",
        expected.len(),
        KILLS.len(),
        smtp.mails().len() - expected.len()
    );
    assert_eq!(server.stop(), Some(0));
}
