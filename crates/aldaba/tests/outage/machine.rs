//! Trouble of the server and its machine: a full disk, a wrong clock, a task that panics, a certificate that ends.

use crate::black_box::{Client, Server, free_address, token};
use crate::watch::Watch;
use aldaba::config::Config;
use aldaba::server::{Server as OwnServer, Threads, listen};
use aldaba_delivery::Timestamp;
use aldaba_engine::{Background, Clock, SteppedClock, SystemClock};
use rcgen::{CertificateParams, KeyPair};
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

pub(crate) const RULES: [&[&str]; 4] = [&DISK, &CLOCK, &TASK, &CERTIFICATE];
const DISK: [&str; 2] = ["disk-space", "not-accepting"];
const CLOCK: [&str; 1] = ["clock-not-trusted"];
const TASK: [&str; 1] = ["task-restarting"];
const CERTIFICATE: [&str; 1] = ["certificate-expiring"];

/// A connection of the script may wait for long between two requests.
const IDLE: (&str, &str) = ("ALDABA_HEADER_SECONDS", "600");
const MIB: u64 = 1024 * 1024;
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Longer than a task must run well after a panic.
const WELL: Duration = Duration::from_secs(12 * 60);

/// A disk of its own, in memory; where nothing can be mounted, a folder on a disk that others use too.
struct SmallDisk {
    path: PathBuf,
    is_mounted: bool,
}

impl SmallDisk {
    fn mount(at: &Path) -> Self {
        std::fs::create_dir_all(at).expect("a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256m", "tmpfs"]).arg(at).stderr(Stdio::null());
        let is_mounted = mount.status().is_ok_and(|status| status.success());
        Self { path: at.to_owned(), is_mounted }
    }

    fn free(&self) -> u64 {
        let found = Command::new("stat").args(["-f", "-c", "%a %S"]).arg(&self.path).output().expect("stat");
        let text = String::from_utf8(found.stdout).expect("numbers");
        text.split_whitespace().map(|number| number.parse::<u64>().expect("a number")).product()
    }

    /// Takes room for a file.
    fn take(&self, bytes: u64) -> PathBuf {
        let file = self.path.join("filled");
        let mut fallocate = Command::new("fallocate");
        let taken = fallocate.args(["--length", &bytes.to_string()]).arg(&file).status().expect("fallocate");
        assert!(taken.success(), "{bytes} bytes");
        file
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if self.is_mounted {
            let _ = Command::new("umount").arg("--lazy").arg(&self.path).status();
        }
    }
}

#[test]
#[ignore = "needs Prometheus: `cargo xtask alerts` installs it"]
fn a_full_disk_is_an_alert_before_and_while_no_messages_are_accepted_here_and_in_prometheus() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let disk = SmallDisk::mount(&data);
    let (address, user, free) = (free_address(), token(&data), disk.free());
    let (warned, resolved, refused) = (free - 96 * MIB, free - 64 * MIB, free - 128 * MIB);
    let rules = format!("disk-space < {warned} resolve {resolved} for 5s; not-accepting < 1 for 5s");
    let settings = [
        ("ALDABA_ALERT_RULES", &*rules),
        ("ALDABA_ALERT_INTERVAL_SECONDS", "1"),
        ("ALDABA_LOW_SPACE_BYTES", &*refused.to_string()),
        ("ALDABA_RESERVE_BYTES", "8388608"),
        IDLE,
    ];
    let serve = || Server::start_with(&data, address, &settings);
    let changes =
        [("< 1073741824\n", &*format!("< {warned}\n")), ("< 1342177280 and", &*format!("< {resolved} and"))];
    let (mut watch, _server) = Watch::start(folder.path(), address, &DISK, &changes, serve);
    let mut client = Client::connect(address, &user).expect("the server listens");
    let app = client.post("/app", None, r#"{"name": "a"}"#).expect("an answer").body["id"].clone();
    let path = format!("/app/{}/msg", app.as_str().expect("an id"));
    let mut send = || {
        let sent = client.post(&path, None, r#"{"eventType": "a", "payload": {}}"#);
        sent.expect("an answer").status
    };
    assert_eq!(send(), 202);
    let filled = disk.take(200 * MIB);
    watch.all_fire();
    assert_eq!(send(), 507);
    std::fs::remove_file(filled).expect("the file");
    watch.all_are_resolved(|| {});
    assert_eq!(send(), 202);
    watch.both_agree();
}

#[test]
#[ignore = "needs Prometheus: `cargo xtask alerts` installs it"]
fn a_clock_that_is_not_trusted_is_an_alert_until_the_operator_trusts_it_here_and_in_prometheus() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    // The clock was right ten days ago. Nobody knows whether it is now.
    let ago = -i64::try_from((10 * DAY).as_millis()).expect("a few days");
    let before = SteppedClock::new(Arc::new(SystemClock::new()), ago);
    InProcess::start(&data, free_address(), Arc::new(before)).stop();
    let address = free_address();
    let serve = || Server::start_with(&data, address, &[("ALDABA_ALERT_INTERVAL_SECONDS", "1")]);
    let (mut watch, _server) = Watch::start(folder.path(), address, &CLOCK, &[], serve);
    watch.all_fire();
    let trusted =
        Command::new(env!("CARGO_BIN_EXE_aldaba")).args(["clock", "trust", "--data"]).arg(&data).output();
    assert!(trusted.is_ok_and(|done| done.status.success()), "the command runs");
    watch.all_are_resolved(|| {});
    watch.both_agree();
}

