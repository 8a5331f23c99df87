//! Filters against a model that is slow and plain: JSON as a tree, and the table of the documentation.

use aldaba_delivery::Filter;
use aldaba_delivery::filter::{CombinedMatchCost, FilterInput, FilterSet, MAX_MATCH_COST};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use std::sync::Arc;

/// Few names and few values, so that conditions meet what they look for.
fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", "a.b", ""])
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3..4_i64).prop_map(Value::from),
        prop::sample::select(vec![-0.5, 0.0, 0.25, 1.0, 1e20]).prop_map(Value::from),
        prop::sample::select(vec![u64::MAX, u64::MAX - 1, 1 << 53, (1 << 53) + 1]).prop_map(Value::from),
        text().prop_map(Value::from),
    ]
}

fn text() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "a", "b", "ab", "aba", "é\"\n", "1"])
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![vec(inner.clone(), 0..4).prop_map(Value::Array), object(inner.boxed())]
    })
}

fn object(inner: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
    let members = vec((name(), inner), 0..4);
    members.prop_map(|members| {
        Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    })
}

#[derive(Clone, Debug)]
enum Step {
    Key(&'static str),
    Index(usize),
    Every,
}

fn path() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => name().prop_map(Step::Key),
        1 => (0..3_usize).prop_map(Step::Index),
        1 => Just(Step::Every),
    ];
    vec(step, 1..4)
}

fn written(path: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Key(name @ ("a" | "b")) => format!(".{name}"),
        Step::Key(name) => format!("[{}]", json!(name)),
        Step::Index(index) => format!("[{index}]"),
        Step::Every => "[*]".to_owned(),
    };
    format!("${}", path.iter().map(step).collect::<String>())
}

fn at<'v>(value: &'v Value, path: &[Step]) -> Vec<&'v Value> {
    let Some((step, rest)) = path.split_first() else { return vec![value] };
    let below: Vec<&Value> = match (step, value) {
        (Step::Key(name), Value::Object(members)) => members.get(*name).into_iter().collect(),
        (Step::Index(index), Value::Array(items)) => items.get(*index).into_iter().collect(),
        (Step::Every, Value::Array(items)) => items.iter().collect(),
        _ => Vec::new(),
    };
    below.into_iter().flat_map(|value| at(value, rest)).collect()
}

/// A filter, its JSON and, through the model, what it means.
#[derive(Clone, Debug)]
enum Model {
    All(Vec<Model>),
    Any(Vec<Model>),
    Not(Box<Model>),
    Tag(&'static str),
    Payload(Vec<Step>, Map<String, Value>),
}

fn operators(many: bool) -> impl Strategy<Value = Map<String, Value>> {
    let bound = prop_oneof![(-3..4_i64).prop_map(Value::from), text().prop_map(Value::from)];
    let one = prop_oneof![
        scalar().prop_map(|value| ("eq", value)),
        (prop::sample::select(vec!["gt", "gte", "lt", "lte"]), bound),
        vec(scalar(), 1..4).prop_map(|values| ("in", Value::Array(values))),
        (prop::sample::select(vec!["startsWith", "endsWith"]), text().prop_map(Value::from)),
        scalar().prop_map(|value| ("contains", value)),
        Just(("exists", json!(true))),
    ];
    let not = prop_oneof![
        scalar().prop_map(|value| ("ne", value)),
        vec(scalar(), 1..4).prop_map(|values| ("notIn", Value::Array(values))),
    ];
    let one = if many { one.boxed() } else { prop_oneof![4 => one, 1 => not].boxed() };
    let some = vec(one, 1..3).prop_map(|operators| {
        operators.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>()
    });
    prop_oneof![6 => some, 1 => Just([("exists".to_owned(), json!(false))].into_iter().collect())]
}

fn model() -> impl Strategy<Value = Model> {
    let payload = path().prop_flat_map(|path| {
        let many = path.iter().any(|step| matches!(step, Step::Every));
        operators(many).prop_map(move |operators| Model::Payload(path.clone(), operators))
    });
    let leaf = prop_oneof![6 => payload, 1 => prop::sample::select(vec!["x", "y"]).prop_map(Model::Tag)];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 1..4).prop_map(Model::All),
            vec(inner.clone(), 1..4).prop_map(Model::Any),
            inner.prop_map(|inner| Model::Not(Box::new(inner))),
        ]
    })
}

