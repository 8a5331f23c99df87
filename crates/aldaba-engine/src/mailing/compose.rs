//! Composes one message: of one mail, or of many as a digest.

use super::content::{AlertMail, AlertText, EndpointTrouble, MailContent, MailPart};
use super::inert::one_line;
use super::links::{MailLink, MailLinkKind, MailScope};
use super::texts::{self, MailTexts, texts};
use super::{MailOptions, OutgoingMail, render};
use crate::housekeeping::rfc3339;
use crate::{Entropy, Vault};
use aldaba_delivery::{Language, OwnerAlert, Timestamp};
use aldaba_store::{Mail, MailEndpoint, MailRecipient, NewMail};
use serde::Deserialize;
use std::collections::HashSet;
use std::time::Duration;
use url::Url;

/// Characters of a name in a mail.
const MAX_NAME: usize = 80;
/// Characters of a URL in a mail.
const MAX_URL: usize = 200;
/// Characters of an error in a mail.
const MAX_ERROR: usize = 500;

/// How long before the first message that was given up others may have been accepted that are given up after it.
const RECOVERY_MARGIN: Duration = Duration::from_secs(3600);

/// The kinds of mails about an endpoint that this server queues with an attempt.
pub(crate) const WARNING: &str = "endpoint.warning";
pub(crate) const GIVEN_UP: &str = "endpoint.given_up";
pub(crate) const FAILED: &str = "endpoint.failed";
pub(crate) const RECOVERED: &str = "endpoint.recovered";

/// What composes mails.
pub(super) struct Composer<'a> {
    pub(super) options: &'a MailOptions,
    pub(super) vault: &'a Vault,
    pub(super) entropy: &'a dyn Entropy,
    pub(super) now: Timestamp,
}

