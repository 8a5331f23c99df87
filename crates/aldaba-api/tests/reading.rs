//! Reading bodies: all that is wrong is said at once.
#![cfg(feature = "server")]

use aldaba_api::read::{Fields, Parsed, Problems, UnknownFields, parse};
use aldaba_api::{
    EndpointPatch, EndpointUpdate, NewEndpoint, NewPolicy, PolicyGate, PolicySchedule, Set, WhenDisabled,
};

fn read<T: aldaba_api::read::ApiRequest>(body: &str, is_change: bool) -> Parsed<T> {
    parse(body.as_bytes(), is_change, UnknownFields::Refuse).unwrap()
}

fn problems(refused: Problems) -> Vec<(String, String)> {
    refused.into_list().into_iter().map(|problem| (problem.loc.join("."), problem.msg)).collect()
}

#[track_caller]
fn refused<T: aldaba_api::read::ApiRequest + std::fmt::Debug>(
    body: &str,
    is_change: bool,
) -> Vec<(String, String)> {
    problems(read::<T>(body, is_change).finish().unwrap_err())
}

#[test]
fn all_that_is_wrong_is_listed_in_the_order_of_the_fields() {
    let body = r#"{"http2": 1, "uid": "a b", "filters": {}, "whenDisabled": "drop", "version": 0, "channels": ["a", 7]}"#;
    let found = refused::<NewEndpoint>(body, false);
    let places: Vec<_> = found.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(
        places,
        [
            "body.filters",
            "body.url",
            "body.uid",
            "body.version",
            "body.whenDisabled",
            "body.channels.[1]",
            "body.http2"
        ]
    );
    assert_eq!(found[0].1, "unknown field; did you mean \"filter\"?");
    assert_eq!(found[1].1, "this field is required");
    assert_eq!(found[4].1, "must be `skip` or `hold`, not `drop`");
}

#[test]
fn unknown_fields_are_passed_over_where_that_is_asked_for() {
    let body = br#"{"url": "x", "colour": "red"}"#;
    let parsed: Parsed<NewEndpoint> = parse(body, false, UnknownFields::Ignore).unwrap();
    assert_eq!(parsed.finish().unwrap(), NewEndpoint::new("x"));
}

