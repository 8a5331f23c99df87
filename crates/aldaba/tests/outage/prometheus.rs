//! A real Prometheus with the rules of `contrib/`.

use crate::black_box::{free_address, wait_at_most};
use crate::watch::LIMIT;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Ended with the test.
pub(crate) struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Prometheus {
    /// Evaluates each second what the server judges each second. `changes`: texts in the rules, and those of the server's settings.
    pub(crate) fn start(folder: &Path, server: SocketAddr, changes: &[(&str, &str)]) -> Self {
        let contrib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/prometheus/aldaba.rules.yml");
        let rules = std::fs::read_to_string(contrib).expect("the rules");
        let mut rules = rules.replace("for: 1m", "for: 5s").replace("interval: 15s", "interval: 1s");
        for (text, other) in changes {
            assert!(rules.contains(text), "no rule has {text:?}");
            rules = rules.replace(text, other);
        }
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
        // It takes some seconds until it looks for the server.
        let has_looked = || prometheus.query("up").as_array().is_some_and(|found| !found.is_empty());
        assert!(wait_at_most(LIMIT, has_looked), "Prometheus does not look for the server");
        prometheus
    }

    pub(crate) fn scrapes(&self) -> bool {
        self.query("up == 1").as_array().is_some_and(|found| !found.is_empty())
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

    /// What it takes for now, in seconds.
    pub(crate) fn now(&self) -> i64 {
        self.query("time()")[0].as_f64().map_or(0, |now| now as i64)
    }

    /// The queries of the dashboard that have no data here.
    pub(crate) fn panels_without_data(&self) -> Vec<String> {
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
    pub(crate) fn firing(&self) -> BTreeSet<String> {
        let found = self.query("ALERTS{alertstate=\"firing\"}").as_array().cloned().unwrap_or_default();
        found.iter().filter_map(|one| one["metric"]["rule"].as_str().map(str::to_owned)).collect()
    }

    /// The first and the last second in which each rule fired.
    pub(crate) fn fired(&self, from: i64, until: i64) -> BTreeMap<String, (i64, i64)> {
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