impl Composer<'_> {
    /// Composes a message to an address. `None`: there is nothing to say.
    pub(super) fn compose(&self, mails: &[Mail], to: &str, message_id: &str) -> Option<OutgoingMail> {
        let language = self.language(mails.first()?);
        let texts = texts(language);
        let (content, unsubscribe) = match mails {
            [mail] => self.single(mail, to, texts, language)?,
            many => self.digest(many, to, texts, language),
        };
        Some(render::outgoing(content, (to.to_owned(), message_id.to_owned(), unsubscribe), language))
    }

    /// That of the endpoint, or of its application, or the server's.
    fn language(&self, mail: &Mail) -> Language {
        let of_endpoint = mail.endpoint.as_ref().and_then(|one| chosen_language(&one.metadata));
        let of_application = || mail.application.as_ref().and_then(|one| chosen_language(&one.metadata));
        of_endpoint.or_else(of_application).unwrap_or(self.options.language)
    }

    /// One mail, with the URL by which its reader unsubscribes.
    fn single(
        &self,
        mail: &Mail,
        to: &str,
        texts: &dyn MailTexts,
        language: Language,
    ) -> Option<(MailContent, Option<String>)> {
        if mail.kind == NewMail::CONFIRM {
            return Some((self.confirmation(mail, to, texts, language)?, None));
        }
        let mut content = self.about(mail, texts)?;
        if mail.more > 0 {
            content.parts.push(MailPart::Paragraph(texts.and_more(mail.more)));
        }
        let unsubscribe = self.link(mail, to, MailLinkKind::Unsubscribe, language);
        if let Some(url) = &unsubscribe {
            let label = match mail.recipient {
                MailRecipient::Application(_) => texts.unsubscribe_application_link(),
                _ => texts.unsubscribe_link(),
            };
            content.footer.push(MailPart::Paragraph(texts.why_you(to)));
            content.footer.push(MailPart::Link(label, url.clone()));
        }
        Some((content, unsubscribe))
    }

    /// The subjects of many mails, with what each is about, and for each endpoint a link by which its reader unsubscribes.
    /// Another one unsubscribes from all of them.
    fn digest(
        &self,
        mails: &[Mail],
        to: &str,
        texts: &dyn MailTexts,
        language: Language,
    ) -> (MailContent, Option<String>) {
        let mut linked = HashSet::new();
        let more: u32 = mails.iter().map(|mail| mail.more).sum();
        let count = mails.len() + usize::try_from(more).unwrap_or_default();
        let is_of_alerts = mails.iter().all(|mail| mail.kind.starts_with(AlertMail::KIND_PREFIX));
        let (subject, text) = match is_of_alerts {
            true => (texts.alerts_subject(count), texts.alerts_text(count)),
            false => (texts.digest_subject(count), texts.digest_text(count)),
        };
        let mut parts = vec![MailPart::Paragraph(text)];
        for mail in mails {
            let Some(content) = self.about(mail, texts) else { continue };
            parts.push(MailPart::Heading(format!("{} – {}", moment(mail.created_at), content.subject)));
            if mail.kind.starts_with(AlertMail::KIND_PREFIX) {
                // The value, its limit and what to do.
                parts.extend(content.parts);
            } else {
                parts.extend(content.parts.into_iter().find(|part| matches!(part, MailPart::Facts(_))));
            }
            if let Some(endpoint) = &mail.endpoint
                && linked.insert(endpoint.id)
                && let Some(url) = self.link(mail, to, MailLinkKind::Unsubscribe, language)
            {
                parts.push(MailPart::Link(texts.unsubscribe_link(), url));
            }
        }
        if more > 0 {
            parts.push(MailPart::Paragraph(texts.and_more(more)));
        }
        if !is_of_alerts {
            parts.push(self.guide(texts));
        }
        let mut footer = Vec::new();
        let all = mails
            .first()
            .and_then(|mail| mail.org)
            .map(|org| self.link_to(MailScope::Organization(org), to, MailLinkKind::Unsubscribe, language));
        if let Some(url) = &all {
            footer.push(MailPart::Paragraph(texts.why_you_digest(to)));
            footer.push(MailPart::Link(texts.unsubscribe_all_link(), url.clone()));
        }
        (MailContent { subject, parts, footer }, all)
    }

    /// What a mail says, without its footer. `None`: nothing is known of it any more.
    fn about(&self, mail: &Mail, texts: &dyn MailTexts) -> Option<MailContent> {
        if mail.kind.starts_with(AlertMail::KIND_PREFIX) {
            return self.alert(mail, texts);
        }
        let endpoint = mail.endpoint.as_ref()?;
        let name = shown_name(endpoint);
        let trouble: EndpointTrouble = serde_json::from_str(&mail.body).unwrap_or_default();
        let mut parts = Vec::new();
        let subject = match mail.kind.as_str() {
            WARNING => {
                let failures = trouble.failures.max(OwnerAlert::WARNING_FAILURES);
                parts.push(MailPart::Paragraph(texts.warning_text(&name, failures)));
                parts.push(facts(mail, endpoint, Some(&trouble), texts));
                texts.warning_subject(&name, failures)
            }
            GIVEN_UP => {
                parts.push(MailPart::Paragraph(texts.given_up_text(&name)));
                parts.push(facts(mail, endpoint, Some(&trouble), texts));
                parts.push(MailPart::Paragraph(texts.how_to_recover()));
                parts.extend(self.recover_command(mail, &trouble).map(MailPart::Command));
                texts.given_up_subject(&name)
            }
            FAILED => {
                let (subject, text) = texts::failed(texts, &name, trouble.cause, trouble.retries);
                parts.push(MailPart::Paragraph(text));
                parts.push(facts(mail, endpoint, Some(&trouble), texts));
                parts.push(MailPart::Paragraph(texts.nothing_is_lost()));
                if trouble.probes {
                    parts.push(MailPart::Paragraph(texts.recovers_by_itself()));
                }
                parts.push(MailPart::Paragraph(texts.how_to_resume()));
                parts.extend(self.command(mail, "resume", "").map(MailPart::Command));
                subject
            }
            RECOVERED => {
                parts.push(MailPart::Paragraph(texts.recovered_text(&name)));
                parts.push(facts(mail, endpoint, None, texts));
                texts.recovered_subject(&name)
            }
            NewMail::RESUMED => {
                parts.push(MailPart::Paragraph(texts.resumed_text(&name)));
                parts.push(facts(mail, endpoint, None, texts));
                texts.resumed_subject(&name)
            }
            _ => return None,
        };
        parts.push(self.guide(texts));
        Some(MailContent { subject, parts, footer: Vec::new() })
    }

    fn alert(&self, mail: &Mail, texts: &dyn MailTexts) -> Option<MailContent> {
        let alert: AlertMail = serde_json::from_str(&mail.body).ok()?;
        let AlertText { subject, paragraphs } = match self.language(mail) {
            Language::English => alert.en,
            Language::Spanish => alert.es,
        };
        let mut parts: Vec<_> = paragraphs.into_iter().map(MailPart::Paragraph).collect();
        parts.extend(alert.path.map(|path| MailPart::Link(texts.about_link(), self.url(&path))));
        Some(MailContent { subject, parts, footer: Vec::new() })
    }

    /// Names nothing that the one who gave the address may have chosen.
    fn confirmation(
        &self,
        mail: &Mail,
        to: &str,
        texts: &dyn MailTexts,
        language: Language,
    ) -> Option<MailContent> {
        let url = self.link(mail, to, MailLinkKind::Confirm, language)?;
        let parts = vec![
            MailPart::Paragraph(texts.confirm_text(to, &self.options.public_url)),
            MailPart::Link(texts.confirm_link(), url),
            MailPart::Paragraph(texts.confirm_ignore()),
        ];
        Some(MailContent { subject: texts.confirm_subject(), parts, footer: Vec::new() })
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.options.public_url)
    }

    fn guide(&self, texts: &dyn MailTexts) -> MailPart {
        MailPart::Link(texts.about_link(), self.url("/docs/guides/health"))
    }

    /// What sends again what was given up in an outage. It goes by when messages were accepted, and they are not given up in that
    /// order.
    fn recover_command(&self, mail: &Mail, trouble: &EndpointTrouble) -> Option<String> {
        let first = Timestamp::from_millis(trouble.since.min(trouble.accepted_at));
        let since = rfc3339(first.before(RECOVERY_MARGIN));
        self.command(mail, "recover", &format!(" --json '{{\"since\": \"{since}\"}}'"))
    }

    /// What does something with the endpoint, for a shell.
    fn command(&self, mail: &Mail, action: &str, options: &str) -> Option<String> {
        let MailRecipient::Endpoint(app, endpoint) = mail.recipient else { return None };
        let url = self.url(&format!("/api/v1/app/{app}/endpoint/{endpoint}/{action}"));
        Some(format!("curl --request POST --header \"Authorization: Bearer $TOKEN\"{options} {url}"))
    }

    fn link(&self, mail: &Mail, to: &str, kind: MailLinkKind, language: Language) -> Option<String> {
        let scope = match &mail.recipient {
            MailRecipient::Operator => return None,
            MailRecipient::Endpoint(app, endpoint) => MailScope::Endpoint(*app, *endpoint),
            MailRecipient::Application(app) | MailRecipient::Unconfirmed(app, _) => {
                MailScope::Application(*app)
            }
        };
        Some(self.link_to(scope, to, kind, language))
    }

    fn link_to(&self, scope: MailScope, to: &str, kind: MailLinkKind, language: Language) -> String {
        let link = MailLink { kind, scope, address: to.to_owned(), issued_at: self.now, language };
        let page = match kind {
            MailLinkKind::Unsubscribe => "/mail/unsubscribe/",
            MailLinkKind::Confirm => "/mail/confirm/",
        };
        self.url(&format!("{page}{}", link.sealed(self.vault, self.entropy)))
    }
}

