use super::*;
use crate::policy::{BUILTIN_NAMES, Keep, Limit, Overrides, RetentionRule, builtin};
use serde_json::json;
use std::time::Duration;

fn builtin_policy(name: &str) -> Policy {
    builtin(name, &Overrides::default()).expect("a built-in name").expect("a valid policy")
}

fn refusals(value: &Value) -> Vec<String> {
    Policy::from_json(value).expect_err("it is wrong").iter().map(ToString::to_string).collect()
}

#[test]
fn every_built_in_policy_reads_as_it_was_written() {
    for name in BUILTIN_NAMES {
        let policy = builtin_policy(name);
        assert_eq!(Policy::from_json(&policy.to_json()), Ok(policy), "{name}");
    }
}

#[test]
fn a_name_and_delays_are_enough() {
    let policy = json!({ "name": "mine", "schedule": { "type": "list", "delays": ["1s", "1m"] } });
    let policy = Policy::from_json(&policy).expect("a policy");
    assert_eq!(policy.limit, Limit { attempts: Some(3), stop_after: None });
    assert_eq!(policy.timeouts, builtin_policy("standard").timeouts);
}

#[test]
fn all_that_is_wrong_is_named_with_its_place() {
    let policy = json!({
        "schedule": { "type": "exponential", "base": "1s", "factor": 2, "cap": "1 hour" },
    });
    assert_eq!(
        refusals(&policy),
        [
            "schedule.cap: expected a duration such as \"500ms\", \"5s\", \"15m\", \"2h\" or \"7d\", not \"1 hour\"",
            "name: this field is required",
        ]
    );
    let policy = json!({
        "name": "mine",
        "schedule": { "type": "list", "delays": ["1s"] },
        "jitter": { "type": "some" },
        "limit": { "attempts": -1 },
        "success": ["200", "2xx"],
        "retries": 5,
        "probe": { "firstGap": 5, "longestGap": "1h" },
    });
    assert_eq!(
        refusals(&policy),
        [
            "retries: unknown field; there are: schedule, jitter, limit, timeouts, success, redirects, rejects, \
              malformedRejects, goneDisables, retryAfter, gate, endpointFails, probe, retention, name",
            "jitter.type: must be `none` or `full` or `addUpTo` or `addPercent` or `aroundPercent`, not `some`",
            "limit.attempts: must be a whole number from 0 to 4294967295",
            "success[1]: expected a status such as \"429\" or \"200-299\", not \"2xx\"",
            "probe.firstGap: expected a duration such as \"500ms\", \"5s\", \"15m\", \"2h\" or \"7d\", not a number",
        ]
    );
}

#[test]
fn retention_is_read_and_what_is_left_out_is_as_the_server_is_set() {
    let with = |retention: Value| json!({ "name": "mine", "schedule": { "type": "list", "delays": ["1s"] }, "retention": retention });
    let read = |retention| Policy::from_json(&with(retention)).expect("a policy").retention;
    let day = Keep::For(Duration::from_secs(86_400));
    let both = json!({ "delivered": { "for": "24h", "newest": 5 }, "dead": { "for": "untilRemoved" } });
    let expected = RetentionRule { delivered: day, newest: Some(5), dead: Keep::UntilRemoved };
    assert_eq!(read(both), expected);
    assert_eq!(read(json!({ "dead": { "for": "1d" } })), RetentionRule { dead: day, ..Default::default() });
    assert_eq!(read(Value::Null), RetentionRule::default());
    assert_eq!(
        refusals(&with(json!({ "delivered": { "for": 5, "newest": "all" }, "dead": { "newest": 3 } }))),
        [
            "retention.delivered.for: expected a duration such as \"24h\" or \"90d\", or \"untilRemoved\", not a number",
            "retention.delivered.newest: expected a whole number, not a string",
            "retention.dead.newest: unknown field; there are: for",
        ]
    );
    assert_eq!(
        refusals(&with(json!({ "delivered": { "newest": 0 } }))),
        ["retention.delivered.newest: must be between 1 and 100000; it is 0"]
    );
    assert_eq!(
        refusals(&with(json!({ "dead": { "for": "0s" } }))),
        ["retention.dead.for: must be between 1s and 3650d; it is 0s"]
    );
}

