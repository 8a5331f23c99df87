//! Mails to the operator.

use super::stage::{header, parsed, through};
use crate::support::running::{Running, token};
use crate::support::waiting::wait_until;
use aldaba::config::Config;
use aldaba_delivery::alert::AlertRules;
use std::sync::Arc;
use std::time::Duration;
use test_servers::Smtp;

/// With an alert about the disk below so many bytes.
fn watching(smtp: &Smtp, bytes: u64) -> impl FnOnce(&mut Config) + use<> {
    let mails = through(smtp);
    move |config| {
        mails(config);
        config.mail.operator = Some("operations@example.com".into());
        config.engine.alert_interval = Duration::from_millis(50);
        let rules = format!("disk-space < {bytes} for 0s");
        config.engine.alert_rules = Arc::new(AlertRules::parse(&rules).unwrap());
    }
}

#[tokio::test]
async fn the_operator_gets_one_mail_a_minute_also_from_a_server_that_starts_again_and_again() {
    let smtp = Smtp::start();
    let mut server = Running::with(watching(&smtp, 1_000_000_000_000_000)).await;
    wait_until("the alert", async || !smtp.mails().is_empty()).await;
    let operator = |server: &Running| server.client.with_token(&token("org_00000000000SvixManagement00"));
    for (bytes, state) in [(1, "resolved"), (1_000_000_000_000_000, "firing"), (1, "resolved")] {
        server = Running::within(server.stop().await, watching(&smtp, bytes)).await;
        let path = format!("/alert?state={state}&rule=disk-space&limit=1");
        operator(&server).list_until(&path, 1).await;
    }
    // Longer than the sender sleeps: nothing signals that it sends none.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mails = parsed(&smtp, 1);
    assert_eq!(mails[0]["to"], serde_json::json!(["operations@example.com"]));
    assert!(header(&mails[0], "Subject").starts_with("Alert: "), "{}", mails[0]);
    let folder = server.stop().await;
    let database = rusqlite::Connection::open(folder.path().join("data/aldaba.db")).unwrap();
    let waiting: (u32, i64) = database
        .query_row(
            "SELECT count(*), max(due_at) - (SELECT max(last_at) FROM mail_day WHERE address = '') FROM mail",
            (),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    assert_eq!(waiting, (3, 60_000), "the rest waits for one mail, a minute after the last one");
}