/// An endpoint without a name is called by the host of its URL.
fn shown_name(endpoint: &MailEndpoint) -> String {
    let name = endpoint.name.as_deref().map(|name| one_line(name, MAX_NAME)).filter(|name| !name.is_empty());
    let host = || Url::parse(&endpoint.url).ok().and_then(|url| url.host_str().map(str::to_owned));
    name.or_else(host).unwrap_or_else(|| endpoint.id.to_string())
}

/// Where an endpoint is, without its path and query: either may hold a secret, as in URLs of chat services.
fn shown_origin(url: &str) -> Option<String> {
    Some(one_line(&Url::parse(url).ok()?.origin().ascii_serialization(), MAX_URL))
}

fn facts(
    mail: &Mail,
    endpoint: &MailEndpoint,
    trouble: Option<&EndpointTrouble>,
    texts: &dyn MailTexts,
) -> MailPart {
    let id = endpoint.id.to_string();
    let place = shown_origin(&endpoint.url).map_or(id.clone(), |origin| format!("{origin}, {id}"));
    let mut facts = vec![(texts.endpoint_label(), format!("{} ({place})", shown_name(endpoint)))];
    if let Some(application) = &mail.application {
        facts.push((texts.application_label(), one_line(&application.name, MAX_NAME)));
    }
    if let Some(trouble) = trouble {
        let error = one_line(&trouble.error, MAX_ERROR);
        let error = if error.is_empty() { texts.unnamed_error() } else { error };
        facts.push((texts.error_label(), error));
        facts.push((texts.since_label(), moment(Timestamp::from_millis(trouble.since))));
    }
    let pending = match endpoint.pending {
        count if count > MailEndpoint::MAX_COUNTED => texts.more_than(MailEndpoint::MAX_COUNTED),
        count => count.to_string(),
    };
    facts.push((texts.pending_label(), pending));
    MailPart::Facts(facts)
}

