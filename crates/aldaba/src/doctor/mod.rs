//! `aldaba doctor`: looks at a data folder and at its running server, and says what is wrong and what to do. It changes nothing.

mod database;
mod folder;
mod keys;
mod server;

use crate::config::Config;
use aldaba_delivery::Timestamp;
use serde::Serialize;
use std::fmt;

/// What a check has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) check: &'static str,
    pub(crate) state: Severity,
    pub(crate) detail: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) action: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    Ok,
    /// Somebody should look at it; the server works.
    Warning,
    /// The server cannot work, or may lose something.
    Problem,
}

impl Finding {
    fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, state: Severity::Ok, detail: detail.into(), action: None }
    }

    fn warning(check: &'static str, detail: impl Into<String>, action: impl Into<String>) -> Self {
        let action = Some(action.into());
        Self { check, state: Severity::Warning, detail: detail.into(), action }
    }

    fn problem(check: &'static str, detail: impl Into<String>, action: impl Into<String>) -> Self {
        Self { state: Severity::Problem, ..Self::warning(check, detail, action) }
    }
}

/// All that was found.
#[derive(Debug, Serialize)]
pub(crate) struct Diagnosis {
    /// The worst of all.
    pub(crate) status: Severity,
    pub(crate) version: &'static str,
    pub(crate) findings: Vec<Finding>,
}

/// Looks at everything. `thorough`: compares the indexes of the database with their tables, which takes long.
pub(crate) async fn examine(config: &Config, thorough: bool, now: Timestamp) -> Diagnosis {
    let mut findings = Vec::new();
    if let Some(state) = folder::examine(config, &mut findings) {
        database::examine(config, thorough, now, &mut findings);
        if state.is_locked {
            server::examine(config, &mut findings).await;
        } else {
            findings.push(Finding::ok("server", "no server uses the folder now"));
        }
    }
    let status = findings.iter().map(|finding| finding.state).max().unwrap_or(Severity::Ok);
    Diagnosis { status, version: env!("CARGO_PKG_VERSION"), findings }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { check, state, detail, action } in &self.findings {
            let state = match state {
                Severity::Ok => "ok",
                Severity::Warning => "warning",
                Severity::Problem => "PROBLEM",
            };
            writeln!(f, "{state:<8} {check:<15} {detail}")?;
            if let Some(action) = action {
                writeln!(f, "{:<24} → {action}", "")?;
            }
        }
        let said = match self.status {
            Severity::Ok => "Nothing is wrong.",
            Severity::Warning => "The server can work; look at the warnings.",
            Severity::Problem => "Something is wrong: do what the arrows say.",
        };
        writeln!(f, "{said}")
    }
}
