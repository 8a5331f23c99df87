//! What filters let through, what they refuse to be, and what they say of it.

use aldaba_delivery::filter::{
    FilterInput, MAX_CONDITIONS, MAX_FILTER_BYTES, MAX_FILTER_DEPTH, MAX_LIST_ITEMS, MAX_TEXT_BYTES,
};
use aldaba_delivery::{Filter, FilterError};

fn filter(text: &str) -> Filter {
    Filter::parse(text).unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
}

fn errors(text: &str) -> Vec<FilterError> {
    Filter::parse(text).err().unwrap_or_else(|| panic!("{text} is taken"))
}

/// A message with this payload and little else.
fn of(payload: &str) -> FilterInput<'_> {
    FilterInput {
        event_type: "invoice.paid",
        channels: &[],
        tags: &[],
        headers: &[],
        payload: payload.as_bytes(),
    }
}

fn passes(text: &str, payload: &str) -> bool {
    filter(text).holds(&of(payload))
}

#[track_caller]
fn table(cases: &[(&str, &str, bool)]) {
    for (text, payload, expected) in cases {
        assert_eq!(passes(text, payload), *expected, "{text} of {payload}");
        let unmet = filter(text).unmet(&of(payload));
        assert_eq!(unmet.is_none(), *expected, "{unmet:?}");
    }
}

