//! `aldaba policy import`: what a file asks for, what that would change, and the change.

use super::brief;
use super::server;
use crate::cli::server_client::{ServerClient, ServerError};
use aldaba_delivery::Policy;
use aldaba_delivery::policy::BUILTIN_NAMES;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The policies of a file: one, a list, or the list that the API gives, whose built-in ones are left out.
pub(super) fn read(text: &str) -> Result<Vec<Policy>, String> {
    let json: Value = serde_json::from_str(text).map_err(|error| format!("this is not JSON: {error}"))?;
    let listed = match &json {
        Value::Array(items) => Some(items),
        Value::Object(fields) => fields.get("data").and_then(Value::as_array),
        _ => return Err("expected a policy or a list of policies".into()),
    };
    let (mut policies, mut problems) = (Vec::new(), Vec::new());
    let mut names = BTreeSet::new();
    for (number, item) in listed.map_or(std::slice::from_ref(&json), Vec::as_slice).iter().enumerate() {
        let mut item = item.clone();
        let shown_as_built_in = item.as_object_mut().and_then(|fields| fields.remove("builtIn"));
        if shown_as_built_in == Some(Value::Bool(true)) {
            continue;
        }
        let place = match item.get("name").and_then(Value::as_str) {
            Some(name) => name.to_owned(),
            None if listed.is_some() => format!("[{number}]"),
            None => "policy".into(),
        };
        match Policy::from_request_json(&item) {
            Ok(policy) if BUILTIN_NAMES.contains(&policy.name.as_str()) => {
                problems.push(format!("{place}: is built in and cannot be changed; give it another name"));
            }
            Ok(policy) if !names.insert(policy.name.clone()) => {
                problems.push(format!("{place}: is there twice"));
            }
            Ok(policy) => policies.push(policy),
            Err(errors) => problems.extend(errors.iter().map(|error| format!("{place}: {error}"))),
        }
    }
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    if policies.is_empty() {
        return Err("there is no policy in it".into());
    }
    Ok(policies)
}

/// The effect of importing a policy.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ImportStep {
    Create(Policy),
    Replace { was: Policy, now: Policy },
    Unchanged(Policy),
}

pub(super) fn plan(wanted: Vec<Policy>, present: &[Policy]) -> Vec<ImportStep> {
    let step = |policy: Policy| match present.iter().find(|other| other.name == policy.name) {
        None => ImportStep::Create(policy),
        Some(same) if *same == policy => ImportStep::Unchanged(policy),
        Some(was) => ImportStep::Replace { was: was.clone(), now: policy },
    };
    wanted.into_iter().map(step).collect()
}

impl ImportStep {
    fn describe(&self, dry_run: bool) -> String {
        match self {
            Self::Create(policy) => {
                let verb = if dry_run { "would create" } else { "created" };
                format!("{verb} {}: {}", policy.name, brief(policy))
            }
            Self::Replace { was, now } => {
                let verb = if dry_run { "would replace" } else { "replaced" };
                format!("{verb} {}: {} (was: {})", now.name, brief(now), brief(was))
            }
            Self::Unchanged(policy) => format!("unchanged {}: {}", policy.name, brief(policy)),
        }
    }

    async fn apply(&self, server: &ServerClient) -> Result<(), ServerError> {
        match self {
            Self::Create(policy) => server::create(server, policy).await,
            Self::Replace { now, .. } => server::replace(server, now).await,
            Self::Unchanged(_) => Ok(()),
        }
    }
}

/// Applies the steps in order and reports each. The first failure ends the import; earlier steps stay applied.
pub(super) async fn apply(
    steps: &[ImportStep],
    server: &ServerClient,
    dry_run: bool,
    tell: &mut impl FnMut(&str),
) -> Result<(), ServerError> {
    for step in steps {
        if !dry_run {
            step.apply(server).await?;
        }
        tell(&step.describe(dry_run));
    }
    tell(&summary(steps, dry_run));
    Ok(())
}

fn summary(steps: &[ImportStep], dry_run: bool) -> String {
    let count = |is: fn(&ImportStep) -> bool| steps.iter().filter(|step| is(step)).count();
    let mut text = format!(
        "{} created, {} replaced, {} unchanged",
        count(|step| matches!(step, ImportStep::Create(_))),
        count(|step| matches!(step, ImportStep::Replace { .. })),
        count(|step| matches!(step, ImportStep::Unchanged(_))),
    );
    if dry_run {
        let _ = write!(text, " (dry run: nothing was changed)");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policy(name: &str, delays: &[&str]) -> Value {
        json!({ "name": name, "schedule": { "type": "list", "delays": delays } })
    }

    fn names(text: &Value) -> Result<Vec<String>, String> {
        Ok(read(&text.to_string())?.iter().map(|policy| policy.name.clone()).collect())
    }

    #[test]
    fn one_a_list_and_what_the_api_lists_are_read() {
        let (a, b) = (policy("a", &["1s"]), policy("b", &["1s"]));
        assert_eq!(names(&a), Ok(vec!["a".into()]));
        assert_eq!(names(&json!([a, b])), Ok(vec!["a".into(), "b".into()]));
        let mut built_in = policy("quick", &["1s"]);
        built_in["builtIn"] = true.into();
        let mut own = a.clone();
        own["builtIn"] = false.into();
        let listed = json!({ "data": [own, built_in], "iterator": null, "done": true });
        assert_eq!(names(&listed), Ok(vec!["a".into()]));
    }

    #[test]
    fn all_that_is_wrong_is_named_with_the_policy() {
        let wrong = json!([
            policy("a", &["soon"]),
            { "schedule": { "type": "list", "delays": ["1s"] } },
            policy("quick", &["1s"]),
            policy("b", &["1s"]),
            policy("b", &["2s"]),
        ]);
        assert_eq!(
            names(&wrong).expect_err("it is wrong").lines().collect::<Vec<_>>(),
            [
                "a: schedule.delays[0]: expected a duration such as \"500ms\", \"5s\", \"15m\", \"2h\" or \"7d\", not \"soon\"",
                "[1]: name: this field is required",
                "quick: is built in and cannot be changed; give it another name",
                "b: is there twice",
            ]
        );
        assert_eq!(names(&json!([])), Err("there is no policy in it".into()));
        assert_eq!(names(&json!("a")), Err("expected a policy or a list of policies".into()));
        assert!(read("{").expect_err("it is cut off").starts_with("this is not JSON: "));
    }

    #[test]
    fn a_plan_says_what_changes() {
        let read = |value: Value| read(&value.to_string()).expect("policies");
        let present = read(json!([policy("a", &["1s"]), policy("b", &["1s"])]));
        let wanted = read(json!([policy("a", &["1s"]), policy("b", &["1s", "1m"]), policy("c", &["1s"])]));
        let steps = plan(wanted, &present);
        let lines: Vec<_> = steps.iter().map(|step| step.describe(true)).collect();
        assert_eq!(
            lines,
            [
                "unchanged a: 2 attempts, the last after 1s",
                "would replace b: 3 attempts, the last after 1m 1s (was: 2 attempts, the last after 1s)",
                "would create c: 2 attempts, the last after 1s",
            ]
        );
        assert_eq!(summary(&steps, false), "1 created, 1 replaced, 1 unchanged");
    }
}
