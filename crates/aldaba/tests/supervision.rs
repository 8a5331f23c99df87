//! What a service manager sees and does: `sd_notify`, the watchdog, and other settings by SIGHUP.

mod black_box;

use black_box::{Client, Server, free_address, token, wait_until};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The part of a service manager that listens.
struct Manager {
    socket: UnixDatagram,
    folder: TempDir,
}

type Message = BTreeMap<String, String>;

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
        Self::of(socket, folder)
    }

    fn of(socket: UnixDatagram, folder: TempDir) -> Self {
        socket.set_read_timeout(Some(WAIT_TIMEOUT)).expect("a timeout");
        Self { socket, folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, more: &[(&str, &str)]) -> Server {
        let socket = self.at("notify").display().to_string();
        let settings = [("NOTIFY_SOCKET", &*socket), ("ALDABA_LOG", "info")];
        let settings: Vec<_> = settings.into_iter().chain(more.iter().copied()).collect();
        Server::start_logging(&self.at("data"), free_address(), &settings, &self.at("log"))
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.at("log")).expect("a log")
    }

    /// The next message; `None`: there is none in time.
    fn next(&self) -> Option<Message> {
        let mut bytes = [0; 4096];
        let length = self.socket.recv(&mut bytes).ok()?;
        let text = String::from_utf8(bytes[..length].to_vec()).expect("text");
        let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some(text.lines().filter_map(pair).collect())
    }

    /// The next message that has this.
    fn wait_for(&self, name: &str) -> Message {
        loop {
            let message = self.next().unwrap_or_else(|| panic!("no {name} in time; the log: {}", self.log()));
            if message.contains_key(name) {
                return message;
            }
        }
    }
}

