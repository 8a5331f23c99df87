//! The running server, by its own checks.

use super::Finding;
use crate::cli::server_of_folder;
use crate::config::Config;
use aldaba_engine::default_organization;
use serde::Deserialize;

#[derive(Deserialize)]
struct Readiness {
    checks: Vec<ServerCheck>,
}

#[derive(Deserialize)]
struct ServerCheck {
    name: String,
    state: String,
    detail: Option<String>,
    action: Option<String>,
}

pub(super) async fn examine(config: &Config, findings: &mut Vec<Finding>) {
    const CHECK: &str = "server";
    let server = match server_of_folder(config, default_organization()) {
        Ok(server) => server,
        Err(error) => {
            findings.push(Finding::warning(
                CHECK,
                format!("a server uses the folder, and cannot be asked: {error}"),
                "run this command with the settings of the server",
            ));
            return;
        }
    };
    let asked = server.call(server.client().get_plain("/api/v1/health/ready")).await;
    let readiness = match asked {
        Ok(answer) if matches!(answer.status, 200 | 503) => {
            serde_json::from_slice::<Readiness>(&answer.body).map_err(|error| error.to_string())
        }
        Ok(answer) => Err(format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body).trim())),
        Err(error) => Err(error.to_string()),
    };
    let readiness = match readiness {
        Ok(readiness) => readiness,
        Err(error) => {
            findings.push(Finding::problem(
                CHECK,
                format!("a server or a command uses the folder, and does not answer: {error}"),
                "run this command with the settings of the server, and look at its log",
            ));
            return;
        }
    };
    let before = findings.len();
    for check in readiness.checks {
        let detail = format!("{}: {}", check.name, check.detail.unwrap_or_default());
        let action = check.action.unwrap_or_else(|| "look at the log of the server".into());
        match check.state.as_str() {
            "ok" => {}
            "warning" => findings.push(Finding::warning(CHECK, detail, action)),
            _ => findings.push(Finding::problem(CHECK, detail, action)),
        }
    }
    if findings.len() == before {
        findings.push(Finding::ok(CHECK, format!("the server at {} is ready", server.url())));
    }
}
