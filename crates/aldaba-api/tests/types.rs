//! The types that clients send and get.

use aldaba_api::{
    Application, ApplicationPatch, EndpointPatch, NewEndpoint, NewPolicy, Ordering, PolicyLimit,
    PolicySchedule, Set,
};
use std::collections::BTreeMap;

#[test]
fn what_is_kept_is_left_out_and_what_is_cleared_is_null() {
    let text = |change: &ApplicationPatch| serde_json::to_string(change).unwrap();
    assert_eq!(text(&ApplicationPatch::default()), "{}");
    let change =
        ApplicationPatch { uid: Set::Clear, throttle_rate: 3_u32.into(), ..ApplicationPatch::default() };
    assert_eq!(text(&change), r#"{"uid":null,"throttleRate":3}"#);
    assert_eq!(serde_json::from_str::<ApplicationPatch>(&text(&change)).unwrap(), change);
}

#[test]
fn a_new_object_has_what_was_set_and_nothing_else() {
    let new = NewEndpoint {
        event_types: Some(vec!["a".into()]),
        headers: BTreeMap::from([("x-a".into(), "1".into())]),
        ordering: Some(Ordering::Fifo),
        ..NewEndpoint::new("https://example.com/")
    };
    let text = serde_json::to_string(&new).unwrap();
    assert_eq!(
        text,
        r#"{"url":"https://example.com/","eventTypes":["a"],"ordering":"fifo","headers":{"x-a":"1"}}"#
    );
    assert_eq!(serde_json::from_str::<NewEndpoint>(&text).unwrap(), new);
    assert_eq!(serde_json::to_string(&EndpointPatch::default()).unwrap(), "{}");
}

#[test]
fn an_answer_leaves_out_what_older_clients_do_not_expect() {
    let text = r#"{"id":"app_1","name":"a","throttleRate":null,"metadata":{},"createdAt":"t","updatedAt":"t","more":1}"#;
    let application: Application = serde_json::from_str(text).unwrap();
    assert_eq!((application.uid.as_deref(), application.rate_limit), (None, None));
    assert_eq!(serde_json::to_string(&application).unwrap(), text.replace(r#","more":1"#, ""));
}

#[test]
fn a_form_that_is_not_known_is_kept_as_it_is() {
    let text = r#"{"delays":["1s"],"type":"fibonacci"}"#;
    let schedule: PolicySchedule = serde_json::from_str(text).unwrap();
    assert!(matches!(schedule, PolicySchedule::Other(_)), "{schedule:?}");
    assert_eq!(serde_json::to_string(&schedule).unwrap(), text);
    let known = r#"{"type":"exponential","base":"1s","cap":"1h"}"#;
    let schedule: PolicySchedule = serde_json::from_str(known).unwrap();
    let expected = PolicySchedule::Exponential { base: "1s".into(), factor: None, cap: "1h".into() };
    assert_eq!(schedule, expected);
    assert_eq!(serde_json::to_string(&schedule).unwrap(), known);
}

#[test]
fn a_new_policy_states_what_is_null_in_the_parts_that_it_gives() {
    let limit = Some(PolicyLimit { attempts: Some(2), stop_after: None });
    let policy = NewPolicy { limit, probe: Set::Clear, ..NewPolicy::with_delays("a", &["1s"]) };
    assert_eq!(
        serde_json::to_string(&policy).unwrap(),
        r#"{"schedule":{"type":"list","delays":["1s"]},"limit":{"attempts":2,"stopAfter":null},"probe":null,"name":"a"}"#
    );
    assert_eq!(serde_json::from_str::<NewPolicy>(&serde_json::to_string(&policy).unwrap()).unwrap(), policy);
}