#[test]
fn a_change_may_send_back_what_is_read_only_and_a_new_object_may_not() {
    let body = r#"{"url": "x", "id": "ep_1", "blocked": false, "createdAt": "t"}"#;
    read::<EndpointUpdate>(body, true).finish().unwrap();
    let found = refused::<NewEndpoint>(body, false);
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn what_is_only_set_once_is_refused_in_a_change_unless_it_is_null() {
    let body = r#"{"url": "x", "secret": null, "headers": {"a": "b"}}"#;
    let found = refused::<EndpointUpdate>(body, true);
    assert_eq!(
        found,
        [(
            "body.headers".to_owned(),
            "are not changed here; change them with PUT or PATCH …/headers".to_owned()
        )]
    );
}

#[test]
fn an_older_name_does_where_it_says_the_same() {
    let older = read::<EndpointUpdate>(r#"{"url": "x", "filterTypes": ["b", "a"], "rateLimit": 7}"#, true);
    let older = older.finish().unwrap();
    assert_eq!(older.event_types, Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(older.throttle_rate, Some(7));
    let same = r#"{"url": "x", "eventTypes": ["a"], "filterTypes": ["a"]}"#;
    assert_eq!(read::<EndpointUpdate>(same, true).finish().unwrap().event_types, Some(vec!["a".to_owned()]));
    let other = r#"{"url": "x", "eventTypes": ["a"], "filterTypes": ["b"]}"#;
    let twice =
        [("body.eventTypes".to_owned(), "is given twice: `filterTypes` is another name for it".to_owned())];
    assert_eq!(refused::<EndpointUpdate>(other, true), twice);
    assert_eq!(refused::<NewEndpoint>(same, false), twice);
}

#[test]
fn a_patch_keeps_clears_and_sets() {
    let current = EndpointUpdate {
        uid: Some("u".into()),
        description: Some("d".into()),
        policy: Some("quick".into()),
        throttle_rate: Some(5),
        when_disabled: Some(WhenDisabled::Hold),
        ..EndpointUpdate::new("x")
    };
    let patch =
        r#"{"uid": null, "policy": null, "throttleRate": 9, "whenDisabled": null, "metadata": {"a": "b"}}"#;
    let patch = read::<EndpointPatch>(patch, true).finish().unwrap();
    assert_eq!((&patch.uid, &patch.description), (&Set::Clear, &None));
    let changed = patch.over(current);
    assert_eq!((changed.uid, changed.description.as_deref()), (None, Some("d")));
    assert_eq!((changed.policy.as_deref(), changed.throttle_rate), (Some("standard"), Some(9)));
    assert_eq!((changed.when_disabled, changed.metadata.len()), (Some(WhenDisabled::Skip), 1));
    assert_eq!(
        refused::<EndpointPatch>(r#"{"url": null, "version": null, "http2": null}"#, true),
        [
            ("body.url".to_owned(), "expected a string, not null".to_owned()),
            ("body.version".to_owned(), "cannot be null; leave it out".to_owned()),
            ("body.http2".to_owned(), "expected true or false, not null".to_owned()),
        ]
    );
}

#[test]
fn an_object_is_kept_byte_by_byte_and_given_once() {
    let parsed = read::<NewEndpoint>(r#"{"url": "x", "filter": {"b": 1.0, "a": 1e400}}"#, false);
    assert_eq!(parsed.finish().unwrap().filter.unwrap().text(), r#"{"b": 1.0, "a": 1e400}"#);
    let twice = r#"{"url": "x", "filter": {}, "filter": {"a": 1}}"#;
    assert_eq!(
        refused::<NewEndpoint>(twice, false),
        [("body.filter".to_owned(), "is given twice".to_owned())]
    );
}

#[test]
fn of_two_names_that_differ_the_one_that_changes_something_counts() {
    let change = |body: &str| read::<EndpointPatch>(body, true);
    let current = EndpointUpdate { throttle_rate: Some(5), ..EndpointUpdate::new("x") };
    for (body, rate) in [
        (r#"{"throttleRate": 5, "rateLimit": 9}"#, 9),
        (r#"{"throttleRate": 9, "rateLimit": 5}"#, 9),
        (r#"{"throttleRate": null, "rateLimit": 9}"#, 9),
        (r#"{"throttleRate": 9, "rateLimit": null}"#, 9),
    ] {
        assert_eq!(change(body).against(&current).finish().unwrap().throttle_rate, Set::To(rate), "{body}");
    }
    let neither = r#"{"throttleRate": 8, "rateLimit": 9, "uid": "a b"}"#;
    let found = problems(change(neither).against(&current).finish().unwrap_err());
    let places: Vec<_> = found.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(places, ["body.uid", "body.throttleRate"]);
    assert_eq!(found[1].1, "is not what `rateLimit` says, another name for it; give one of the two");
    // Without anything to compare with, neither counts.
    let new = r#"{"url": "x", "throttleRate": 5, "rateLimit": 9}"#;
    assert_eq!(refused::<NewEndpoint>(new, false).len(), 1);
    let same = read::<NewEndpoint>(r#"{"url": "x", "throttleRate": 5, "rateLimit": 5}"#, false);
    assert_eq!(same.finish().unwrap().throttle_rate, Some(5));
}

#[test]
fn a_brief_body_lists_one_problem_and_looks_for_no_names() {
    let body = br#"{"url": 1, "throttleRat": 5, "answer": {}}"#;
    let fields = Fields::parse(body, UnknownFields::Refuse).unwrap().briefly();
    let found = problems(Parsed::<NewEndpoint>::of(fields, false).finish().unwrap_err());
    let expected = [("body.answer", "unknown field"), ("body", "and 2 more problems that are not listed")];
    assert_eq!(found, expected.map(|(place, why)| (place.to_owned(), why.to_owned())));
}

#[test]
fn a_required_object_may_be_empty_and_is_sent() {
    let none = aldaba_api::SetHeaders::default();
    let text = serde_json::to_string(&none).unwrap();
    assert_eq!(text, r#"{"headers":{}}"#);
    assert_eq!(read::<aldaba_api::SetHeaders>(&text, false).finish().unwrap(), none);
}

#[test]
fn an_object_with_several_forms_has_the_fields_of_its_own() {
    let body = r#"{"name": "a", "schedule": {"type": "exponential", "base": "1s", "cap": "1h"},
                   "gate": {"type": "hostFailures", "inARow": 3, "first": "1s", "longest": "1m"}, "probe": null}"#;
    let policy = read::<NewPolicy>(body, false).finish().unwrap();
    let exponential = PolicySchedule::Exponential { base: "1s".into(), factor: None, cap: "1h".into() };
    assert_eq!((policy.schedule, policy.probe), (exponential, Set::Clear));
    assert_eq!(policy.retry_after, Set::Keep);
    let failures = PolicyGate::HostFailures { in_a_row: 3, first: "1s".into(), longest: "1m".into() };
    assert_eq!(policy.gate, Some(failures));
    let wrong = r#"{"name": "a", "schedule": {"type": "list", "delays": [5, "soon"], "base": "1s", "type": "list"},
                    "gate": {"type": "Apart", "longest": 5}, "attempts": 5}"#;
    let found = refused::<NewPolicy>(wrong, false);
    let places: Vec<_> = found.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(
        places,
        [
            "body.attempts",
            "body.schedule.type",
            "body.schedule.base",
            "body.schedule.delays.[0]",
            "body.schedule.delays.[1]",
            "body.gate.type"
        ]
    );
    assert_eq!(found[0].1, "unknown field; did you mean \"limit.attempts\"?");
    assert_eq!(found[1].1, "is given twice");
    assert_eq!(found[2].1, "unknown field; there are: type, delays");
    assert_eq!(found[5].1, "must be `apart` or `hostFailures` or `delayOver`, not `Apart`");
}