#[test]
#[ignore = "needs Prometheus: `cargo xtask alerts` installs it"]
fn a_task_that_panics_is_an_alert_until_it_has_run_well_here_and_in_prometheus() {
    let folder = tempfile::tempdir().expect("a folder");
    let (address, clock) = (free_address(), Arc::new(HurriedClock::default()));
    let serve = || InProcess::start(&folder.path().join("data"), address, clock.clone());
    let (mut watch, server) = Watch::start(folder.path(), address, &TASK, &[], serve);
    // No task of the server panics if nothing is wrong with it: this one is of a program around it.
    server.panic_once();
    watch.all_fire();
    clock.hurry(WELL);
    watch.all_are_resolved(|| {});
    watch.both_agree();
    server.stop();
}

#[test]
#[ignore = "needs Prometheus: `cargo xtask alerts` installs it"]
fn a_client_certificate_near_its_end_is_an_alert_until_it_is_replaced_here_and_in_prometheus() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let (address, user) = (free_address(), token(&data));
    let serve = || Server::start_with(&data, address, &[("ALDABA_ALERT_INTERVAL_SECONDS", "1"), IDLE]);
    let (mut watch, _server) = Watch::start(folder.path(), address, &CERTIFICATE, &[], serve);
    let mut client = Client::connect(address, &user).expect("the server listens");
    let mut post = |path: &str, body: serde_json::Value| {
        let made = client.post(path, None, &body.to_string()).expect("an answer").body;
        made["id"].as_str().expect("an id").to_owned()
    };
    let app = post("/app", json!({"name": "a"}));
    let endpoint = post(&format!("/app/{app}/endpoint"), json!({"url": "https://example.com/"}));
    let path = format!("/app/{app}/endpoint/{endpoint}/mtls");
    let mut show = |lasts: Duration| {
        let set = client.put(&path, &json!({"identity": identity(lasts)}).to_string()).expect("an answer");
        assert_eq!(set.status, 204, "{}", set.body);
    };
    show(5 * DAY);
    watch.all_fire();
    show(365 * DAY);
    watch.all_are_resolved(|| {});
    // The organization is told too: the certificate is its own.
    let told = client.get("/alert?rule=certificate-expiring").expect("an answer").body;
    assert_eq!((&told["data"][0]["scope"], &told["data"][1]), (&json!("organization"), &json!(null)));
    watch.both_agree();
}

/// A certificate with its key.
fn identity(lasts: Duration) -> String {
    let mut params = CertificateParams::new(vec!["example.com".into()]).expect("a name");
    let end =
        jiff::Timestamp::from_millisecond((SystemClock::new().now() + lasts).millis()).expect("a moment");
    let day = end.to_zoned(jiff::tz::TimeZone::UTC).date();
    let [month, date] = [day.month(), day.day()].map(|number| u8::try_from(number).expect("a small number"));
    params.not_after = rcgen::date_time_ymd(day.year().into(), month, date);
    let key = KeyPair::generate().expect("a key");
    params.self_signed(&key).expect("a certificate").pem() + &key.serialize_pem()
}

/// The whole server in this process: on another clock, or with a task of the test.
struct InProcess {
    stop: oneshot::Sender<()>,
    background: Background,
    ended: JoinHandle<()>,
}

impl InProcess {
    fn start(data: &Path, address: SocketAddr, clock: Arc<dyn Clock>) -> Self {
        let mut config = Config::default();
        config.store.folder = data.to_owned();
        config.store.queue_wait = Duration::from_secs(30);
        config.engine.alert_interval = Duration::from_secs(1);
        let (stop, stopped) = oneshot::channel();
        let (started, server) = std::sync::mpsc::channel();
        let ended = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(async {
                let listener = listen(address).expect("a free port");
                let server = OwnServer::start_with_clock(listener, config, clock).await.expect("it starts");
                started.send(server.engine().background().clone()).expect("the test waits");
                server
                    .run(Threads::one(), async move { drop(stopped.await) })
                    .await
                    .expect("it stops in order");
            });
        });
        Self { stop, background: server.recv().expect("it starts"), ended }
    }

    /// Runs a task that panics, and then runs well.
    fn panic_once(&self) {
        let background = self.background.clone();
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
            let mut runs = 0;
            runtime.block_on(background.supervised("of-the-test", || {
                runs += 1;
                let is_first = runs == 1;
                async move { assert!(!is_first, "on purpose") }
            }));
        });
    }

    fn stop(self) {
        self.stop.send(()).expect("it runs");
        self.ended.join().expect("it ends");
    }
}

/// The machine's clocks, of which the one that only measures can be put forward.
#[derive(Debug, Default)]
struct HurriedClock {
    machine: SystemClock,
    ahead_millis: AtomicU64,
}

impl HurriedClock {
    fn hurry(&self, span: Duration) {
        self.ahead_millis.fetch_add(u64::try_from(span.as_millis()).expect("minutes"), Ordering::Relaxed);
    }
}

impl Clock for HurriedClock {
    fn now(&self) -> Timestamp {
        self.machine.now()
    }

    fn monotonic(&self) -> Duration {
        self.machine.monotonic() + Duration::from_millis(self.ahead_millis.load(Ordering::Relaxed))
    }
}
