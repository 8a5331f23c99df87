//! What the tests of backups share.

mod bad_input;
mod keys;
mod paused;
mod restoring;
mod under_load;
mod versions;

use crate::black_box::{Client, Server, free_address, token};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_aldaba");

/// A folder for a test, with the data folder of a server in it.
pub(crate) struct Stage {
    pub(crate) outer: tempfile::TempDir,
    pub(crate) data: PathBuf,
    pub(crate) token: String,
    pub(crate) app: String,
    pub(crate) address: SocketAddr,
}

impl Stage {
    /// A server with an application and an endpoint whose deliveries go to this URL.
    pub(crate) fn start(url: &str) -> (Self, Server) {
        let outer = tempfile::tempdir().expect("a folder");
        let data = outer.path().join("data");
        let (token, address) = (token(&data), free_address());
        let server = Server::start(&data, address);
        let mut client = Client::connect(address, &token).expect("the server listens");
        let app = client.post("/app", None, r#"{"name": "a", "uid": "a"}"#).expect("an answer");
        let app = app.body["id"].as_str().expect("an application").to_owned();
        let body = format!(r#"{{"url": "{url}", "policy": "persistent"}}"#);
        let endpoint = client.post(&format!("/app/{app}/endpoint"), None, &body).expect("an answer");
        assert_eq!(endpoint.status, 201, "{}", endpoint.body);
        (Self { outer, data, token, app, address }, server)
    }

    /// One whose deliveries go nowhere: nothing listens there.
    pub(crate) fn quiet() -> (Self, Server) {
        Self::start(&format!("http://{}/", free_address()))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.outer.path().join(name)
    }

    pub(crate) fn client(&self, address: SocketAddr) -> Client {
        Client::connect(address, &self.token).expect("the server listens")
    }

    /// Sends a message and returns its id.
    pub(crate) fn send(&self, address: SocketAddr, number: usize) -> String {
        let body = format!(r#"{{"eventType": "a", "payload": {{"n": {number}}}}}"#);
        let answer = self.client(address).post(&format!("/app/{}/msg", self.app), None, &body);
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 202, "{}", answer.body);
        answer.body["id"].as_str().expect("an id").to_owned()
    }

    pub(crate) fn backup(&self, name: &str) -> PathBuf {
        let target = self.path(name);
        let output = aldaba(&["backup", target.to_str().expect("text"), "--data"], &self.data, &[]);
        assert!(output.status.success(), "{}", said(&output));
        target
    }

    pub(crate) fn restore(&self, backup: &Path, name: &str) -> PathBuf {
        let folder = self.path(name);
        let output = aldaba(&["restore", backup.to_str().expect("text"), "--data"], &folder, &[]);
        assert!(output.status.success(), "{}", said(&output));
        folder
    }
}

/// Runs a command with a folder as its last argument.
pub(crate) fn aldaba(arguments: &[&str], folder: &Path, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(arguments).arg(folder).envs(variables.iter().copied());
    command.output().expect("the command runs")
}

/// Both outputs.
pub(crate) fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// The ids of all messages of an application.
pub(crate) fn messages(stage: &Stage, address: SocketAddr) -> Vec<String> {
    all(stage, address, &format!("/app/{}/msg?limit=250", stage.app), "id")
}

/// A field of every item of a list.
pub(crate) fn all(stage: &Stage, address: SocketAddr, path: &str, field: &str) -> Vec<String> {
    let (mut found, mut iterator) = (Vec::new(), String::new());
    loop {
        let page = stage.client(address).get(&format!("{path}{iterator}")).expect("an answer");
        assert_eq!(page.status, 200, "{}", page.body);
        let items = page.body["data"].as_array().expect("a list").iter();
        found.extend(items.map(|item| item[field].as_str().expect("text").to_owned()));
        if page.body["done"] == true {
            return found;
        }
        iterator = format!("&iterator={}", page.body["iterator"].as_str().expect("an iterator"));
    }
}

pub(crate) fn manifest(backup: &Path) -> Value {
    let text = std::fs::read(backup.join("manifest.json")).expect("a manifest");
    serde_json::from_slice(&text).expect("JSON")
}

/// Names, modes and contents of a folder. `None`: there is none.
pub(crate) type Content = Option<BTreeMap<String, (u32, Vec<u8>)>>;

pub(crate) fn content(folder: &Path) -> Content {
    let entries = std::fs::read_dir(folder).ok()?.map(|entry| entry.expect("an entry").path());
    let described = entries.map(|path| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let mode = path.metadata().expect("it is there").permissions().mode() & 0o777;
        (name, (mode, std::fs::read(&path).unwrap_or_default()))
    });
    Some(described.collect())
}
