//! The table of the rules in the documentation.

use aldaba_delivery::Language;
use aldaba_delivery::alert::{AlertLimits, AlertRule, AlertScope};
use aldaba_delivery::format_duration;
use std::fmt::Write as _;

const BEGIN: &str = "<!-- rules: written by `cargo xtask contrib` -->\n";
const END: &str = "<!-- end of rules -->\n";

/// The page with the table between its marks. `None`: the marks are missing.
pub(super) fn put_into(page: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}\n{END}{after}", table()))
}

fn table() -> String {
    let mut text =
        "| rule | fires when | resolved at | after | over | judged for | severity | metric |\n".to_owned();
    text.push_str("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for rule in AlertRule::ALL {
        let (texts, AlertLimits { threshold, resolve, hold, window }) =
            (rule.texts(Language::English), rule.default_limits());
        let unit = rule.unit();
        let scopes: Vec<_> = rule.scopes().iter().map(|scope| scope_name(*scope)).collect();
        let metric = rule.metric().map_or_else(|| "–".into(), |metric| format!("`{metric}`"));
        let after = if hold.is_zero() { "at once".into() } else { format_duration(hold) };
        let window = window.map_or_else(|| "–".into(), format_duration);
        let _ = writeln!(
            text,
            "| `{rule}` | {} {} {} | {} | {after} | {window} | {} | {} | {metric} |",
            texts.meaning(),
            rule.comparison().sign(),
            unit.show(threshold),
            unit.show(resolve),
            scopes.join(", "),
            rule.severity().name(),
        );
    }
    text
}

fn scope_name(scope: AlertScope) -> &'static str {
    match scope {
        AlertScope::Server => "server",
        AlertScope::Organization => "each organization",
        AlertScope::Endpoint => "each endpoint",
    }
}