#[test]
fn equal_means_the_same_kind_and_the_same_value() {
    table(&[
        (r#"{"payload": "$.a", "eq": 5}"#, r#"{"a": 5}"#, true),
        (r#"{"payload": "$.a", "eq": 5}"#, r#"{"a": 5.0}"#, true),
        (r#"{"payload": "$.a", "eq": 5}"#, r#"{"a": "5"}"#, false),
        (r#"{"payload": "$.a", "eq": "5"}"#, r#"{"a": "\u0035"}"#, true),
        (r#"{"payload": "$.a", "eq": true}"#, r#"{"a": true}"#, true),
        (r#"{"payload": "$.a", "eq": true}"#, r#"{"a": 1}"#, false),
        (r#"{"payload": "$.a", "eq": null}"#, r#"{"a": null}"#, true),
        (r#"{"payload": "$.a", "eq": null}"#, r#"{"a": 0}"#, false),
        (r#"{"payload": "$.a", "eq": "x"}"#, r#"{"a": ["x"]}"#, false),
        (r#"{"payload": "$.a", "eq": "é"}"#, r#"{"a": "\u00e9"}"#, true),
        (r#"{"payload": "$.a", "in": ["x", 7, null]}"#, r#"{"a": 7e0}"#, true),
        (r#"{"payload": "$.a", "in": ["x", 7, null]}"#, r#"{"a": "7"}"#, false),
    ]);
}

#[test]
fn another_value_is_a_value() {
    table(&[
        (r#"{"payload": "$.a", "ne": 5}"#, r#"{"a": 6}"#, true),
        (r#"{"payload": "$.a", "ne": 5}"#, r#"{"a": 5}"#, false),
        (r#"{"payload": "$.a", "ne": 5}"#, r#"{"a": "5"}"#, true),
        (r#"{"payload": "$.a", "ne": 5}"#, r#"{"a": null}"#, true),
        (r#"{"payload": "$.a", "ne": 5}"#, r#"{"a": [5]}"#, true),
        (r#"{"payload": "$.a", "ne": 5}"#, "{}", false),
        (r#"{"payload": "$.a", "notIn": [5, 6]}"#, r#"{"a": 7}"#, true),
        (r#"{"payload": "$.a", "notIn": [5, 6]}"#, r#"{"a": 6}"#, false),
        (r#"{"payload": "$.a", "notIn": [5, 6]}"#, "{}", false),
        (r#"{"not": {"payload": "$.a", "eq": 5}}"#, "{}", true),
    ]);
}

#[test]
fn a_missing_value_matches_only_absence_conditions() {
    for operator in [
        r#""eq": null"#,
        r#""ne": 1"#,
        r#""gt": 0"#,
        r#""lte": "z""#,
        r#""in": [null]"#,
        r#""notIn": [1]"#,
        r#""startsWith": """#,
        r#""contains": """#,
        r#""exists": true"#,
    ] {
        let text = format!("{{\"payload\": \"$.a.b\", {operator}}}");
        for payload in ["{}", r#"{"a": null}"#, r#"{"a": [{"b": 1}]}"#, r#"{"a": "b"}"#] {
            assert!(!passes(&text, payload), "{text} of {payload}");
        }
    }
    table(&[
        (r#"{"payload": "$.a", "exists": false}"#, "{}", true),
        (r#"{"payload": "$.a", "exists": false}"#, r#"{"a": null}"#, false),
        (r#"{"payload": "$.a", "exists": true}"#, r#"{"a": null}"#, true),
        (r#"{"payload": "$.a[2]", "exists": true}"#, r#"{"a": [1, 2]}"#, false),
        (r#"{"payload": "$.a[1]", "exists": true}"#, r#"{"a": [1, 2]}"#, true),
        (r#"{"payload": "$.a[*]", "exists": false}"#, r#"{"a": []}"#, true),
    ]);
}

#[test]
fn numbers_are_compared_to_the_last_digit() {
    table(&[
        (r#"{"payload": "$.a", "gte": 100}"#, r#"{"a": 100}"#, true),
        (r#"{"payload": "$.a", "gte": 100}"#, r#"{"a": 99.99999999999999999999}"#, false),
        (r#"{"payload": "$.a", "gt": 9007199254740992}"#, r#"{"a": 9007199254740993}"#, true),
        (r#"{"payload": "$.a", "eq": 9007199254740992}"#, r#"{"a": 9007199254740993}"#, false),
        (r#"{"payload": "$.a", "lt": 18446744073709551617}"#, r#"{"a": 18446744073709551616}"#, true),
        (r#"{"payload": "$.a", "eq": 0.1}"#, r#"{"a": 0.1000000000000000055511151231257827}"#, false),
        (r#"{"payload": "$.a", "gt": 1e3, "lt": 2e3}"#, r#"{"a": 1500}"#, true),
        (r#"{"payload": "$.a", "gt": 1e3, "lt": 2e3}"#, r#"{"a": 2000}"#, false),
        (r#"{"payload": "$.a", "gt": 1}"#, r#"{"a": 1e999999999999}"#, true),
        (r#"{"payload": "$.a", "gt": 1}"#, r#"{"a": "2"}"#, false),
        (r#"{"payload": "$.a", "gt": 1}"#, r#"{"a": true}"#, false),
        (r#"{"payload": "$.a", "lt": 1}"#, r#"{"a": null}"#, false),
    ]);
}

#[test]
fn texts_have_an_order_a_start_an_end_and_parts() {
    table(&[
        (r#"{"payload": "$.at", "gte": "2026-01-01"}"#, r#"{"at": "2026-01-01T00:00:00Z"}"#, true),
        (r#"{"payload": "$.at", "lt": "2026-01-01"}"#, r#"{"at": "2025-12-31"}"#, true),
        (r#"{"payload": "$.at", "gt": "a"}"#, r#"{"at": 5}"#, false),
        (r#"{"payload": "$.a", "startsWith": "in"}"#, r#"{"a": "invoice"}"#, true),
        (r#"{"payload": "$.a", "startsWith": "in"}"#, r#"{"a": "Invoice"}"#, false),
        (r#"{"payload": "$.a", "startsWith": "in"}"#, r#"{"a": ["invoice"]}"#, false),
        (r#"{"payload": "$.a", "endsWith": "é"}"#, r#"{"a": "caf\u00e9"}"#, true),
        (r#"{"payload": "$.a", "endsWith": ".es"}"#, r#"{"a": "es"}"#, false),
        (r#"{"payload": "$.a", "contains": "voi"}"#, r#"{"a": "invoice"}"#, true),
        (r#"{"payload": "$.a", "contains": "voi"}"#, r#"{"a": ["voi"]}"#, true),
        (r#"{"payload": "$.a", "contains": "voi"}"#, r#"{"a": ["invoice"]}"#, false),
        (r#"{"payload": "$.a", "contains": 3}"#, r#"{"a": [1, 3.0]}"#, true),
        (r#"{"payload": "$.a", "contains": 3}"#, r#"{"a": 3}"#, false),
        (r#"{"payload": "$.a", "startsWith": "a", "endsWith": "z"}"#, r#"{"a": "a to z"}"#, true),
        (r#"{"payload": "$.a", "startsWith": "a", "endsWith": "z"}"#, r#"{"a": "a to y"}"#, false),
    ]);
}

#[test]
fn a_star_asks_whether_one_item_is_so_in_every_respect() {
    let between = r#"{"payload": "$.lines[*].price", "gt": 10, "lt": 20}"#;
    table(&[
        (between, r#"{"lines": [{"price": 5}, {"price": 15}]}"#, true),
        (between, r#"{"lines": [{"price": 5}, {"price": 25}]}"#, false),
        (between, r#"{"lines": {"price": 15}}"#, false),
        (between, r#"{"lines": []}"#, false),
        (r#"{"payload": "$.a[*][*]", "eq": 3}"#, r#"{"a": [[1], 3, [2, 3]]}"#, true),
        (r#"{"payload": "$.a[*][*]", "eq": 3}"#, r#"{"a": [1, 3]}"#, false),
        (r#"{"payload": "$.a[1].b[0]", "eq": 3}"#, r#"{"a": [{}, {"b": [3]}]}"#, true),
    ]);
    let late = |before: usize| format!("{{\"a\": [{}1]}}", "0,".repeat(before));
    assert!(passes(r#"{"payload": "$.a[*]", "eq": 1}"#, &late(999)));
    assert!(
        !passes(r#"{"payload": "$.a[*]", "eq": 1}"#, &late(1000)),
        "only the first thousand are looked at"
    );
    assert!(
        passes(r#"{"payload": "$.a[5000]", "eq": 1}"#, &late(5000)),
        "one that is named is not one of many"
    );
}

#[test]
fn of_members_with_the_same_name_the_last_counts() {
    table(&[
        (r#"{"payload": "$.a", "eq": 2}"#, r#"{"a": 1, "a": 2}"#, true),
        (r#"{"payload": "$.a", "eq": 1}"#, r#"{"a": 1, "a": 2}"#, false),
        (r#"{"payload": "$.a.b", "eq": 1}"#, r#"{"a": {"b": 1}, "a": {}}"#, false),
        (r#"{"payload": "$.a.b", "eq": 1}"#, r#"{"a": {"b": 1}, "a": 7}"#, false),
        (r#"{"payload": "$.a.b", "exists": false}"#, r#"{"a": {"b": 1}, "\u0061": {}}"#, true),
        (r#"{"payload": "$.a[*].b", "eq": 1}"#, r#"{"a": [{"b": 1}, {"b": 1, "b": 2}]}"#, true),
        (r#"{"payload": "$.a[*].b", "eq": 1}"#, r#"{"a": [{"b": 3}, {"b": 1, "b": 2}]}"#, false),
    ]);
}

#[test]
fn names_are_found_however_they_are_written() {
    table(&[
        (r#"{"payload": "$[\"key with.dot\"]", "eq": 1}"#, r#"{"key with.dot": 1}"#, true),
        (r#"{"payload": "$[\"a\\\"b\"]", "eq": 1}"#, r#"{"a\"b": 1}"#, true),
        (r#"{"payload": "$.año", "eq": 1}"#, r#"{"a\u00f1o": 1}"#, true),
        (r#"{"payload": "$[\"\"]", "eq": 1}"#, r#"{"": 1}"#, true),
        (r#"{"payload": "$.a", "eq": 1}"#, r#"{"\ud83d": 0, "a": 1, "b": "\ud83d"}"#, true),
    ]);
}

#[test]
fn conditions_are_combined() {
    let both = r#"{"all": [{"payload": "$.a", "eq": 1}, {"payload": "$.b", "eq": 1}]}"#;
    let one = r#"{"any": [{"payload": "$.a", "eq": 1}, {"payload": "$.b", "eq": 1}]}"#;
    let mixed = r#"{"all": [{"payload": "$.a.b", "exists": true},
        {"not": {"any": [{"payload": "$.a.b", "eq": 1}, {"payload": "$.a", "contains": "x"}]}}]}"#;
    table(&[
        (both, r#"{"a": 1, "b": 1}"#, true),
        (both, r#"{"a": 1, "b": 2}"#, false),
        (one, r#"{"a": 2, "b": 1}"#, true),
        (one, r#"{"a": 2}"#, false),
        (mixed, r#"{"a": {"b": 2}}"#, true),
        (mixed, r#"{"a": {"b": 1}}"#, false),
        (mixed, r#"{"a": "x"}"#, false),
    ]);
}

#[test]
fn type_channels_tags_and_headers_are_looked_at_too() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let (channels, tags) = (names(&["a", "b"]), names(&["eu", "vip"]));
    let headers = [("x-empty".to_owned(), String::new()), ("x-region".to_owned(), "eu-south".to_owned())];
    let facts = FilterInput { channels: &channels, tags: &tags, headers: &headers, ..of("{}") };
    for (text, with, without) in [
        (r#"{"eventType": "invoice.paid"}"#, true, true),
        (r#"{"eventType": "invoice"}"#, false, false),
        (r#"{"eventType": {"startsWith": "invoice."}}"#, true, true),
        (r#"{"eventType": {"notIn": ["invoice.paid"]}}"#, false, false),
        (r#"{"channel": "b"}"#, true, false),
        (r#"{"channel": {"exists": false}}"#, false, true),
        (r#"{"tag": "eu"}"#, true, false),
        (r#"{"not": {"tag": "eu"}}"#, false, true),
        (r#"{"tag": {"in": ["us", "eu"]}}"#, true, false),
        (r#"{"tag": {"startsWith": "v", "endsWith": "u"}}"#, false, false),
        (r#"{"tag": {"exists": true}}"#, true, false),
        (r#"{"header": "X-Region", "startsWith": "eu-"}"#, true, false),
        (r#"{"header": "x-region", "in": ["eu", "us"]}"#, false, false),
        (r#"{"header": "x-region", "ne": "us"}"#, true, false),
        (r#"{"header": "x-empty", "exists": true}"#, true, false),
        (r#"{"header": "x-empty", "eq": ""}"#, true, false),
        (r#"{"header": "x-other", "exists": false}"#, true, true),
    ] {
        assert_eq!(filter(text).holds(&facts), with, "{text}");
        assert_eq!(filter(text).holds(&of("{}")), without, "{text}");
    }
}

#[test]
fn a_payload_that_is_no_json_has_nothing_in_it() {
    for payload in ["", "a: 1", "{\"a\": 1", "{\"a\": 1,}", "\u{feff}{}", "[1", "nul"] {
        assert!(!passes(r#"{"payload": "$.a", "exists": true}"#, payload), "{payload}");
        assert!(passes(r#"{"payload": "$.a", "exists": false}"#, payload), "{payload}");
    }
    let facts = FilterInput { payload: b"{\"a\": \"\xff\"}", ..of("") };
    assert!(!filter(r#"{"payload": "$.a", "exists": true}"#).holds(&facts));
}

#[test]
fn an_invalid_filter_is_rejected_with_the_location() {
    for (text, place, why) in [
        ("", "", "not valid JSON"),
        ("null", "", "expected an object"),
        ("[]", "", "expected an object"),
        ("{}", "", "expected one of all, any, not"),
        (r#"{"eq": 5}"#, "", "expected one of"),
        (r#"{"all": []}"#, "all", "1 to 100 items"),
        (r#"{"all": {}}"#, "all", "a list of filters"),
        (r#"{"all": [1]}"#, "all.[0]", "expected an object"),
        (r#"{"not": []}"#, "not", "expected an object"),
        (r#"{"not": null}"#, "not", "expected an object"),
        (r#"{"all": [], "any": []}"#, "any", "is beside `all`"),
        (r#"{"all": [{"tag": "a", "channel": "b"}]}"#, "all.[0].channel", "put both in `all`"),
        (r#"{"tag": "a", "tag": "b"}"#, "tag", "is given twice"),
        (r#"{"payload": "$.a", "eq": 1, "eq": 2}"#, "eq", "is given twice"),
        (r#"{"tag": "a", "eq": "b"}"#, "eq", "needs a source"),
        (r#"{"tag": "a", "what": "b"}"#, "what", "is unknown here"),
        (r#"{"payload": "$.a"}"#, "", "has no operator; expected one or more of eq, ne"),
        (r#"{"payload": "a", "eq": 1}"#, "payload", "begins with `$`"),
        (r#"{"payload": 1, "eq": 1}"#, "payload", "expected a path"),
        (r#"{"payload": "$.a", "is": 1}"#, "is", "is unknown; expected one of eq"),
        (r#"{"payload": "$.a", "regex": "a+"}"#, "regex", "is unknown"),
        (r#"{"payload": "$.a", "eq": {}}"#, "eq", "expected a text, a number"),
        (r#"{"payload": "$.a", "eq": [1]}"#, "eq", "expected a text, a number"),
        (r#"{"payload": "$.a", "gt": null}"#, "gt", "a number or a text"),
        (r#"{"payload": "$.a", "gt": true}"#, "gt", "a number or a text"),
        (r#"{"payload": "$.a", "in": 1}"#, "in", "a list of values"),
        (r#"{"payload": "$.a", "in": []}"#, "in", "1 to 100 items"),
        (r#"{"payload": "$.a", "in": [1, [2]]}"#, "in.[1]", "expected a text, a number"),
        (r#"{"payload": "$.a", "exists": 1}"#, "exists", "true or false"),
        (r#"{"payload": "$.a", "exists": false, "eq": 1}"#, "exists", "remove them"),
        (r#"{"payload": "$.a", "startsWith": 1}"#, "startsWith", "expected a text"),
        (r#"{"payload": "$.a", "eq": "\ud83d"}"#, "eq", "expected a text"),
        (r#"{"payload": "$.a", "eq": 1e10000}"#, "eq", "an exponent of 9999"),
        (r#"{"payload": "$.a", "eq": 1e-99999999999999999999}"#, "eq", "an exponent of 9999"),
        (r#"{"payload": "$.a[*]", "ne": 1}"#, "ne", "put `not` around `eq`"),
        (r#"{"payload": "$.a[*]", "notIn": [1]}"#, "notIn", "put `not` around `in`"),
        (r#"{"tag": {"ne": "a"}}"#, "tag.ne", "put `not` around `eq`"),
        (r#"{"tag": {"eq": 1}}"#, "tag.eq", "expected a text"),
        (r#"{"tag": 1}"#, "tag", "a text, or an object with an operator"),
        (r#"{"tag": {}}"#, "tag", "has no operator"),
        (r#"{"eventType": {"exists": true}}"#, "eventType.exists", "not for an event type"),
        (r#"{"header": "x-a"}"#, "", "has no operator"),
        (r#"{"header": "x a", "eq": "b"}"#, "header", "not a header name"),
        (r#"{"header": "", "eq": "b"}"#, "header", "not a header name"),
        (r#"{"header": "x-a", "gt": "b"}"#, "gt", "not for a header"),
        (r#"{"header": "x-a", "in": ["b", 2]}"#, "in.[1]", "expected a text"),
    ] {
        let errors = errors(text);
        let found = errors.iter().any(|error| error.location.join(".") == place && error.why.contains(why));
        assert!(found, "{text}: {errors:?}");
    }
}

#[test]
fn all_that_is_wrong_is_named_up_to_a_limit() {
    let wrong = errors(r#"{"all": [{"payload": "a", "eq": {}}, {"tag": 1}, {"any": []}]}"#);
    let places: Vec<_> = wrong.iter().map(|error| error.location.join(".")).collect();
    assert_eq!(places, ["all.[0].payload", "all.[0].eq", "all.[1].tag", "all.[2].any"]);
    let many = format!("{{\"all\": [{}]}}", vec!["1"; MAX_LIST_ITEMS].join(","));
    assert_eq!(errors(&many).len(), 20);
}

#[test]
fn every_limit_is_exact() {
    let nested = |levels: usize| {
        let inner = r#"{"tag": "a"}"#.to_owned();
        (1..levels).fold(inner, |inner, _| format!("{{\"not\": {inner}}}"))
    };
    filter(&nested(MAX_FILTER_DEPTH));
    assert!(errors(&nested(MAX_FILTER_DEPTH + 1))[0].why.contains("nested"));
    assert!(errors(&nested(1000))[0].why.contains("nested"), "and no stack ends before");
    let all = |count: usize| format!("{{\"all\": [{}]}}", vec![r#"{"tag": "a"}"#; count].join(","));
    filter(&all(MAX_CONDITIONS));
    assert!(errors(&all(MAX_CONDITIONS + 1))[0].why.contains("one condition too many"));
    let listed = |count: usize| format!("{{\"tag\": {{\"in\": [{}]}}}}", vec!["\"a\""; count].join(","));
    filter(&listed(MAX_LIST_ITEMS));
    assert!(errors(&listed(MAX_LIST_ITEMS + 1))[0].why.contains("1 to 100 items"));
    let texts = |length: usize| format!("{{\"payload\": \"$.a\", \"eq\": \"{}\"}}", "x".repeat(length));
    filter(&texts(MAX_TEXT_BYTES));
    assert!(errors(&texts(MAX_TEXT_BYTES + 1))[0].why.contains("1024 bytes long at most"));
    let digits = |length: usize| format!("{{\"payload\": \"$.a\", \"eq\": {}}}", "1".repeat(length));
    filter(&digits(64));
    assert!(errors(&digits(65))[0].why.contains("64 characters"));
    let long = |length: usize| {
        format!("{{\"tag\":{{\"in\":[\"{}\"{}]}}}}", "x".repeat(1000), {
            vec![format!(",\"{}\"", "x".repeat(1000)); 15].concat() + &format!(",\"{}\"", "x".repeat(length))
        })
    };
    let rest = MAX_FILTER_BYTES - long(0).len();
    filter(&long(rest));
    assert!(errors(&long(rest + 1))[0].why.contains("16384 bytes of JSON"));
}

#[test]
fn a_filter_is_kept_as_it_was_given_without_spaces() {
    let given = "{ \"all\" : [ {\"tag\": \"e u\"},\n {\"payload\": \"$.a\", \"gte\": 1.50} ] }";
    let filter = filter(given);
    assert_eq!(filter.as_str(), r#"{"all":[{"tag":"e u"},{"payload":"$.a","gte":1.50}]}"#);
    assert_eq!(Filter::parse(filter.as_str()), Ok(filter));
}

#[test]
fn failed_conditions_are_explained() {
    let tags = ["eu".to_owned()];
    for (text, payload, place, why) in [
        (
            r#"{"all": [{"tag": "eu"}, {"payload": "$.amount", "gte": 100}]}"#,
            r#"{"amount": 5}"#,
            "all[1].payload",
            "`$.amount` is 5, and the filter asks for at least 100",
        ),
        (
            r#"{"payload": "$.amount", "gt": 1, "lt": 10}"#,
            "{}",
            "payload",
            "`$.amount` is not there, and the filter asks for more than 1 and less than 10",
        ),
        (
            r#"{"not": {"any": [{"tag": "us"}, {"tag": {"in": ["eu", "uk"]}}]}}"#,
            "{}",
            "not.any[1].tag",
            "the message has the tags eu, and the filter excludes one of \"eu\", \"uk\"",
        ),
        (
            r#"{"any": [{"header": "x-region", "eq": "eu"}, {"channel": "a"}]}"#,
            "{}",
            "any",
            "none of 2 alternatives holds: the message has no header x-region, and the filter asks for \"eu\"; \
             the message has no channel, and the filter asks for \"a\"",
        ),
        (
            r#"{"payload": "$.lines[*].sku", "in": ["a", "b"]}"#,
            r#"{"lines": [{"sku": "x"}, {"sku": "y"}]}"#,
            "payload",
            "`$.lines[*].sku` has 2 values, the first is \"x\", and the filter asks for one of \"a\", \"b\"",
        ),
        (
            r#"{"payload": "$.a", "exists": false}"#,
            r#"{"a": {"b": 1}}"#,
            "payload",
            "`$.a` is an object, and the filter asks for nothing there",
        ),
        (
            r#"{"eventType": {"startsWith": "user."}}"#,
            "{}",
            "eventType",
            "the event type is invoice.paid, and the filter asks for a text that starts with \"user.\"",
        ),
    ] {
        let unmet = filter(text).unmet(&FilterInput { tags: &tags, ..of(payload) }).unwrap();
        assert_eq!((unmet.location.as_str(), unmet.text.as_str()), (place, why));
    }
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(10_000));
    let unmet = filter(r#"{"payload": "$.a", "eq": "b"}"#).unmet(&of(&long)).unwrap();
    assert!(unmet.text.len() < 200, "{}", unmet.text);
}
