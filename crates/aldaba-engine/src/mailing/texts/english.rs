//! The texts in English.

use super::MailTexts;

pub(super) struct English;

impl MailTexts for English {
    fn warning_subject(&self, name: &str, failures: u32) -> String {
        format!("Webhook '{name}' is failing: {failures} failures in a row")
    }

    fn warning_text(&self, name: &str, failures: u32) -> String {
        format!(
            "The last {failures} requests to the webhook '{name}' have failed. They are retried; you need not do anything \
             if you know why."
        )
    }

    fn given_up_subject(&self, name: &str) -> String {
        format!("Webhook '{name}' still fails: a delivery was given up")
    }

    fn given_up_text(&self, name: &str) -> String {
        format!(
            "A delivery to the webhook '{name}' was given up: its policy allows no more retries. It is kept in the dead \
             letter. New messages are still sent, and more are given up while the webhook fails."
        )
    }

    fn failed_subject(&self, name: &str, retries: u32) -> String {
        let noun = if retries == 1 { "retry" } else { "retries" };
        format!("Webhook '{name}' has failed after {retries} {noun}")
    }

    fn failed_text(&self, name: &str, retries: u32) -> String {
        let noun = if retries == 1 { "retry" } else { "retries" };
        format!(
            "A delivery to the webhook '{name}' was given up after {retries} {noun}. Nothing more is sent to it."
        )
    }

    fn without_success_subject(&self, name: &str) -> String {
        format!("Webhook '{name}' has failed: no success for a long time")
    }

    fn without_success_text(&self, name: &str) -> String {
        format!("No delivery to the webhook '{name}' has succeeded for as long as its policy allows.")
    }

    fn gone_subject(&self, name: &str) -> String {
        format!("Webhook '{name}' has failed: its receiver is gone (410)")
    }

    fn gone_text(&self, name: &str) -> String {
        format!(
            "The receiver of the webhook '{name}' has answered 410 Gone: it wants no more requests. Nothing more is sent \
             to it."
        )
    }

    fn blocked_subject(&self, name: &str) -> String {
        format!("Webhook '{name}' is blocked: a delivery has ended without success")
    }

    fn blocked_text(&self, name: &str) -> String {
        format!(
            "A delivery to the webhook '{name}' has ended without success. It is delivered in order, and no message may \
             overtake another: nothing more is sent until somebody decides."
        )
    }

    fn recovered_subject(&self, name: &str) -> String {
        format!("Webhook '{name}' works again")
    }

    fn recovered_text(&self, name: &str) -> String {
        format!("A delivery to the webhook '{name}' has succeeded. Messages that were held are being sent.")
    }

    fn resumed_subject(&self, name: &str) -> String {
        format!("Webhook '{name}' was resumed")
    }

    fn resumed_text(&self, name: &str) -> String {
        format!("Somebody has resumed the webhook '{name}'. Messages that were held are being sent.")
    }

    fn nothing_is_lost(&self) -> String {
        "New messages are kept, and are sent once the webhook is resumed.".into()
    }

    fn recovers_by_itself(&self) -> String {
        "A probe is sent now and then. As soon as one succeeds, deliveries go on by themselves.".into()
    }

    fn how_to_resume(&self) -> String {
        "Once the receiver works again, resume the webhook with a token of your application:".into()
    }

    fn how_to_recover(&self) -> String {
        "Once the receiver works again, send everything again that was given up, with a token of your application:".into()
    }

    fn endpoint_label(&self) -> String {
        "Webhook".into()
    }

    fn application_label(&self) -> String {
        "Application".into()
    }

    fn error_label(&self) -> String {
        "Last error".into()
    }

    fn since_label(&self) -> String {
        "Failing since".into()
    }

    fn pending_label(&self) -> String {
        "Deliveries that wait".into()
    }

    fn more_than(&self, count: usize) -> String {
        format!("more than {count}")
    }

    fn unnamed_error(&self) -> String {
        "unknown".into()
    }

    fn about_link(&self) -> String {
        "What the states mean and what you can do".into()
    }

    fn digest_subject(&self, count: usize) -> String {
        format!("{count} messages about your webhooks")
    }

    fn digest_text(&self, count: usize) -> String {
        format!("{count} things have happened to your webhooks, the oldest first:")
    }

    fn and_more(&self, count: u32) -> String {
        format!("And {count} more, which are not listed.")
    }

    fn confirm_subject(&self) -> String {
        "Please confirm your mail address".into()
    }

    fn confirm_text(&self, address: &str, server: &str) -> String {
        format!(
            "Somebody has given {address} at {server} as the address that is told when a webhook fails. If you want such \
             mails, confirm it:"
        )
    }

    fn confirm_link(&self) -> String {
        "Confirm this address".into()
    }

    fn confirm_ignore(&self) -> String {
        "If you do not expect this mail, ignore it: you will get no others. The link can be used for 7 days."
            .into()
    }

    fn why_you(&self, address: &str) -> String {
        format!("{address} gets this mail because it is the address for trouble with this webhook.")
    }

    fn unsubscribe_link(&self) -> String {
        "No more mails about this webhook".into()
    }

    fn unsubscribe_application_link(&self) -> String {
        "No more mails about this application".into()
    }

    fn unsubscribe_all_link(&self) -> String {
        "No more mails about any of your webhooks here".into()
    }

    fn why_you_digest(&self, address: &str) -> String {
        format!("{address} gets this mail because it is the address for trouble with these webhooks.")
    }

    fn alerts_subject(&self, count: usize) -> String {
        format!("{count} alerts about the server")
    }

    fn alerts_text(&self, count: usize) -> String {
        format!("{count} alerts have fired or were resolved, the critical ones first:")
    }

    fn unsubscribe_all_question(&self, address: &str) -> String {
        format!("No more mails about any webhook of this sender to {address}?")
    }

    fn unsubscribed_from_all(&self, address: &str) -> String {
        format!("{address} gets no more mails about any webhook of this sender.")
    }

    fn subscribed_to_all(&self, address: &str) -> String {
        format!("{address} gets mails about the webhooks of this sender again.")
    }

    fn test_subject(&self) -> String {
        "A test mail of Aldaba".into()
    }

    fn test_text(&self) -> String {
        "This mail was sent by `aldaba mail test`. The mail server has taken it, and it has arrived.".into()
    }

    fn unsubscribe_title(&self) -> String {
        "Unsubscribe".into()
    }

    fn unsubscribe_question(&self, address: &str) -> String {
        format!("No more mails about this webhook to {address}?")
    }

    fn unsubscribe_button(&self) -> String {
        "Unsubscribe".into()
    }

    fn unsubscribed(&self, address: &str) -> String {
        format!("{address} gets no more mails about this webhook.")
    }

    fn subscribe_button(&self) -> String {
        "Subscribe again".into()
    }

    fn subscribed(&self, address: &str) -> String {
        format!("{address} gets mails about this webhook again.")
    }

    fn confirm_title(&self) -> String {
        "Confirm your mail address".into()
    }

    fn confirm_question(&self, address: &str) -> String {
        format!("Send mails about failing webhooks to {address}?")
    }

    fn confirm_button(&self) -> String {
        "Confirm".into()
    }

    fn confirmed(&self, address: &str) -> String {
        format!("{address} is confirmed.")
    }

    fn unknown_link(&self) -> String {
        "This link is incomplete, or was not made by this server. Copy all of it from the mail.".into()
    }

    fn expired_link(&self) -> String {
        "This link has expired. A new one is sent with the next mail.".into()
    }
}
