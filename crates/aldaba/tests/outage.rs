//! A scripted outage, watched by the server's own alerts and by a real Prometheus with the rules of `contrib/`: every rule that an outage
//! of receivers can break fires and is resolved in both at the same moments.
//!
//! The thresholds are those that everybody gets. The times are short: rules are judged every second, and fire after five.

mod black_box;

use black_box::{Client, Receiver, Server, free_address, token, wait_at_most};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

/// What an outage of receivers breaks: A7 and D10, and the dead letter.
const RULES: [(&str, &str); 9] = [
    ("delivery-failure-rate", "> 0.1"),
    ("delivery-success-rate", "< 0.95"),
    ("retry-rate", "> 0.2"),
    ("average-retries", "> 1.5"),
    ("attempt-duration-p99", "> 25"),
    ("delivery-latency-p95", "> 10"),
    ("queue-length", "> 100"),
    ("failed-endpoints", "> 10"),
    ("dead-letter-size", "> 100"),
];
/// How far the moments of both may be apart: each looks once a second, at what is scraped once a second.
const TOLERANCE_SECONDS: i64 = 4;
/// Slower than the threshold of a slow attempt, and within the timeout of the policy.
const SLOW_ANSWER: Duration = Duration::from_secs(27);
const LIMIT: Duration = Duration::from_secs(180);

/// Answers 200 after a while, each connection in a thread of its own.
fn slow_receiver(slow: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let slow = slow.clone();
            std::thread::spawn(move || drop(answer_slowly(stream, &slow)));
        }
    });
    address
}

fn answer_slowly(stream: TcpStream, slow: &AtomicBool) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while {
        line.clear();
        stream.read_line(&mut line)? > 2
    } {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().map_err(std::io::Error::other)?;
        }
    }
    stream.read_exact(&mut vec![0; length])?;
    if slow.load(Ordering::Relaxed) {
        std::thread::sleep(SLOW_ANSWER);
    }
    stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

