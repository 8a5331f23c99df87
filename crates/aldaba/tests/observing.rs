//! The metrics of the server as a process: after `kill -9`, checked by promtool, and scraped by a real Prometheus.

mod black_box;

use black_box::{Client, Receiver, Server, free_address, token, wait_until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The only remark that promtool may have: the name is asked for as it is.
const REMARK: &str =
    "webhook_failed_count non-histogram and non-summary metrics should not have \"_count\" suffix";

/// The body of an answer with the status 200.
fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200 ").then(|| body.to_owned())
}

fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {text}")).parse().expect("a number")
}

/// Sends messages to an endpoint, half of which fail at first, and waits until all are delivered.
fn deliver(address: SocketAddr, token: &str, receiver: &Receiver, messages: usize) {
    let mut client = Client::connect(address, token).expect("a connection");
    let app = client.post("/app", None, r#"{"name": "a"}"#).expect("an answer").body["id"].clone();
    let app = app.as_str().expect("an id");
    let endpoint = format!(r#"{{"url": "http://{}/", "policy": "quick"}}"#, receiver.address);
    let made = client.post(&format!("/app/{app}/endpoint"), None, &endpoint).expect("an answer");
    assert_eq!(made.status, 201, "{:?}", made.body);
    for _ in 0..messages {
        let message = r#"{"eventType": "a", "payload": {}}"#;
        let sent = client.post(&format!("/app/{app}/msg"), None, message).expect("an answer");
        assert_eq!(sent.status, 202, "{:?}", sent.body);
    }
    wait_until("all are delivered", || {
        let text = get(address, "/metrics").expect("metrics");
        value(&text, "webhook_deliveries_delivered_total") as usize >= messages
    });
}

/// Refuses the first attempt of every second message.
fn receiver() -> Receiver {
    let mut seen = BTreeSet::new();
    Receiver::start(move |_, message| {
        let is_first = seen.insert(message.to_owned());
        if is_first && seen.len().is_multiple_of(2) { 500 } else { 200 }
    })
}

#[test]
fn d10_windows_survive_kill_9() {
    let folder = tempfile::tempdir().expect("a folder");
    let (address, receiver) = (free_address(), receiver());
    let token = token(folder.path());
    let server = Server::start(folder.path(), address);
    deliver(address, &token, &receiver, 20);
    let before = get(address, "/metrics").expect("metrics");
    // Counts are on disk within a second.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    server.kill();
    let server = Server::start(folder.path(), address);
    let after = get(address, "/metrics").expect("metrics");
    for rate in ["webhook_delivery_success_rate", "webhook_retry_rate", "webhook_avg_retries_per_delivery"] {
        assert_eq!(value(&before, rate).to_bits(), value(&after, rate).to_bits(), "{rate}");
    }
    assert!(value(&after, "webhook_retry_rate") > 0.0);
    assert_eq!(value(&after, "webhook_queue_length"), 0.0);
    assert_eq!(server.stop(), Some(0));
}

#[test]
#[ignore = "needs Prometheus: `cargo xtask observing` installs it"]
fn promtool_finds_nothing_wrong_but_a_name_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let (address, receiver) = (free_address(), receiver());
    let token = token(folder.path());
    let server = Server::start(folder.path(), address);
    deliver(address, &token, &receiver, 4);
    let text = get(address, "/metrics").expect("metrics");
    let mut check = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is there: cargo xtask observing installs it");
    check.stdin.take().expect("an input").write_all(text.as_bytes()).expect("it reads");
    let output = check.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).expect("text");
    let remarks: Vec<_> = said.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(remarks, [REMARK], "{text}");
    drop(server);
}

/// A Prometheus that scrapes every second.
struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Prometheus {
    fn start(folder: &Path, target: SocketAddr) -> Self {
        let config = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: aldaba\n    static_configs:\n      \
             - targets: ['{target}']\n"
        );
        std::fs::write(folder.join("prometheus.yml"), config).expect("a file");
        let address = free_address();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .stdin(Stdio::null())
            .spawn()
            .expect("Prometheus is there: cargo xtask observing installs it");
        Self { child, address }
    }

    fn ask(&self, path: &str) -> Option<Value> {
        let answer: Value = serde_json::from_str(&get_close_delimited(self.address, path)?).ok()?;
        (answer["status"] == "success").then(|| answer["data"].clone())
    }

    /// The newest value of a query that has one.
    fn value(&self, query: &str) -> Option<f64> {
        let data = self.ask(&format!("/api/v1/query?query={query}"))?;
        data["result"][0]["value"][1].as_str()?.parse().ok()
    }
}

/// The JSON of an answer, which may come in chunks.
fn get_close_delimited(address: SocketAddr, path: &str) -> Option<String> {
    let body = get(address, path)?;
    let (from, to) = (body.find('{')?, body.rfind('}')?);
    body.get(from..=to).map(str::to_owned)
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs Prometheus: `cargo xtask observing` installs it"]
fn a_real_prometheus_scrapes_every_metric_under_load() {
    let folder = tempfile::tempdir().expect("a folder");
    let (address, receiver) = (free_address(), receiver());
    let token = token(&folder.path().join("aldaba"));
    let server = Server::start(&folder.path().join("aldaba"), address);
    let prometheus = Prometheus::start(folder.path(), address);
    deliver(address, &token, &receiver, 200);
    wait_until("Prometheus has the newest values", || {
        prometheus.value("webhook_deliveries_delivered_total") == Some(200.0)
    });
    let text = get(address, "/metrics").expect("metrics");
    for status in ["success", "retry", "failed"] {
        let series = format!("webhook_delivery_attempts_total{{status=\"{status}\"}}");
        let query = format!("webhook_delivery_attempts_total{{status=%22{status}%22}}");
        assert_eq!(prometheus.value(&query), Some(value(&text, &series)), "{status}");
    }
    let p99 = "histogram_quantile(0.99,webhook_delivery_duration_seconds_bucket)";
    assert!(prometheus.value(p99).is_some_and(|found| (0.0..=30.0).contains(&found)));
    let targets = prometheus.ask("/api/v1/targets").expect("targets");
    assert_eq!(targets["activeTargets"][0]["lastError"], "", "{targets}");
    assert_eq!(targets["activeTargets"][0]["health"], "up");
    let known = prometheus.ask("/api/v1/label/__name__/values").expect("names");
    let known: BTreeSet<_> = known.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    for family in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = family.split_once(' ').expect("a name and a type");
        let series = if kind == "histogram" { format!("{name}_bucket") } else { name.to_owned() };
        assert!(known.contains(series.as_str()), "Prometheus has no {series}");
    }
    drop((prometheus, server));
}