impl Model {
    fn json(&self) -> Value {
        let all = |models: &[Self]| models.iter().map(Self::json).collect::<Vec<_>>();
        match self {
            Self::All(models) => json!({"all": all(models)}),
            Self::Any(models) => json!({"any": all(models)}),
            Self::Not(model) => json!({"not": model.json()}),
            Self::Tag(tag) => json!({"tag": tag}),
            Self::Payload(path, operators) => {
                let mut object = operators.clone();
                object.insert("payload".to_owned(), written(path).into());
                object.into()
            }
        }
    }

    fn holds(&self, tags: &[String], payload: &Value) -> bool {
        match self {
            Self::All(models) => models.iter().all(|model| model.holds(tags, payload)),
            Self::Any(models) => models.iter().any(|model| model.holds(tags, payload)),
            Self::Not(model) => !model.holds(tags, payload),
            Self::Tag(tag) => tags.iter().any(|has| has == tag),
            Self::Payload(path, operators) => {
                let values = at(payload, path);
                if operators.get("exists") == Some(&json!(false)) {
                    return values.is_empty();
                }
                values.into_iter().any(|value| operators.iter().all(|(name, with)| asked(name, with, value)))
            }
        }
    }
}

fn asked(operator: &str, with: &Value, value: &Value) -> bool {
    let items = || with.as_array().unwrap();
    let texts = |check: fn(&str, &str) -> bool| {
        value.as_str().zip(with.as_str()).is_some_and(|(text, part)| check(text, part))
    };
    match operator {
        "eq" => same(value, with),
        "ne" => !same(value, with),
        "gt" => order(value, with) == Some(Ordering::Greater),
        "gte" => matches!(order(value, with), Some(Ordering::Greater | Ordering::Equal)),
        "lt" => order(value, with) == Some(Ordering::Less),
        "lte" => matches!(order(value, with), Some(Ordering::Less | Ordering::Equal)),
        "in" => items().iter().any(|item| same(value, item)),
        "notIn" => !items().iter().any(|item| same(value, item)),
        "startsWith" => texts(|text, part| text.starts_with(part)),
        "endsWith" => texts(|text, part| text.ends_with(part)),
        "contains" => match value {
            Value::Array(values) => values.iter().any(|item| same(item, with)),
            _ => texts(|text, part| text.contains(part)),
        },
        _ => true,
    }
}

fn same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(_), Value::Number(_)) => order(one, two) == Some(Ordering::Equal),
        (Value::Array(_) | Value::Object(_), _) => false,
        _ => one == two,
    }
}

fn order(one: &Value, two: &Value) -> Option<Ordering> {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => Some(hundredths(one).cmp(&hundredths(two))),
        (Value::String(one), Value::String(two)) => Some(one.cmp(two)),
        _ => None,
    }
}

/// All numbers here are whole hundredths.
fn hundredths(number: &serde_json::Number) -> i128 {
    let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
    whole.map_or_else(|| (number.as_f64().unwrap() * 100.0) as i128, |whole| whole * 100)
}

fn facts<'a>(tags: &'a [String], payload: &'a [u8]) -> FilterInput<'a> {
    FilterInput { event_type: "a", channels: &[], tags, headers: &[], payload }
}

