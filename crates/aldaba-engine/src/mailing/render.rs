//! Writes a mail as text and as HTML. Everything passes through here, so this is where texts are made inert.

use super::OutgoingMail;
use super::content::{MailContent, MailPart};
use super::inert::{escaped, one_line};
use aldaba_delivery::Language;
use std::fmt::Write;

/// Characters of a subject.
const MAX_SUBJECT: usize = 150;
/// Characters of a paragraph, a value or a link.
const MAX_PARAGRAPH: usize = 2_000;

const STYLE: &str = "font-family:-apple-system,'Segoe UI',Roboto,sans-serif;font-size:15px;line-height:1.5;color:#1c1c1c;max-width:40em";

pub(super) fn outgoing(
    content: MailContent,
    (to, message_id, unsubscribe): (String, String, Option<String>),
    language: Language,
) -> OutgoingMail {
    let MailContent { subject, parts, footer } = content;
    OutgoingMail {
        message_id,
        to,
        subject: one_line(&subject, MAX_SUBJECT),
        text: text(&parts, &footer),
        html: html(&subject, &parts, &footer, language),
        unsubscribe,
        language,
    }
}

fn line(text: &str) -> String {
    one_line(text, MAX_PARAGRAPH)
}

fn text(parts: &[MailPart], footer: &[MailPart]) -> String {
    let mut text: String = parts.iter().map(text_of).collect();
    if !footer.is_empty() {
        text.push_str("-- \n");
        footer.iter().for_each(|part| text.push_str(&text_of(part)));
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn text_of(part: &MailPart) -> String {
    match part {
        MailPart::Heading(heading) => format!("* {}\n", line(heading)),
        MailPart::Paragraph(paragraph) => format!("{}\n\n", line(paragraph)),
        MailPart::Facts(facts) => {
            let fact = |(name, value): &(String, String)| format!("  {}: {}\n", line(name), line(value));
            facts.iter().map(fact).collect::<String>() + "\n"
        }
        MailPart::Link(label, url) => format!("{}:\n{}\n\n", line(label), line(url)),
        MailPart::Command(command) => format!("  {}\n\n", line(command)),
    }
}

fn html(subject: &str, parts: &[MailPart], footer: &[MailPart], language: Language) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"{}\">\n<head><meta charset=\"utf-8\"><title>{}</title></head>\n\
         <body style=\"{STYLE}\">\n",
        language.code(),
        safe(subject)
    );
    parts.iter().for_each(|part| html.push_str(&html_of(part)));
    if !footer.is_empty() {
        html.push_str("<hr>\n<div style=\"font-size:13px;color:#5a5a5a\">\n");
        footer.iter().for_each(|part| html.push_str(&html_of(part)));
        html.push_str("</div>\n");
    }
    html.push_str("</body>\n</html>\n");
    html
}

fn html_of(part: &MailPart) -> String {
    match part {
        MailPart::Heading(heading) => format!("<h3 style=\"margin-bottom:0\">{}</h3>\n", safe(heading)),
        MailPart::Paragraph(paragraph) => format!("<p>{}</p>\n", safe(paragraph)),
        MailPart::Facts(facts) => {
            let mut table = String::from("<table>\n");
            for (name, value) in facts {
                let _ = writeln!(
                    table,
                    "<tr><td style=\"padding-right:1em;vertical-align:top;color:#5a5a5a\">{}</td><td>{}</td></tr>",
                    safe(name),
                    safe(value)
                );
            }
            table + "</table>\n"
        }
        MailPart::Link(label, url) => format!("<p><a href=\"{}\">{}</a></p>\n", safe(url), safe(label)),
        MailPart::Command(command) => {
            format!("<pre style=\"white-space:pre-wrap\">{}</pre>\n", safe(command))
        }
    }
}

fn safe(text: &str) -> String {
    escaped(&line(text))
}
