//! What follows from an event after its commit.

use crate::world::World;
use shop::{Payment, SilentPort, eventually, fresh};
use std::sync::Arc;

/// An answer that waits for no mail server comes sooner, in seconds.
const AT_ONCE: f64 = 2.0;

pub(crate) async fn a_mail_goes_out_after_the_commit_and_none_for_repeats_and_failures(world: Arc<World>) {
    let (payment, id) = (world.payment().await, fresh("evt"));
    let failing = Payment::of(&fresh("order"), &fresh("product"));
    assert_eq!(world.sender.deliver(&fresh("evt"), &failing.body()).await.status, 500);
    for _ in 0..3 {
        assert_eq!(world.sender.deliver(&id, &payment.body()).await.status, 200);
    }
    // What is sent after all of them comes after all of them.
    let last = world.payment().await;
    assert!(world.sender.deliver(&fresh("evt"), &last.body()).await.is_new());
    let mailbox = &world.stage.mailbox;
    eventually("the last mail", async || mailbox.to(&last.email).pop()).await;
    let mail = eventually("a mail", async || mailbox.to(&payment.email).pop()).await;
    assert!(mail.contains(&format!("Subject: Your order {}", payment.order)), "{mail}");
    assert!(mail.contains("25.99"), "{mail}");
    assert_eq!(mailbox.to(&payment.email).len(), 1);
    assert!(mailbox.to(&failing.email).is_empty());
}

pub(crate) async fn a_mail_server_that_is_down_or_silent_changes_no_answer(world: Arc<World>) {
    let silent = SilentPort::open();
    let nobody = SilentPort::open().url();
    for mails in [silent.url(), nobody] {
        let running = world.with_mails_to(&mails).await;
        let (sender, payment) = (running.sender(world.signing), world.payment().await);
        let seconds = crate::world::stopwatch();
        assert!(sender.deliver(&fresh("evt"), &payment.body()).await.is_new());
        assert!(seconds() < AT_ONCE, "{mails}: {} s", seconds());
        world.is_paid_once(&payment).await;
        // It still works afterwards.
        let next = world.payment().await;
        assert!(sender.deliver(&fresh("evt"), &next.body()).await.is_new());
    }
}

pub(crate) async fn an_address_with_line_breaks_gets_no_mail_and_changes_no_answer(world: Arc<World>) {
    let other = format!("{}@example.com", fresh("stranger"));
    for email in [
        format!("a@example.com\r\nBcc: {other}"),
        format!("a@example.com>\r\nRCPT TO:<{other}"),
        format!("a@example.com, {other}"),
        String::new(),
    ] {
        let payment = Payment { email, ..world.payment().await };
        assert!(world.sender.deliver(&fresh("evt"), &payment.body()).await.is_new());
        world.is_paid_once(&payment).await;
    }
    let last = world.payment().await;
    assert!(world.sender.deliver(&fresh("evt"), &last.body()).await.is_new());
    let mailbox = &world.stage.mailbox;
    eventually("the last mail", async || mailbox.to(&last.email).pop()).await;
    assert!(!mailbox.all().iter().any(|mail| mail.contains(&format!("X-RcptTo: {other}"))));
}
