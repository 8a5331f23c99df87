//! Who hears of an alert, and in which words.

use super::Verdict;
use crate::housekeeping::{ALERT_FIRING, ALERT_RESOLVED, rfc3339};
use crate::{AlertMail, AlertText};
use aldaba_delivery::Language;
use aldaba_delivery::alert::{AlertScope, AlertTransition, Severity};
use aldaba_store::{MailRecipient, NewMail, Notice};
use serde_json::json;

impl Verdict {
    fn value(&self) -> Option<f64> {
        match self.transition {
            AlertTransition::None => None,
            AlertTransition::Fires { value } => Some(value),
            AlertTransition::Resolves { value } => value,
        }
    }

    fn fires(&self) -> bool {
        matches!(self.transition, AlertTransition::Fires { .. })
    }
}

/// The operator reads of the server's alerts in the log. Those of organizations are theirs.
pub(super) fn log(verdict: &Verdict) {
    if verdict.scope() != AlertScope::Server {
        return;
    }
    let (rule, texts) = (verdict.rule.name(), verdict.rule.texts(Language::English));
    let (value, threshold) = (verdict.value(), verdict.limits.threshold);
    let severity = verdict.rule.severity().name();
    match verdict.fires() {
        true => tracing::warn!(
            rule,
            severity,
            value,
            threshold,
            what_to_do = texts.what_to_do(),
            "alert: {}",
            texts.title()
        ),
        false => tracing::info!(rule, severity, value, threshold, "alert resolved: {}", texts.title()),
    }
}

/// For operational webhooks. `text` is all that chat services read.
pub(super) fn notice(verdict: &Verdict) -> Notice {
    let Verdict { org, rule, limits, id, at, .. } = verdict;
    let (texts, fires) = (rule.texts(Language::English), verdict.fires());
    let shown = texts.value(verdict.value(), limits);
    let text = match fires {
        true => format!("{}: {}, {shown}. {}", texts.firing(), texts.title(), texts.what_to_do()),
        false => format!("{}: {}, {shown}.", texts.resolved(), texts.title()),
    };
    let body = json!({
        "alertId": id.to_string(),
        "rule": rule.name(),
        "scope": verdict.scope().name(),
        "severity": rule.severity().name(),
        "title": texts.title(),
        "whatToDo": texts.what_to_do(),
        "value": verdict.value(),
        "threshold": limits.threshold,
        "comparison": rule.comparison().sign(),
        "timestamp": rfc3339(*at),
        "text": text,
    });
    let event = if fires { ALERT_FIRING } else { ALERT_RESOLVED };
    Notice { org: *org, event: event.into(), body: body.to_string() }
}

/// For the operator, in every language.
pub(super) fn mail(verdict: &Verdict) -> NewMail {
    let Verdict { rule, limits, at, .. } = verdict;
    let fires = verdict.fires();
    let text = |language: Language| {
        let texts = rule.texts(language);
        let word = if fires { texts.firing() } else { texts.resolved() };
        let value = format!("{}: {}.", texts.meaning(), texts.value(verdict.value(), limits));
        let moment = format!("{rule}, {}", rfc3339(*at));
        let mut paragraphs = vec![value, moment];
        paragraphs.extend(fires.then(|| texts.what_to_do().to_owned()));
        AlertText { subject: format!("{word}: {}", texts.title()), paragraphs }
    };
    let body = AlertMail {
        en: text(Language::English),
        es: text(Language::Spanish),
        path: Some("/docs/guides/alerts".into()),
    };
    NewMail {
        org: None,
        recipient: MailRecipient::Operator,
        kind: match (fires, rule.severity()) {
            (true, Severity::Critical) => NewMail::CRITICAL,
            (true, _) => ALERT_FIRING,
            (false, _) => ALERT_RESOLVED,
        }
        .into(),
        body: body.body(),
        created_at: *at,
        due_at: *at,
        outage: None,
    }
}
