//! The mail server is away, breaks off, or refuses.

use super::stage::{MailStage, header, parsed, subjects};
use crate::support::receiver::Receiver;
use crate::support::waiting::{wait_for, wait_until};
use aldaba_engine::{Clock, SystemClock};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

#[tokio::test]
async fn while_the_mail_server_is_away_mails_wait_and_deliveries_are_not_slowed() {
    let stage = MailStage::new().await;
    let mut works = Receiver::answering(200, "ok").await;
    let healthy = json!({"url": works.url("/fast"), "policy": "strict"});
    stage.server.endpoint(&stage.app, healthy).await;
    let clock = SystemClock::new();
    let mut slowest = async |count: u32| {
        let mut slowest = Duration::ZERO;
        for _ in 0..count {
            let sent = clock.monotonic();
            stage.send().await;
            works.next().await;
            slowest = slowest.max(clock.monotonic().saturating_sub(sent));
        }
        slowest
    };
    let before = slowest(50).await;
    stage.smtp.kill();
    for n in 0..3 {
        let owner = format!("owner{n}@example.com");
        stage.endpoint(json!({"name": format!("Door {n}"), "ownerEmail": owner})).await;
    }
    let during = slowest(50).await;
    assert!(during < before.max(Duration::from_millis(100)) * 5, "{during:?} against {before:?}");
    // Longer than several attempts of the sender.
    tokio::time::sleep(Duration::from_secs(4)).await;
    stage.smtp.restart();
    let mails = stage.mails(6).await;
    let expected: BTreeSet<_> = (0..3)
        .flat_map(|n| {
            let warning = format!("Webhook 'Door {n}' is failing: 3 failures in a row");
            [warning, format!("Webhook 'Door {n}' has failed after 5 retries")]
        })
        .collect();
    assert_eq!(subjects(&mails).into_iter().collect::<BTreeSet<_>>(), expected);
    stage.server.stop().await;
}

#[tokio::test]
async fn a_mail_comes_twice_only_where_the_connection_broke_after_data_and_then_with_the_same_message_id() {
    let stage = MailStage::new().await;
    stage.smtp.break_after_data(1);
    stage.endpoint(json!({"name": "A"})).await;
    stage.send().await;
    let mails = stage.mails(3).await;
    // The other mail does not wait for the repeat.
    let ids = mails.iter().map(|mail| header(mail, "Message-ID"));
    let again: Vec<_> = ids.skip(1).map(|id| id == header(&mails[0], "Message-ID")).collect();
    assert_eq!(again.iter().filter(|again| **again).count(), 1, "{again:?}");
    for (mail, is_repeat) in mails[1..].iter().zip(again) {
        assert_eq!(header(mail, "Subject") == header(&mails[0], "Subject"), is_repeat);
    }
    stage.stays_at(3).await;
    stage.server.stop().await;
}

#[tokio::test]
async fn a_server_that_refuses_every_sender_for_a_while_gets_all_mails_afterwards_over_one_connection() {
    let stage = MailStage::new().await;
    stage.smtp.refuse(true);
    stage.endpoint(json!({"name": "A"})).await;
    stage.send().await;
    stage.stays_at(0).await;
    stage.smtp.refuse(false);
    let mails = stage.mails(2).await;
    assert_eq!(mails[0]["peer"], mails[1]["peer"], "the connection is used again");
    stage.server.stop().await;
}

#[tokio::test]
async fn an_address_that_is_refused_delays_no_other_and_is_given_up_where_it_is_refused_for_good() {
    let stage = MailStage::new().await;
    for name in ["never", "later", "blunt", "good"] {
        stage.endpoint(json!({"name": name, "ownerEmail": format!("{name}@example.com")})).await;
    }
    stage.send().await;
    let to = |name: &str| json!([format!("{name}@example.com")]);
    let got = async |name: &str| {
        let mails = stage.smtp.mails();
        mails
            .iter()
            .filter(|mail| serde_json::from_str::<serde_json::Value>(mail).unwrap()["to"] == to(name))
            .count()
    };
    wait_until("both mails to the good address", async || got("good").await == 2).await;
    wait_until("both mails that are refused at their end", async || got("blunt").await == 2).await;
    stage.stays_at(4).await;
    // Each was tried once, and those for `later` wait for their next attempt.
    assert_eq!((got("good").await, got("blunt").await, got("never").await, got("later").await), (2, 2, 0, 0));
    let folder = stage.server.stop().await;
    let database = rusqlite::Connection::open(folder.path().join("data/aldaba.db")).unwrap();
    let waiting: Vec<(String, u32)> = database
        .prepare("SELECT address, attempts FROM mail ORDER BY seq")
        .unwrap()
        .query_map((), |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(waiting, vec![("later@example.com".to_owned(), 1); 2]);
}

#[tokio::test]
async fn an_address_at_which_the_server_ends_the_conversation_stops_no_other_mail() {
    let stage = MailStage::new().await;
    for name in ["closing", "cut", "good"] {
        stage.endpoint(json!({"name": name, "ownerEmail": format!("{name}@example.com")})).await;
    }
    stage.send().await;
    // Several repeats of those that fail: the good ones do not wait for a server that is there.
    stage.mails(2).await;
    stage.endpoint(json!({"name": "another", "ownerEmail": "good@example.com"})).await;
    stage.send().await;
    let mails = stage.mails(4).await;
    assert!(mails.iter().all(|mail| mail["to"] == json!(["good@example.com"])), "{:?}", subjects(&mails));
    let folder = stage.server.stop().await;
    let database = rusqlite::Connection::open(folder.path().join("data/aldaba.db")).unwrap();
    let tried: u32 = database
        .query_row("SELECT count(*) FROM mail WHERE attempts > 0 AND message_id IS NOT NULL", (), |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(tried, 4, "each is postponed by itself");
}

#[tokio::test]
async fn mails_that_wait_survive_a_restart_of_the_server() {
    use super::stage::through;
    use crate::support::running::Running;
    let stage = MailStage::new().await;
    stage.smtp.kill();
    stage.endpoint(json!({"name": "A"})).await;
    stage.send().await;
    let path = format!("/app/{}/endpoint", stage.app);
    wait_for("the failure", async || {
        let list = stage.server.client.get(&path).await.expect(200);
        (list["data"][0]["status"] == "failed").then_some(())
    })
    .await;
    let folder = stage.server.stop().await;
    stage.smtp.restart();
    let server = Running::within(folder, through(&stage.smtp)).await;
    wait_until("both mails", async || stage.smtp.mails().len() >= 2).await;
    let mails = parsed(&stage.smtp, 2);
    assert!(header(&mails[1], "Subject").contains("has failed"), "{mails:?}");
    server.stop().await;
}
