//! The texts of mails and of the pages that their links lead to. A text that a language lacks does not compile.

mod english;
mod spanish;

use super::content::TroubleCause;
use aldaba_delivery::Language;
use english::English;
use spanish::Spanish;

/// Every text, in one language. Arguments are texts of others where they are no numbers: they are made inert when they are
/// written.
pub trait MailTexts: Sync {
    fn warning_subject(&self, name: &str, failures: u32) -> String;
    fn warning_text(&self, name: &str, failures: u32) -> String;
    fn given_up_subject(&self, name: &str) -> String;
    fn given_up_text(&self, name: &str) -> String;
    fn failed_subject(&self, name: &str, retries: u32) -> String;
    fn failed_text(&self, name: &str, retries: u32) -> String;
    fn without_success_subject(&self, name: &str) -> String;
    fn without_success_text(&self, name: &str) -> String;
    fn gone_subject(&self, name: &str) -> String;
    fn gone_text(&self, name: &str) -> String;
    fn blocked_subject(&self, name: &str) -> String;
    fn blocked_text(&self, name: &str) -> String;
    fn recovered_subject(&self, name: &str) -> String;
    fn recovered_text(&self, name: &str) -> String;
    fn resumed_subject(&self, name: &str) -> String;
    fn resumed_text(&self, name: &str) -> String;
    /// Messages are kept.
    fn nothing_is_lost(&self) -> String;
    /// It is probed.
    fn recovers_by_itself(&self) -> String;
    fn how_to_resume(&self) -> String;
    /// How to send again what was given up.
    fn how_to_recover(&self) -> String;
    fn endpoint_label(&self) -> String;
    fn application_label(&self) -> String;
    fn error_label(&self) -> String;
    fn since_label(&self) -> String;
    fn pending_label(&self) -> String;
    /// A count that was given up.
    fn more_than(&self, count: usize) -> String;
    fn unnamed_error(&self) -> String;
    fn about_link(&self) -> String;
    fn digest_subject(&self, count: usize) -> String;
    fn digest_text(&self, count: usize) -> String;
    fn and_more(&self, count: u32) -> String;
    fn confirm_subject(&self) -> String;
    fn confirm_text(&self, address: &str, server: &str) -> String;
    fn confirm_link(&self) -> String;
    fn confirm_ignore(&self) -> String;
    fn why_you(&self, address: &str) -> String;
    fn unsubscribe_link(&self) -> String;
    fn unsubscribe_application_link(&self) -> String;
    /// Of a digest.
    fn unsubscribe_all_link(&self) -> String;
    fn why_you_digest(&self, address: &str) -> String;
    fn alerts_subject(&self, count: usize) -> String;
    fn alerts_text(&self, count: usize) -> String;
    fn test_subject(&self) -> String;
    fn test_text(&self) -> String;
    // Pages.
    fn unsubscribe_title(&self) -> String;
    fn unsubscribe_question(&self, address: &str) -> String;
    fn unsubscribe_all_question(&self, address: &str) -> String;
    fn unsubscribed_from_all(&self, address: &str) -> String;
    fn subscribed_to_all(&self, address: &str) -> String;
    fn unsubscribe_button(&self) -> String;
    fn unsubscribed(&self, address: &str) -> String;
    fn subscribe_button(&self) -> String;
    fn subscribed(&self, address: &str) -> String;
    fn confirm_title(&self) -> String;
    fn confirm_question(&self, address: &str) -> String;
    fn confirm_button(&self) -> String;
    fn confirmed(&self, address: &str) -> String;
    fn unknown_link(&self) -> String;
    fn expired_link(&self) -> String;
}

pub fn texts(language: Language) -> &'static dyn MailTexts {
    match language {
        Language::English => &English,
        Language::Spanish => &Spanish,
    }
}

/// The subject and the first sentence of the mail that an endpoint has failed.
pub(super) fn failed(
    texts: &dyn MailTexts,
    name: &str,
    cause: TroubleCause,
    retries: u32,
) -> (String, String) {
    match cause {
        TroubleCause::Exhausted => (texts.failed_subject(name, retries), texts.failed_text(name, retries)),
        TroubleCause::WithoutSuccess => {
            (texts.without_success_subject(name), texts.without_success_text(name))
        }
        TroubleCause::Gone => (texts.gone_subject(name), texts.gone_text(name)),
        TroubleCause::Blocked => (texts.blocked_subject(name), texts.blocked_text(name)),
    }
}