#[test]
fn ready_comes_once_the_server_accepts_and_stopping_before_it_drains() {
    let manager = Manager::new();
    let token = token(&manager.at("data"));
    let server = manager.start(&[]);
    let ready = manager.wait_for("READY");
    assert_eq!((&*ready["READY"], &*ready["STATUS"]), ("1", &*format!("listening on {}", server.address)));
    let mut client = Client::connect(server.address, &token).expect("it accepts");
    assert_eq!(client.get("/app").expect("an answer").status, 200);
    server.terminate();
    let stopping = manager.wait_for("STOPPING");
    assert_eq!(stopping["STOPPING"], "1");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn an_abstract_socket_is_told_too() {
    let name = format!("aldaba-supervision-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let socket = UnixDatagram::bind_addr(&address).expect("a socket");
    let manager = Manager::of(socket, tempfile::tempdir().expect("a folder"));
    let server = manager.start(&[("NOTIFY_SOCKET", &format!("@{name}"))]);
    assert_eq!(manager.wait_for("READY")["READY"], "1");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_stop_that_takes_long_asks_for_more_time() {
    let manager = Manager::new();
    let token = token(&manager.at("data"));
    let server = manager.start(&[("ALDABA_SHUTDOWN_SECONDS", "7")]);
    // It takes the request and never answers.
    let receiver = TcpListener::bind("127.0.0.1:0").expect("a port");
    let receiver_address = receiver.local_addr().expect("an address");
    let mut client = Client::connect(server.address, &token).expect("it accepts");
    let app = client.post("/app", None, r#"{"name": "slow"}"#).expect("an answer").body["id"].clone();
    let app = app.as_str().expect("an id");
    let endpoint = format!(r#"{{"url": "http://{receiver_address}/"}}"#);
    assert_eq!(client.post(&format!("/app/{app}/endpoint"), None, &endpoint).expect("an answer").status, 201);
    let message = r#"{"eventType": "a", "payload": {}}"#;
    assert_eq!(client.post(&format!("/app/{app}/msg"), None, message).expect("an answer").status, 202);
    let _on_its_way = receiver.accept().expect("a connection");
    server.terminate();
    manager.wait_for("STOPPING");
    assert_eq!(manager.wait_for("EXTEND_TIMEOUT_USEC")["EXTEND_TIMEOUT_USEC"], "30000000");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn signs_of_life_come_twice_within_the_watchdogs_time_and_stop_while_the_writer_hangs() {
    const WATCHDOG: Duration = Duration::from_secs(2);
    let manager = Manager::new();
    let server = manager.start(&[("WATCHDOG_USEC", "2000000")]);
    manager.wait_for("WATCHDOG");
    for _ in 0..4 {
        let before = now();
        manager.wait_for("WATCHDOG");
        assert!(now() - before < WATCHDOG, "too late");
    }
    // Another program holds the database, so the writer waits for it.
    let database = rusqlite::Connection::open(manager.at("data").join("aldaba.db")).expect("the database");
    database.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let hangs = loop {
        let message = manager.next().expect("a message");
        match message.get("STATUS") {
            Some(status) if status.contains("does not answer") => break status.clone(),
            _ => {}
        }
    };
    assert_eq!(hangs, "the store's writer does not answer");
    assert!(manager.log().contains("a part of the server does not answer"), "{}", manager.log());
    database.execute_batch("ROLLBACK").expect("the lock is released");
    manager.wait_for("WATCHDOG");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_watchdog_of_another_process_gets_no_signs() {
    let manager = Manager::new();
    let server = manager.start(&[("WATCHDOG_USEC", "200000"), ("WATCHDOG_PID", "1")]);
    manager.wait_for("READY");
    manager.socket.set_read_timeout(Some(Duration::from_secs(1))).expect("a timeout");
    assert_eq!(manager.next(), None);
    assert_eq!(server.stop(), Some(0));
}

/// A server with a configuration file, told to read it again.
struct Reloaded {
    manager: Manager,
    server: Server,
    file: PathBuf,
}

impl Reloaded {
    fn start(settings: &str) -> Self {
        let manager = Manager::new();
        let file = manager.at("aldaba.toml");
        std::fs::write(&file, settings).expect("a file");
        let named = file.display().to_string();
        // From the file alone.
        let server = manager.start(&[("ALDABA_CONFIG", &named), ("ALDABA_LOG", "")]);
        manager.wait_for("READY");
        Self { manager, server, file }
    }

    /// Sends the signal, and returns the status after it.
    fn reload(&self, settings: &str) -> String {
        std::fs::write(&self.file, settings).expect("a file");
        let before = monotonic_micros();
        self.server.signal("-HUP");
        let reloading = self.manager.wait_for("RELOADING");
        let at: u128 = reloading["MONOTONIC_USEC"].parse().expect("a number");
        assert!((before..=monotonic_micros()).contains(&at), "{at}");
        self.manager.wait_for("READY")["STATUS"].clone()
    }
}

/// What the kernel calls CLOCK_MONOTONIC: the time since the start of the machine, without sleep.
fn monotonic_micros() -> u128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u128::try_from(now.tv_sec).expect("a time") * 1_000_000
        + u128::try_from(now.tv_nsec).expect("a time") / 1000
}

#[test]
fn a_hangup_applies_what_can_change_and_names_what_needs_a_restart() {
    let reloaded =
        Reloaded::start("log = 'info'\nmax_connections = 100\nalert_rules = 'queue-length > 500'\n");
    let Reloaded { manager, server, .. } = &reloaded;
    let token = token(&manager.at("data"));
    assert_eq!(
        reloaded.reload("log = 'info'\nmax_connections = 100\nalert_rules = 'queue-length > 500'\n"),
        "settings were read again; no setting has changed"
    );
    let status = reloaded.reload(
        "log = 'info,aldaba::requests=debug'\nmax_connections = 200\nalert_rules = 'queue-length > 700'\npublic_url = 'https://hooks.example.com'\n",
    );
    assert_eq!(
        status,
        "settings were read again; applied: alert_rules, log, public_url; need a restart: max_connections"
    );
    let mut client = Client::connect(server.address, &token).expect("it accepts");
    let rules = client.get("/alert/rule").expect("an answer").body;
    let rule = rules["data"].as_array().expect("rules").iter().find(|rule| rule["rule"] == "queue-length");
    assert_eq!(rule.expect("the rule")["threshold"], 700.0);
    let app = client.post("/app", None, r#"{"name": "a"}"#).expect("an answer").body["id"].clone();
    let path = format!("/auth/app-portal-access/{}", app.as_str().expect("an id"));
    let url = client.post(&path, None, "{}").expect("an answer").body["url"].clone();
    assert!(url.as_str().expect("a URL").starts_with("https://hooks.example.com/portal#"), "{url}");
    wait_until("requests are logged", || {
        manager.log().contains("route=\"/api/v1/auth/app-portal-access/{app_id}\"")
    });
    let log = manager.log();
    assert!(log.contains("client=\"127.0.0.1\""), "{log}");
    assert!(log.contains("another value was applied setting=\"alert_rules\""), "{log}");
    assert!(log.contains("another value needs a restart of the server setting=\"max_connections\""), "{log}");
    // It is named until the restart.
    let status = reloaded.reload("max_connections = 200\n");
    assert_eq!(
        status,
        "settings were read again; applied: alert_rules, log, public_url; need a restart: max_connections"
    );
    assert_eq!(reloaded.server.stop(), Some(0));
}

#[test]
fn a_hangup_that_removes_a_proxy_or_names_other_headers_applies_to_the_connections_that_are_open() {
    let trusting = "trusted_proxies = '127.0.0.0/8'\n";
    let reloaded = Reloaded::start(trusting);
    let token = token(&reloaded.manager.at("data"));
    let mut client = Client::connect(reloaded.server.address, &token).expect("it accepts");
    let app = client.post("/app", None, r#"{"name": "a"}"#).expect("an answer").body["id"].clone();
    let path = format!("/api/v1/auth/app-portal-access/{}", app.as_str().expect("an id"));
    let headers = format!(
        "authorization: Bearer {token}\r\ncontent-type: application/json\r\nx-forwarded-for: 192.0.2.1\r\n\
         x-forwarded-host: a.example\r\nforwarded: for=192.0.2.1;host=b.example\r\n"
    );
    // All over one connection.
    let mut base = || {
        let answer = client.post_inbound(&path, &headers, "{}").expect("the connection is open");
        let url = answer.body["url"].as_str().expect("a URL").to_owned();
        url.split_once("/portal#").expect("a link").0.to_owned()
    };
    assert_eq!(base(), "http://a.example");
    let applied = "settings were read again; applied: ";
    let status = reloaded.reload(&format!("{trusting}proxy_headers = 'forwarded'\n"));
    assert_eq!(status, format!("{applied}proxy_headers"));
    assert_eq!(base(), "http://b.example");
    assert_eq!(reloaded.reload(""), format!("{applied}proxy_headers, trusted_proxies"));
    assert_eq!(base(), "http://aldaba", "the host of the request");
    assert_eq!(reloaded.reload(trusting), format!("{applied}trusted_proxies"));
    assert_eq!(base(), "http://a.example");
    assert_eq!(reloaded.server.stop(), Some(0));
}

#[test]
fn an_invalid_file_changes_nothing_and_the_error_names_the_field() {
    let reloaded = Reloaded::start("alert_rules = 'queue-length > 500'\n");
    let token = token(&reloaded.manager.at("data"));
    for (settings, named) in [
        (
            "alert_rules = 'queue-length > 700'\nin_flight = 'many'\n",
            "in_flight = many: expected a whole number",
        ),
        (
            "alert_rules = 'queue-length > 700'\nlissten = 1\n",
            "there is no setting `lissten`; did you mean `listen`?",
        ),
        ("alert_rules = 'queue-length > 700'\ntls_key = 'a'\n", "tls_key is set, and tls_certificate is not"),
        ("alert_rules = \n", "aldaba.toml, line 1: "),
    ] {
        let status = reloaded.reload(settings);
        assert!(status.starts_with("the settings were not changed: ") && status.contains(named), "{status}");
        assert!(reloaded.manager.log().contains(named), "{}", reloaded.manager.log());
    }
    let mut client = Client::connect(reloaded.server.address, &token).expect("it accepts");
    let rules = client.get("/alert/rule").expect("an answer").body;
    let rule = rules["data"].as_array().expect("rules").iter().find(|rule| rule["rule"] == "queue-length");
    assert_eq!(rule.expect("the rule")["threshold"], 500.0);
    assert_eq!(reloaded.server.stop(), Some(0));
}

#[test]
fn turning_tls_on_and_the_rule_of_endpoints_need_a_restart_and_say_so() {
    let reloaded = Reloaded::start("");
    let status = reloaded.reload(
        "tls_certificate = '/no/such/file'\ntls_key = '/no/such/file'\nalert_rules = 'endpoint-failing > 5'\nsmtp_url = 'smtp://127.0.0.1:1'\nmail_from = 'a@example.com'\n",
    );
    let restart = "need a restart: mail_from, smtp_url, tls_certificate, tls_key, alert_rules";
    assert_eq!(status, format!("settings were read again; applied: alert_rules; {restart}"));
    let log = reloaded.manager.log();
    for why in [
        "TLS is turned on and off at the start",
        "mails are turned on",
        "`endpoint-failing` is read at the start only",
    ] {
        assert!(log.contains(why), "{log}");
    }
    assert_eq!(reloaded.server.stop(), Some(0));
}

#[expect(clippy::disallowed_methods, reason = "a test has a clock of its own")]
fn now() -> Instant {
    Instant::now()
}