/// A real Prometheus, ended with the test.
struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Prometheus {
    fn start(folder: &Path, server: SocketAddr) -> Self {
        let contrib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/prometheus/aldaba.rules.yml");
        let rules = std::fs::read_to_string(contrib).expect("the rules");
        let rules = rules.replace("for: 1m", "for: 5s").replace("interval: 15s", "interval: 1s");
        // As the setting of the server.
        let rules = rules.replace("> 1000\n", "> 100\n").replace("> 800 and", "> 80 and");
        std::fs::write(folder.join("rules.yml"), rules).expect("a file");
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [rules.yml]\nscrape_configs:\n  - job_name: aldaba\n    static_configs: [{{targets: [\"{server}\"]}}]\n"
        );
        std::fs::write(folder.join("prometheus.yml"), config).expect("a file");
        let address = free_address();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("series").display()))
            .arg(format!("--web.listen-address={address}"))
            .stderr(Stdio::null())
            .spawn()
            .expect("`cargo xtask alerts` installs Prometheus");
        let prometheus = Self { child, address };
        let scrapes = || prometheus.query("up == 1").as_array().is_some_and(|found| !found.is_empty());
        assert!(wait_at_most(LIMIT, scrapes), "Prometheus does not scrape the server");
        prometheus
    }

    fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Value {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--get", &format!("http://{}/api/v1/{path}", self.address)]);
        for (name, value) in parameters {
            curl.args(["--data-urlencode", &format!("{name}={value}")]);
        }
        let said = curl.output().expect("curl").stdout;
        serde_json::from_slice(&said).unwrap_or(Value::Null)
    }

    fn query(&self, query: &str) -> Value {
        self.get("query", &[("query", query)])["data"]["result"].clone()
    }

    /// The queries of the dashboard that have no data here.
    fn panels_without_data(&self) -> Vec<String> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/grafana/aldaba.json");
        let dashboard: Value =
            serde_json::from_slice(&std::fs::read(file).expect("the dashboard")).expect("JSON");
        let panels = dashboard["panels"].as_array().expect("panels");
        let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("queries"));
        let query = |target: &Value| {
            target["expr"].as_str().expect("a query").replace("$job", "aldaba").replace("$instance", ".*")
        };
        let has_data = |query: &String| self.query(query).as_array().is_some_and(|found| !found.is_empty());
        targets.map(query).filter(|query| !has_data(query)).collect()
    }

    /// The rules that fire now.
    fn firing(&self) -> BTreeSet<String> {
        let found = self.query("ALERTS{alertstate=\"firing\"}").as_array().cloned().unwrap_or_default();
        found.iter().filter_map(|one| one["metric"]["rule"].as_str().map(str::to_owned)).collect()
    }

    /// The first and the last second in which each rule fired.
    fn fired(&self, from: i64, until: i64) -> BTreeMap<String, (i64, i64)> {
        let query = "max by (rule) (ALERTS{alertstate=\"firing\"})";
        let (from, until) = (from.to_string(), until.to_string());
        let parameters = [("query", query), ("start", &from), ("end", &until), ("step", "1")];
        let found = self.get("query_range", &parameters);
        let series = found["data"]["result"].as_array().cloned().unwrap_or_default();
        let moment = |sample: &Value| sample[0].as_f64().map(|at| at as i64);
        let span = |series: &Value| {
            let samples = series["values"].as_array()?;
            Some((moment(samples.first()?)?, moment(samples.last()?)?))
        };
        series
            .iter()
            .filter_map(|one| Some((one["metric"]["rule"].as_str()?.to_owned(), span(one)?)))
            .collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Outage {
    client: Client,
    operator: Client,
}

impl Outage {
    fn post(&mut self, path: &str, body: &Value) -> Value {
        let answer = self.client.post(path, None, &body.to_string()).expect("an answer");
        assert!((200..300).contains(&answer.status), "{path}: {} {}", answer.status, answer.body);
        answer.body
    }

    fn application(&mut self) -> String {
        self.post("/app", &json!({"name": "outage"}))["id"].as_str().expect("an id").to_owned()
    }

    fn endpoints(&mut self, app: &str, count: usize, receiver: SocketAddr, policy: &str) -> Vec<String> {
        let body = json!({"url": format!("http://{receiver}/"), "policy": policy});
        let mut made = Vec::new();
        for _ in 0..count {
            let endpoint = self.post(&format!("/app/{app}/endpoint"), &body);
            made.push(endpoint["id"].as_str().expect("an id").to_owned());
        }
        made
    }

    fn messages(&mut self, app: &str, count: usize) {
        let message = json!({"eventType": "a", "payload": {}});
        for _ in 0..count {
            self.post(&format!("/app/{app}/msg"), &message);
        }
    }

    /// The alerts of the whole server, by rule: when they fired, and when they were resolved.
    fn alerts(&mut self) -> BTreeMap<String, (i64, Option<i64>)> {
        let page = self.operator.get("/alert?limit=250").expect("an answer").body;
        let mut alerts = BTreeMap::new();
        for alert in page["data"].as_array().expect("a list") {
            let moment = |name: &str| alert[name].as_str().map(seconds);
            let rule = alert["rule"].as_str().expect("a rule").to_owned();
            let before = alerts.insert(rule, (moment("firedAt").expect("a moment"), moment("resolvedAt")));
            assert_eq!(before, None, "it fired twice: {alert}");
        }
        alerts
    }
}

fn seconds(rfc3339: &str) -> i64 {
    rfc3339.parse::<jiff::Timestamp>().expect("a moment").as_second()
}

fn operator_token(data: &Path) -> String {
    let made = Command::new(env!("CARGO_BIN_EXE_aldaba"))
        .args(["token", "create", "--org", "org_00000000000SvixManagement00", "--data"])
        .arg(data)
        .output()
        .expect("the command runs");
    String::from_utf8(made.stdout).expect("a token is text").trim().to_owned()
}

#[test]
#[ignore = "needs Prometheus: `cargo xtask alerts` installs it"]
fn a7_and_d10_every_rule_fires_and_is_resolved_in_an_outage_here_and_in_prometheus() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let address = free_address();
    let changes: Vec<_> = RULES.iter().map(|(rule, limit)| format!("{rule} {limit} for 5s")).collect();
    let (user, operator) = (token(&data), operator_token(&data));
    let changes = changes.join("; ");
    let settings = [
        ("ALDABA_ALERT_RULES", &*changes),
        ("ALDABA_ALERT_INTERVAL_SECONDS", "1"),
        // A connection of the script may wait for long between two requests.
        ("ALDABA_HEADER_SECONDS", "600"),
    ];
    let _server = Server::start_with(&data, address, &settings);
    let connect = |token: &str| Client::connect(address, token).expect("the server listens");
    let mut outage = Outage { client: connect(&user), operator: connect(&operator) };
    let prometheus = Prometheus::start(folder.path(), address);
    let began = prometheus.query("time()")[0].as_f64().expect("a number") as i64;

    let (status, slow) = (Arc::new(AtomicU16::new(500)), Arc::new(AtomicBool::new(true)));
    let said = status.clone();
    let receiver = Receiver::start(move |_, _| said.load(Ordering::Relaxed)).address;
    let late = slow_receiver(slow.clone());
    let policy = |name: &str, fails: &str| {
        json!({
            "name": name, "schedule": {"type": "list", "delays": ["100ms", "100ms"]}, "limit": {"attempts": 3},
            "jitter": {"type": "none"}, "gate": {"type": "apart"}, "probe": null, "endpointFails": {"type": fails},
        })
    };
    outage.post("/policy", &policy("strict", "whenExhausted"));
    outage.post("/policy", &policy("lenient", "never"));

    let patient = json!({
        "name": "patient", "schedule": {"type": "list", "delays": ["1h"]}, "limit": {"attempts": 2},
        "jitter": {"type": "none"}, "gate": {"type": "apart"}, "endpointFails": {"type": "never"},
    });
    outage.post("/policy", &patient);

    // Twelve endpoints fail.
    let failing = outage.application();
    let failed = outage.endpoints(&failing, 12, receiver, "strict");
    outage.messages(&failing, 1);
    let gone = |outage: &mut Outage| {
        let page = outage.client.get(&format!("/app/{failing}/endpoint")).expect("an answer").body;
        let list = page["data"].as_array().expect("a list");
        list.iter().all(|endpoint| endpoint["health"]["status"] == "failed")
    };
    assert!(wait_at_most(LIMIT, || gone(&mut outage)), "the endpoints fail");
    // More than a hundred deliveries wait for another attempt.
    let waiting = outage.application();
    outage.endpoints(&waiting, 1, receiver, "patient");
    outage.messages(&waiting, 120);
    // More than a hundred deliveries end without success, each after two retries.
    let dying = outage.application();
    outage.endpoints(&dying, 1, receiver, "lenient");
    outage.messages(&dying, 120);
    // Some succeed, late.
    let slowly = outage.application();
    outage.endpoints(&slowly, 20, late, "quick");
    outage.messages(&slowly, 1);

    // On both sides, before anything is mended: a scrape comes after what it shows.
    let all_fire = |outage: &mut Outage| {
        let (ours, theirs) = (outage.alerts(), prometheus.firing());
        RULES.iter().all(|(rule, _)| ours.contains_key(*rule) && theirs.contains(*rule))
    };
    assert!(
        wait_at_most(LIMIT, || all_fire(&mut outage)),
        "not every rule fires: {:?} here, {:?} there",
        outage.alerts(),
        prometheus.firing()
    );

    // Everything works again: what waits is cancelled, the dead letter is emptied, and thousands of deliveries succeed at once.
    status.store(200, Ordering::Relaxed);
    slow.store(false, Ordering::Relaxed);
    for endpoint in failed {
        outage.post(&format!("/app/{failing}/endpoint/{endpoint}/resume"), &json!({}));
    }
    for app in [&failing, &dying] {
        outage.post(&format!("/app/{app}/delivery/discard"), &json!({}));
    }
    let deleted = outage.client.delete(&format!("/app/{waiting}")).expect("an answer");
    assert_eq!(deleted.status, 204, "{}", deleted.body);
    let healthy = outage.application();
    outage.endpoints(&healthy, 40, receiver, "quick");
    let resolved = |outage: &mut Outage| {
        outage.messages(&healthy, 5);
        outage.alerts().values().all(|(_, resolved)| resolved.is_some())
    };
    assert!(
        wait_at_most(LIMIT, || resolved(&mut outage)),
        "not every rule is resolved: {:?}",
        outage.alerts()
    );

    assert_eq!(prometheus.panels_without_data(), Vec::<String>::new());
    let alerts = outage.alerts();
    let until = alerts.values().filter_map(|(_, resolved)| *resolved).max().expect("there are some") + 10;
    let is_later = || prometheus.query("time()")[0].as_f64().is_some_and(|now| now as i64 >= until);
    assert!(wait_at_most(LIMIT, is_later), "time passes");
    let theirs = prometheus.fired(began, until);
    for (rule, _) in RULES {
        let (fired, resolved) = alerts[rule];
        let resolved = resolved.expect("it is resolved");
        let (first, last) =
            theirs.get(rule).unwrap_or_else(|| panic!("{rule} did not fire in Prometheus: {theirs:?}"));
        println!("{rule}: fired {} s apart, resolved {} s apart", first - fired, last + 1 - resolved);
        assert!((first - fired).abs() <= TOLERANCE_SECONDS, "{rule}: {first} there, {fired} here");
        assert!(
            (last + 1 - resolved).abs() <= TOLERANCE_SECONDS,
            "{rule}: until {last} there, {resolved} here"
        );
    }
}