fn moment(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// The language that the metadata of an endpoint or an application chooses for its mails, as `mailLanguage`.
fn chosen_language(metadata: &str) -> Option<Language> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Chosen {
        mail_language: String,
    }
    let chosen: Chosen = serde_json::from_str(metadata).ok()?;
    Language::of_code(&chosen.mail_language)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemEntropy;
    use crate::mailing::{MailFailure, MailTransport, SendingMail, TroubleCause};
    use aldaba_delivery::{AppId, EndpointId, HealthStatus};
    use aldaba_store::{MailApplication, MailNumber, MailPermission};
    use std::sync::Arc;

    const NOW: Timestamp = Timestamp::from_millis(1_795_000_000_000);

    #[derive(Debug)]
    struct Nowhere;

    impl MailTransport for Nowhere {
        fn send<'a>(&'a self, _mail: &'a OutgoingMail) -> SendingMail<'a> {
            Box::pin(async { Err(MailFailure::Server("there is none".into())) })
        }
    }

    fn composed(mails: &[Mail], language: Language) -> Option<OutgoingMail> {
        let options = MailOptions {
            transport: Arc::new(Nowhere),
            operator: Some("operations@example.com".into()),
            language,
            public_url: "https://hooks.example.com".into(),
            domain: "example.com".into(),
            delay: Duration::ZERO,
        };
        let (vault, entropy) = (Vault::new([7; 32]), SystemEntropy::new());
        let composer = Composer { options: &options, vault: &vault, entropy: &entropy, now: NOW };
        composer.compose(mails, "operations@example.com", "<1@example.com>")
    }

    fn to_operator(kind: &str, body: String) -> Mail {
        Mail {
            number: MailNumber(1),
            org: None,
            recipient: MailRecipient::Operator,
            kind: kind.into(),
            body,
            more: 0,
            created_at: NOW,
            attempts: 0,
            endpoint: None,
            application: None,
            permission: MailPermission::Allowed,
        }
    }

    fn about_endpoint(kind: &str) -> Mail {
        let (app, id) = (AppId::from_bytes([1; 20]), EndpointId::from_bytes([2; 20]));
        let endpoint = MailEndpoint {
            id,
            name: Some("A\r\nBcc: x@example.com".into()),
            url: "https://example.com/canary?key=canary#canary".into(),
            status: HealthStatus::Failed,
            disabled: false,
            pending: MailEndpoint::MAX_COUNTED + 1,
            metadata: "{}".into(),
        };
        let trouble = EndpointTrouble { error: "<b>".into(), retries: 1, ..EndpointTrouble::default() };
        Mail {
            recipient: MailRecipient::Endpoint(app, id),
            body: serde_json::to_string(&trouble).unwrap(),
            endpoint: Some(endpoint),
            application: Some(MailApplication { name: "B".into(), metadata: "{}".into() }),
            ..to_operator(kind, String::new())
        }
    }

    #[test]
    fn an_alert_is_written_in_the_language_of_the_operator_and_has_no_link_to_unsubscribe() {
        let text = |subject: &str| AlertText { subject: subject.into(), paragraphs: vec!["<p>".into()] };
        let alert = AlertMail { en: text("Queue"), es: text("Cola"), path: Some("/docs".into()) };
        let mail = |language| composed(&[to_operator("alert.queue", alert.body())], language).unwrap();
        let (english, spanish) = (mail(Language::English), mail(Language::Spanish));
        assert_eq!((english.subject.as_str(), spanish.subject.as_str()), ("Queue", "Cola"));
        assert!(english.text.contains("https://hooks.example.com/docs"), "{}", english.text);
        assert!(english.html.contains("<p>&lt;p&gt;</p>"), "{}", english.html);
        assert_eq!((english.unsubscribe, english.to.as_str()), (None, "operations@example.com"));
    }

    #[test]
    fn every_kind_about_an_endpoint_has_a_text_in_both_languages_without_line_ends_markup_or_secrets() {
        for kind in [WARNING, GIVEN_UP, FAILED, RECOVERED, NewMail::RESUMED] {
            let subjects = Language::ALL.map(|language| {
                let mail = composed(&[about_endpoint(kind)], language).unwrap();
                assert!(mail.subject.contains("'A Bcc: x@example.com'"), "{}", mail.subject);
                for text in [&mail.text, &mail.html] {
                    assert!(!text.contains("canary") && !text.contains("\nBcc"), "{text}");
                }
                assert!(!mail.html.contains("<b>") && mail.unsubscribe.is_some(), "{}", mail.html);
                mail.subject
            });
            assert_ne!(subjects[0], subjects[1], "{kind}");
        }
    }

    #[test]
    fn no_text_of_others_is_markup_or_begins_a_line_in_any_kind_of_mail_and_any_language() {
        let hostile = "<img src=x onerror=alert(1)>\r\nBcc: x@example.com\u{2028}\u{202e}\"'</title>";
        let text = || AlertText { subject: hostile.into(), paragraphs: vec![hostile.into()] };
        let alert = AlertMail { en: text(), es: text(), path: Some("/docs".into()) };
        let trouble = |cause| EndpointTrouble { error: hostile.into(), cause, ..EndpointTrouble::default() };
        let about = |kind, cause| Mail {
            body: serde_json::to_string(&trouble(cause)).unwrap(),
            endpoint: about_endpoint(kind)
                .endpoint
                .map(|one| MailEndpoint { name: Some(hostile.into()), ..one }),
            application: Some(MailApplication { name: hostile.into(), metadata: "{}".into() }),
            ..about_endpoint(kind)
        };
        use TroubleCause::{Blocked, Exhausted, Gone, WithoutSuccess};
        let mut mails: Vec<_> =
            [Exhausted, WithoutSuccess, Gone, Blocked].map(|cause| about(FAILED, cause)).into();
        mails.extend([WARNING, GIVEN_UP, RECOVERED, NewMail::RESUMED].map(|kind| about(kind, Exhausted)));
        mails.push(to_operator("alert.firing", alert.body()));
        let confirmed = MailRecipient::Unconfirmed(AppId::from_bytes([1; 20]), "a@example.com".into());
        mails.push(Mail { recipient: confirmed, ..about(NewMail::CONFIRM, Exhausted) });
        for language in Language::ALL {
            let singles = mails.iter().map(std::slice::from_ref);
            for of_one_message in singles.chain([&mails[..]]) {
                let mail = composed(of_one_message, language).unwrap();
                assert!(!mail.subject.contains(['\r', '\n', '\u{2028}', '\u{202e}']), "{:?}", mail.subject);
                assert!(!mail.html.contains("<img") && !mail.html.contains("'</title>"), "{}", mail.html);
                for text in [&mail.text, &mail.html] {
                    assert!(!text.contains(['\r', '\u{2028}', '\u{202e}']), "{text:?}");
                    assert!(text.lines().all(|line| !line.starts_with("Bcc")), "{text}");
                }
            }
        }
    }

    #[test]
    fn a_digest_names_each_thing_and_how_many_are_not_listed() {
        let last = Mail { more: 7, ..about_endpoint(RECOVERED) };
        let mail =
            composed(&[about_endpoint(WARNING), about_endpoint(FAILED), last], Language::English).unwrap();
        assert_eq!(mail.subject, "10 messages about your webhooks");
        for said in ["has failed after 1 retry", "is failing", "works again", "And 7 more", "more than 1000"]
        {
            assert!(mail.text.contains(said), "{said}: {}", mail.text);
        }
    }

    #[test]
    fn a_digest_of_alerts_keeps_value_limit_and_what_to_do_and_leads_to_the_guide_of_alerts() {
        let text = |subject: &str| AlertText {
            subject: subject.into(),
            paragraphs: vec!["12, the limit is 10.".into(), "Make room.".into()],
        };
        let path = Some("/docs/guides/alerts".into());
        let alert = AlertMail { en: text("Queue"), es: text("Cola"), path };
        let mails = [to_operator(NewMail::CRITICAL, alert.body()), to_operator("alert.firing", alert.body())];
        let mail = composed(&mails, Language::English).unwrap();
        assert_eq!(mail.subject, "2 alerts about the server");
        for said in ["12, the limit is 10.", "Make room.", "https://hooks.example.com/docs/guides/alerts"] {
            assert_eq!(mail.text.matches(said).count(), 2, "{said}: {}", mail.text);
        }
        assert!(!mail.text.contains("/guides/health"), "{}", mail.text);
        assert_eq!(mail.unsubscribe, None);
    }

    #[test]
    fn a_digest_has_one_link_that_unsubscribes_from_all_that_its_organization_sends() {
        let org = aldaba_delivery::OrgId::from_bytes([3; 20]);
        let mails = [FAILED, RECOVERED].map(|kind| Mail { org: Some(org), ..about_endpoint(kind) });
        let mail = composed(&mails, Language::English).unwrap();
        let token = mail.unsubscribe.as_deref().and_then(|url| url.rsplit('/').next()).unwrap();
        assert!(mail.text.contains(token), "{}", mail.text);
        let link = MailLink::open(&Vault::new([7; 32]), token, NOW).unwrap();
        assert_eq!(link.scope, MailScope::Organization(org));
    }

    #[test]
    fn a_kind_that_is_not_known_composes_nothing() {
        assert_eq!(composed(&[about_endpoint("endpoint.other")], Language::English), None);
        assert_eq!(composed(&[to_operator("alert.queue", "{}".into())], Language::English), None);
    }
}
