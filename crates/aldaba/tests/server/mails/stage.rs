//! A server that sends mails, the SMTP server that gets them, and an endpoint that works or not.

use crate::support::receiver::Receiver;
use crate::support::running::Running;
use crate::support::waiting::wait_for;
use aldaba::config::Config;
use aldaba::mail::SmtpUrl;
use serde_json::{Value, json};
use std::time::Duration;
use test_servers::Smtp;

pub(super) const OWNER: &str = "owner@example.com";
pub(super) const FROM: &str = "Aldaba <hooks@example.com>";

/// Gives an endpoint up after 5 retries, the third failure in a row before that.
pub(super) fn strict() -> Value {
    json!({
        "name": "strict",
        "schedule": {"type": "list", "delays": ["50ms", "50ms", "50ms", "50ms", "50ms"]},
        "jitter": {"type": "none"},
        "gate": {"type": "apart"},
        "endpointFails": {"type": "whenExhausted"},
        "probe": null,
    })
}

/// The settings of mails through an SMTP server, without a wait for others.
pub(super) fn through(smtp: &Smtp) -> impl FnOnce(&mut Config) + use<> {
    let url = format!("smtp://127.0.0.1:{}", smtp.port());
    move |config| {
        config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.public_url = Some("https://hooks.example.com".into());
        config.mail.server = Some(SmtpUrl::parse(&url).unwrap());
        config.mail.from = Some(FROM.parse().unwrap());
        config.mail.delay = Duration::ZERO;
    }
}

pub(super) struct MailStage {
    pub(super) server: Running,
    pub(super) smtp: Smtp,
    pub(super) receiver: Receiver,
    pub(super) app: String,
}

impl MailStage {
    pub(super) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(super) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let smtp = Smtp::start();
        let configure = through(&smtp);
        let server = Running::with(|config| {
            configure(config);
            change(config);
        })
        .await;
        server.client.post("/policy", strict().to_string()).await.expect(201);
        let receiver = Receiver::answering(503, "no").await;
        let app = server.application().await;
        Self { server, smtp, receiver, app }
    }

    /// An endpoint at the receiver, with an owner.
    pub(super) async fn endpoint(&self, more: Value) -> String {
        let mut body = json!({"url": self.receiver.url("/hook"), "policy": "strict", "ownerEmail": OWNER});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let made = self.server.endpoint(&self.app, body).await;
        made["id"].as_str().unwrap().to_owned()
    }

    pub(super) async fn send(&self) -> String {
        self.server.message(&self.app, "a").await
    }

    /// Waits for so many mails, and for no more.
    pub(super) async fn mails(&self, count: usize) -> Vec<Value> {
        wait_for(&format!("{count} mails"), async || {
            let mails = self.smtp.mails();
            (mails.len() >= count).then_some(mails)
        })
        .await;
        parsed(&self.smtp, count)
    }

    /// No more than so many mails come, longer than the sender sleeps and waits after a failure: nothing signals that.
    pub(super) async fn stays_at(&self, count: usize) -> Vec<Value> {
        tokio::time::sleep(Duration::from_secs(3)).await;
        parsed(&self.smtp, count)
    }

    /// Resumes an endpoint, whose receiver works or not.
    pub(super) async fn resume(&self, endpoint: &str) {
        let path = format!("/app/{}/endpoint/{endpoint}/resume", self.app);
        self.server.client.post(&path, "{}").await.expect(200);
    }

    pub(super) async fn becomes(&self, endpoint: &str, status: &str) {
        let path = format!("/app/{}/endpoint/{endpoint}", self.app);
        self.server.client.get_until(&path, |shown| shown["health"]["status"] == status).await;
    }

    /// A token of the application's portal.
    pub(super) async fn portal(&self) -> crate::support::client::Client {
        let path = format!("/auth/app-portal-access/{}", self.app);
        let access = self.server.client.post(&path, "{}").await.expect(200);
        self.server.client.with_token(access["token"].as_str().unwrap())
    }
}

/// What an SMTP server has got: so many mails.
pub(super) fn parsed(smtp: &Smtp, count: usize) -> Vec<Value> {
    let mails: Vec<Value> = smtp.mails().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let subjects: Vec<_> = mails.iter().map(|mail| header(mail, "Subject")).collect();
    assert_eq!(mails.len(), count, "{subjects:?}");
    mails
}

/// The only header of a name.
pub(super) fn header(mail: &Value, name: &str) -> String {
    let headers = mail["headers"].as_array().unwrap().iter();
    let found: Vec<_> =
        headers.filter(|header| header[0].as_str().unwrap().eq_ignore_ascii_case(name)).collect();
    match found[..] {
        [] => String::new(),
        [one] => one[1].as_str().unwrap().to_owned(),
        _ => panic!("{name} is there {} times", found.len()),
    }
}

pub(super) fn subjects(mails: &[Value]) -> Vec<String> {
    let mut subjects: Vec<_> = mails.iter().map(|mail| header(mail, "Subject")).collect();
    subjects.sort();
    subjects
}

pub(super) fn text<'a>(mail: &'a Value, part: &str) -> &'a str {
    mail[part].as_str().unwrap()
}

/// The path of the only link of a page in the text of a mail.
pub(super) fn path(mail: &Value, page: &str) -> String {
    let begin = format!("https://hooks.example.com/mail/{page}/");
    let line = text(mail, "text").lines().find(|line| line.starts_with(&begin));
    let line = line.unwrap_or_else(|| panic!("no {begin} in {}", text(mail, "text")));
    // A path that does not begin at /api/v1, for the client of the tests.
    line.trim().replacen("https://hooks.example.com", "/", 1)
}