/// What was read is kept as a text that reads as the same; what was refused has a reason.
fn read_or_refused(text: &str) -> Result<(), TestCaseError> {
    match Filter::parse(text) {
        Ok(filter) => {
            let again = Filter::parse(filter.as_str())
                .map_err(|errors| TestCaseError::fail(format!("{errors:?}")))?;
            prop_assert_eq!(again.as_str(), filter.as_str());
        }
        Err(errors) => {
            prop_assert!(!errors.is_empty());
            prop_assert!(errors.iter().all(|error| !error.why.is_empty()), "{:?}", errors);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_filter_passes_what_its_model_passes(
        models in vec(model(), 1..6), payload in object(value().boxed()), tagged: bool, pretty: bool,
    ) {
        let tags = if tagged { vec!["x".to_owned()] } else { Vec::new() };
        let text = if pretty { format!("{payload:#}") } else { payload.to_string() };
        let facts = facts(&tags, text.as_bytes());
        let filters: Vec<_> = models.iter().map(|model| {
            Arc::new(Filter::parse(&model.json().to_string()).unwrap())
        }).collect();
        let expected: Vec<_> = models.iter().map(|model| model.holds(&tags, &payload)).collect();
        let alone: Vec<_> = filters.iter().map(|filter| filter.holds(&facts)).collect();
        prop_assert_eq!(&alone, &expected, "alone");
        // Between others, some of which are none.
        let members = filters.iter().flat_map(|filter| [None, Some(filter.clone())]);
        let together = FilterSet::new(members).unwrap();
        let mut sifting = together.run(facts);
        let together: Vec<_> = (0..expected.len()).map(|number| sifting.passes(2 * number + 1)).collect();
        prop_assert_eq!(&together, &expected, "together");
        prop_assert!((0..expected.len()).all(|number| sifting.passes(2 * number)), "without a filter");
        let unmet: Vec<_> = filters.iter().map(|filter| filter.unmet(&facts).is_none()).collect();
        prop_assert_eq!(&unmet, &expected, "explained");
    }

    #[test]
    fn any_text_is_read_for_good_or_refused_with_a_reason(text in ".{0,200}") {
        read_or_refused(&text)?;
    }

    #[test]
    fn any_json_is_read_for_good_or_refused_with_a_reason(
        given in value(), keys in vec(prop::sample::select(vec![
            "all", "any", "not", "tag", "header", "payload", "eq", "in", "exists", "gt", "contains",
        ]), 1..4),
    ) {
        let object: Map<_, _> = keys.into_iter().map(|key| (key.to_owned(), given.clone())).collect();
        read_or_refused(&Value::Object(object).to_string())?;
    }

    #[test]
    fn no_payload_makes_a_filter_panic(model in model(), payload in vec(any::<u8>(), 0..100)) {
        let filter = Filter::parse(&model.json().to_string()).unwrap();
        let facts = facts(&[], &payload);
        prop_assert_eq!(filter.holds(&facts), filter.unmet(&facts).is_none());
    }
}

/// How long judging takes. `cargo test --release -p aldaba-delivery --test filter_model -- --ignored
/// --nocapture judging_takes` prints it.
#[test]
#[ignore = "prints times; they mean something only in a release build"]
fn judging_takes_microseconds() {
    let condition = |number: usize| match number % 4 {
        0 => json!({"payload": format!("$.customer.field{number}"), "startsWith": "value"}),
        1 => json!({"payload": format!("$.amount{number}"), "gte": 1}),
        2 => json!({"payload": "$.lines[*].sku", "in": ["sku-0", "sku-x"]}),
        _ => json!({"payload": format!("$.field{number}"), "ne": "x"}),
    };
    for (name, size) in [("1 KiB", 1024), ("64 KiB", 64 * 1024)] {
        let payload = invoice(size);
        for (count, endpoints) in [(1, 1), (10, 1), (1, 100), (10, 100)] {
            let all: Vec<_> = (0..count).map(|number| condition(number * 4 % 13)).collect();
            let filter = Arc::new(Filter::parse(&json!({"all": all}).to_string()).unwrap());
            let filters = FilterSet::new((0..endpoints).map(|_| Some(filter.clone()))).unwrap();
            let judge = || {
                let mut sifting = filters.run(facts(&[], payload.as_bytes()));
                (0..endpoints).filter(|endpoint| sifting.passes(*endpoint)).count()
            };
            let passed = judge();
            let mut times: Vec<_> = (0..200).map(|_| timed(&judge)).collect();
            times.sort_unstable();
            let micros = |nanos: u128| nanos as f64 / 1000.0;
            println!(
                "{name} ({} bytes), {count} conditions, {endpoints} endpoints ({passed} pass): median {:.1} µs, p99 {:.1} µs",
                payload.len(),
                micros(times[100]),
                micros(times[198]),
            );
        }
        let times: Vec<_> =
            (0..200).map(|_| timed(&|| serde_json::from_str::<Value>(&payload).is_ok())).collect();
        println!("{name}: the same as a tree, median {:.1} µs", times[100] as f64 / 1000.0);
    }
}

type Conditions = Box<dyn Fn(usize) -> Value>;

/// How long the worst filters that an application may have take with payloads that suit them, which the price of a look
/// is about. Printed in the same way.
#[test]
#[ignore = "prints times; they mean something only in a release build"]
fn the_worst_filters_take_a_tenth_of_a_second() {
    let numbers = (0..520_000).map(|n| (n % 10).to_string()).collect::<Vec<_>>().join(",");
    let texts = vec![format!("\"{}\"", "a".repeat(1000)); 1000].join(",");
    let lists = vec![format!("[{}]", vec!["1"; 500].join(",")); 1000].join(",");
    let deep = format!("{}{numbers}{}", "[".repeat(10), "]".repeat(10));
    let words = |n: usize| format!("{}{}", "a".repeat(n % 37), n % 1009);
    let patterns =
        |n: usize| (0..9).map(|bit| if n >> bit & 1 == 1 { "[0]" } else { "[*]" }).collect::<String>();
    let cases: [(&str, String, Conditions); 7] = [
        (
            "parts of texts",
            format!("{{\"l\":[{texts}]}}"),
            Box::new(move |n| json!({"payload": "$.l[*]", "contains": words(n)})),
        ),
        (
            "parts of one text",
            format!("{{\"l\":\"{}\"}}", "ab".repeat(520_000)),
            Box::new(move |n| json!({"payload": "$.l", "contains": format!("{}c{n}", "ab".repeat(n % 400))})),
        ),
        (
            "items of lists",
            format!("{{\"l\":[{lists}]}}"),
            Box::new(move |n| json!({"payload": "$.l[*]", "contains": n + 2})),
        ),
        (
            "bounds",
            format!("{{\"l\":[{numbers}]}}"),
            Box::new(move |n| json!({"payload": "$.l[*]", "gt": n + 100})),
        ),
        (
            "long lists of numbers",
            format!("{{\"l\":[{numbers}]}}"),
            Box::new(
                |n| json!({"payload": "$.l[*]", "in": (0..100).map(|m| format!("{n}.{m}").parse::<f64>().unwrap()).collect::<Vec<_>>()}),
            ),
        ),
        (
            "one value",
            "{\"a\":0.5}".to_owned(),
            Box::new(
                move |n| json!({"payload": "$.a", "in": (0..100).map(|m| n * 100 + m).collect::<Vec<_>>()}),
            ),
        ),
        (
            "paths",
            format!("{{\"l\":{deep}}}"),
            Box::new(move |n| json!({"payload": format!("$.l{}", patterns(n)), "eq": n})),
        ),
    ];
    for (name, payload, condition) in cases {
        let (mut load, mut filters, mut number) = (CombinedMatchCost::default(), Vec::new(), 0);
        while filters.len() < 10_000 {
            let any: Vec<_> = (number..number + 60).map(&condition).collect();
            let next = [60, 15, 1].iter().find_map(|most| {
                let filter = Filter::parse(&json!({"any": any[..*most]}).to_string()).ok()?;
                let mut with = load.clone();
                with.add(&filter);
                (with.match_cost().total() <= MAX_MATCH_COST).then_some((Arc::new(filter), with))
            });
            let Some((filter, with)) = next else { break };
            (load, number) = (with, number + 60);
            filters.push(Some(filter));
        }
        let count = filters.len();
        let built = timed(&|| FilterSet::new(filters.clone()));
        let all = FilterSet::new(filters).unwrap();
        let judge = || {
            let mut sifting = all.run(facts(&[], payload.as_bytes()));
            (0..count).filter(|endpoint| sifting.passes(*endpoint)).count()
        };
        let mut times: Vec<_> = (0..5).map(|_| timed(&judge)).collect();
        times.sort_unstable();
        let millis = |nanos: u128| nanos as f64 / 1e6;
        println!(
            "{name}: {count} filters, {} bytes, {} looks: {:.1} ms ({:.1} ns a look); built in {:.1} ms",
            payload.len(),
            all.match_cost().at(payload.len()),
            millis(times[0]),
            times[0] as f64 / all.match_cost().at(payload.len()) as f64,
            millis(built),
        );
    }
}

#[expect(clippy::disallowed_methods, reason = "this measures")]
fn timed<T>(judge: &impl Fn() -> T) -> u128 {
    let begun = std::time::Instant::now();
    std::hint::black_box(judge());
    begun.elapsed().as_nanos()
}

/// An invoice of about this size, as senders write them.
fn invoice(size: usize) -> String {
    let fields = |from: usize| (from..from + 8).map(|n| (format!("field{n}"), json!(format!("value {n}"))));
    let mut invoice = json!({"id": "in_42", "amount1": 100, "amount5": 7.25, "amount9": 3, "lines": []});
    invoice["customer"] = Value::Object(fields(0).chain(fields(8)).collect());
    for (name, value) in fields(0).chain(fields(8)) {
        invoice[name] = value;
    }
    let mut number = 0;
    while invoice.to_string().len() < size {
        let line = json!({"sku": format!("sku-{number}"), "quantity": 2, "price": 19.99, "text": "A line of an invoice"});
        invoice["lines"].as_array_mut().unwrap().push(line);
        number += 1;
    }
    invoice.to_string()
}
