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
            "name: expected a string",
            "schedule.cap: expected a span such as \"500ms\", \"5s\", \"15m\", \"2h\" or \"7d\"",
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
            "retries: is not known here; expected one of name, schedule, jitter, limit, timeouts, success, \
             redirects, rejects, malformedRejects, goneDisables, retryAfter, gate, endpointFails, probe, retention",
            "jitter.type: expected one of none, addUpTo, addPercent, aroundPercent, full",
            "limit.attempts: expected a whole number, neither negative nor too large",
            "success[1]: expected a status such as \"429\" or \"200-299\"",
            "probe.firstGap: expected a span such as \"500ms\", \"5s\", \"15m\", \"2h\" or \"7d\"",
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
            "retention.delivered.for: expected a span such as \"24h\" or \"90d\", or \"untilRemoved\"",
            "retention.delivered.newest: expected a whole number, neither negative nor too large",
            "retention.dead.newest: is not known here; expected one of for",
        ]
    );
    assert_eq!(
        refusals(&with(json!({ "delivered": { "newest": 0 } }))),
        ["retention.delivered.newest: must be between 1 and 100000; it is 0"]
    );
    assert_eq!(
        refusals(&with(json!({ "dead": { "for": "0s" } }))),
        ["retention.dead.for: must be between 1s and 3650 days; it is 0ns"]
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
    assert_eq!(refusals(&json!([])), ["policy: expected an object"]);
}