#[test]
fn what_can_be_read_is_still_checked() {
    let policy = json!({
        "name": "mine",
        "schedule": { "type": "list", "delays": ["1s"] },
        "limit": { "attempts": 0 },
    });
    assert_eq!(refusals(&policy), ["limit.attempts: must be between 1 and 10000; it is 0"]);
    assert_eq!(refusals(&json!([])), ["policy: expected a JSON object"]);
}

#[test]
fn a_misplaced_or_misspelt_field_is_refused_with_the_one_that_was_meant() {
    let with = |field: &str| {
        let mut policy = json!({ "name": "mine", "schedule": { "type": "list", "delays": ["1s"] } });
        policy[field] = json!(5);
        refusals(&policy)
    };
    assert_eq!(with("maxAttempts"), ["maxAttempts: unknown field; did you mean \"limit.attempts\"?"]);
    assert_eq!(with("attempts"), ["attempts: unknown field; did you mean \"limit.attempts\"?"]);
    assert_eq!(with("retry_after"), ["retry_after: unknown field; did you mean \"retryAfter\"?"]);
    let policy = json!({ "name": "mine", "schedule": { "type": "list", "delay": ["1s"] } });
    assert_eq!(refusals(&policy)[0], "schedule.delay: unknown field; did you mean \"delays\"?");
}

#[test]
fn what_is_too_much_is_said_to_be_too_much() {
    let with = |field: &str, value: Value| {
        let mut policy = json!({ "name": "mine", "schedule": { "type": "list", "delays": ["1s"] } });
        policy[field] = value;
        refusals(&policy)
    };
    for percent in [101, 500] {
        assert_eq!(
            with("jitter", json!({ "type": "addPercent", "percent": percent })),
            ["jitter.percent: must be a whole number from 0 to 100"]
        );
    }
    assert_eq!(
        with("schedule", json!({ "type": "list", "delays": ["99999999999999d"] })),
        ["schedule.delays[0]: is too long"]
    );
    assert_eq!(
        with("timeouts", json!({ "total": "0s" })),
        ["timeouts.total: must be between 1ms and 2m; it is 0s"]
    );
    assert_eq!(
        with("limit", json!({ "attempts": 5_000_000_000_u64 })),
        ["limit.attempts: must be a whole number from 0 to 4294967295"]
    );
}

#[test]
fn a_status_that_http_does_not_have_is_no_success_of_a_given_policy_but_a_stored_one_is_read() {
    let policy = json!({
        "name": "mine",
        "schedule": { "type": "list", "delays": ["1s"] },
        "success": ["200-299", "700"],
    });
    let refused = Policy::from_request_json(&policy).expect_err("nothing answers with 700");
    assert_eq!(
        refused[0].to_string(),
        "success: statuses lie between 100 and 599; 700 would never be a success"
    );
    assert!(Policy::from_json(&policy).is_ok());
}

#[test]
fn a_field_of_another_form_and_a_form_that_there_is_not_are_refused() {
    let with = |gate: Value| {
        refusals(&json!({ "name": "mine", "schedule": { "type": "list", "delays": ["1s"] }, "gate": gate }))
    };
    let over = json!({ "type": "delayOver", "threshold": "5s", "longest": "1m", "inARow": 5 });
    assert_eq!(with(over), ["gate.inARow: unknown field; there are: type, threshold, longest"]);
    assert_eq!(with(json!({ "longest": "1m" })), ["gate.type: this field is required"]);
    assert_eq!(
        with(json!({ "type": "apar" })),
        ["gate.type: must be `apart` or `hostFailures` or `delayOver`, not `apar`"]
    );
}

#[test]
fn what_is_null_is_as_in_standard_but_for_what_null_turns_off() {
    let policy = json!({
        "name": "mine",
        "schedule": { "type": "exponential", "base": "1s", "cap": "1h" },
        "jitter": null,
        "limit": null,
        "timeouts": { "connect": null },
        "success": null,
        "retryAfter": null,
        "probe": null,
    });
    let (policy, standard) = (Policy::from_json(&policy).expect("a policy"), builtin_policy("standard"));
    assert_eq!((policy.jitter, policy.limit), (standard.jitter, standard.limit));
    assert_eq!((policy.timeouts, &policy.success), (standard.timeouts, &standard.success));
    assert_eq!((policy.retry_after.statuses.is_empty(), policy.probe), (true, None));
}
