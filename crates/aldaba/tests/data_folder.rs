//! The data folder: its permissions, and failed starts.

mod black_box;

use black_box::{Client, Server, free_address, token, wait_at_most, wait_until};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_aldaba");
/// The time limit of a refused start.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A server whose output goes to a file.
struct Logged {
    child: Child,
    log: PathBuf,
}

impl Logged {
    fn start(data: &Path, umask: &str, logs: &Path) -> Self {
        let log = logs.join("log");
        let script = format!("umask {umask}; exec \"$0\" serve --listen 127.0.0.1:0 --data \"$1\"");
        let output = std::fs::File::create(&log).expect("a file");
        let child = Command::new("sh")
            .args(["-c", &script, BINARY])
            .arg(data)
            .env("ALDABA_RESERVE_BYTES", "65536")
            .env("ALDABA_LOW_SPACE_BYTES", "0")
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("the same file"))
            .stderr(output)
            .spawn()
            .expect("a shell");
        let server = Self { child, log };
        wait_until("the server listens", || server.said().contains("Aldaba listens"));
        server
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).expect("a log")
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().expect("it is there").permissions().mode() & 0o777
}

fn modes(folder: &Path) -> BTreeMap<String, u32> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries.map(|entry| (entry.file_name().into_string().expect("text"), mode(&entry.path()))).collect()
}

const FILES: [&str; 9] = [
    "aldaba.address",
    "aldaba.db",
    "aldaba.db-shm",
    "aldaba.db-wal",
    "aldaba.lock",
    "aldaba.reserve",
    "aldaba.watermark",
    "encryption.key",
    "jwt.secret",
];

#[test]
fn files_are_private_under_any_umask_and_an_open_folder_is_reported() {
    for umask in ["0000", "0022"] {
        let outer = tempfile::tempdir().expect("a folder");
        // As a volume or a StateDirectory has it.
        let data = outer.path().join("data");
        std::fs::create_dir(&data).expect("a folder");
        std::fs::set_permissions(&data, Permissions::from_mode(0o755)).expect("it is ours");
        let server = Logged::start(&data, umask, outer.path());
        wait_until("all files are there", || FILES.iter().all(|name| data.join(name).exists()));
        assert_eq!(modes(&data), FILES.map(|name| (name.to_owned(), 0o600)).into(), "umask {umask}");
        let said = server.said();
        assert!(said.contains("the data folder is open to others") && said.contains("0755"), "{said}");
    }
}

#[test]
fn files_that_a_former_version_left_open_are_closed_at_the_next_start() {
    let outer = tempfile::tempdir().expect("a folder");
    let data = outer.path().join("data");
    drop(Logged::start(&data, "0022", outer.path()));
    assert_eq!(mode(&data), 0o700);
    for name in FILES {
        std::fs::set_permissions(data.join(name), Permissions::from_mode(0o644)).expect("it is ours");
    }
    let server = Logged::start(&data, "0022", outer.path());
    assert_eq!(modes(&data), FILES.map(|name| (name.to_owned(), 0o600)).into());
    assert!(!server.said().contains("open to others"), "{}", server.said());
}

/// Names, modes and contents. SQLite creates the index of the log at every start.
type Snapshot = BTreeMap<String, (u32, Vec<u8>)>;

fn snapshot(folder: &Path) -> Option<Snapshot> {
    folder.exists().then(|| {
        let content = |name: &str| match name {
            "aldaba.db-shm" => Vec::new(),
            _ => std::fs::read(folder.join(name)).expect("it can be read"),
        };
        modes(folder).into_iter().map(|(name, mode)| (name.clone(), (mode, content(&name)))).collect()
    })
}

/// Runs a start that is expected to fail.
fn serve(data: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(["serve", "--data"]).arg(data).args(arguments);
    if !arguments.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    command
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the server starts");
    let ended = wait_at_most(WAIT_TIMEOUT, || child.try_wait().expect("a child").is_some());
    if !ended {
        child.kill().expect("it is ours");
    }
    let output = child.wait_with_output().expect("its output");
    assert!(ended, "it was not refused: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn refused(data: &Path, arguments: &[&str], variables: &[(&str, &str)], why: &str) {
    let before = snapshot(data);
    let output = serve(data, arguments, variables);
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success() && said.contains(why), "expected {why:?}: {said}");
    assert_eq!(snapshot(data), before, "{why}: the folder has changed");
}

/// Waits until a newly started server has finished its first writes.
fn wait_until_quiet(data: &Path) {
    let mut before = snapshot(data);
    for _ in 0..WAIT_TIMEOUT.as_millis() / 500 {
        // In this time nothing must change.
        std::thread::sleep(Duration::from_millis(500));
        let now = snapshot(data);
        if now == before {
            return;
        }
        before = now;
    }
    panic!("the server goes on writing");
}

/// A folder with messages in it, as `kill -9` leaves it.
fn killed() -> (tempfile::TempDir, PathBuf) {
    let outer = tempfile::tempdir().expect("a folder");
    let data = outer.path().join("data");
    let token = token(&data);
    let server = Server::start(&data, free_address());
    let mut client = Client::connect(server.address, &token).expect("the server listens");
    for number in 0..10 {
        let body = format!(r#"{{"name": "a", "uid": "app-{number}"}}"#);
        assert_eq!(client.post("/app", None, &body).expect("an answer").status, 201);
    }
    server.kill();
    (outer, data)
}

fn applications(data: &Path, server: &Server) -> usize {
    let mut client = Client::connect(server.address, &token(data)).expect("the server listens");
    let page = client.get("/app?limit=250").expect("an answer").body;
    page["data"].as_array().expect("a list").len()
}

#[test]
fn a_start_that_fails_changes_nothing_in_a_folder_that_is_in_use() {
    let (outer, data) = killed();
    let missing = outer.path().join("missing.pem").display().to_string();
    let other_key = "11".repeat(32);
    let move_away = |name: &str, why: &str, accepted: &[&str]| {
        let moved = outer.path().join(name);
        std::fs::rename(data.join(name), &moved).expect("it is there");
        refused(&data, accepted, &[], why);
        std::fs::rename(moved, data.join(name)).expect("it goes back");
    };
    move_away("encryption.key", "which is missing: put the file back", &[]);
    refused(&data, &[], &[("ALDABA_ENCRYPTION_KEY", &other_key)], "encrypted with another key");
    refused(&data, &[], &[("ALDABA_CA_FILE", &missing)], "ca_file");
    refused(&data, &[], &[("ALDABA_WIRE_PROFILE", "no-such-profile")], "a built-in wire profile");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("it has one").to_string();
    refused(&data, &["--listen", &address], &[], "cannot listen");
    let secret = std::fs::read(data.join("jwt.secret")).expect("it is there");
    std::fs::write(data.join("jwt.secret"), "half").expect("it can be written");
    refused(&data, &[], &[], "damaged");
    std::fs::write(data.join("jwt.secret"), secret).expect("it can be written");
    // The log and the database do not fit together any more.
    move_away("aldaba.db", "has gone back", &[]);
    move_away("aldaba.db-wal", "has gone back", &[]);
    // Its keys are given, so that it has none in the folder; another one is started without them.
    for name in ["encryption.key", "jwt.secret"] {
        std::fs::copy(data.join(name), outer.path().join(name)).expect("a copy");
    }
    let server = Server::start(&data, free_address());
    for name in ["encryption.key", "jwt.secret"] {
        std::fs::remove_file(data.join(name)).expect("it is there");
    }
    wait_until_quiet(&data);
    refused(&data, &[], &[], "in use by another Aldaba");
    for name in ["encryption.key", "jwt.secret"] {
        std::fs::rename(outer.path().join(name), data.join(name)).expect("it goes back");
    }
    assert_eq!(applications(&data, &server), 10, "and what is in it is still there");
}

#[test]
fn a_start_that_fails_makes_no_folder_and_no_files() {
    let outer = tempfile::tempdir().expect("a folder");
    let missing = outer.path().join("missing.pem").display().to_string();
    for data in [outer.path().join("a/b"), outer.path().to_owned()] {
        refused(&data, &[], &[("ALDABA_CA_FILE", &missing)], "ca_file");
        refused(&data, &[], &[("ALDABA_WIRE_PROFILE", "no-such-profile")], "a built-in wire profile");
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = taken.local_addr().expect("it has one").to_string();
        refused(&data, &["--listen", &address], &[], "cannot listen");
    }
    // The folder can be used; the key that lies in it says that there was a database.
    std::fs::write(outer.path().join("encryption.key"), "22".repeat(32)).expect("it can be written");
    refused(outer.path(), &[], &[], "there is no database beside the key");
}

#[test]
fn a_database_of_a_newer_version_is_left_as_it_is() {
    let (_outer, data) = killed();
    let file = rusqlite::Connection::open(data.join("aldaba.db")).expect("a database");
    file.pragma_update(None, "user_version", 1000).expect("it can be written");
    drop(file);
    refused(&data, &[], &[], "newer version");
}

#[test]
fn after_kill_9_a_lost_log_is_refused_until_older_data_is_accepted() {
    let (_outer, data) = killed();
    let log = data.join("aldaba.db-wal");
    let whole = std::fs::read(&log).expect("a log");
    std::fs::write(&log, &whole[..whole.len() / 2]).expect("it can be written");
    refused(&data, &[], &[], "has gone back");
    std::fs::write(&log, "").expect("it can be written");
    refused(&data, &[], &[], "has gone back");
    std::fs::remove_file(&log).expect("it is there");
    refused(&data, &[], &[], "`aldaba serve --accept-older-data`, once");
    std::fs::write(&log, whole).expect("it can be written");
    let server = Server::start(&data, free_address());
    assert_eq!(applications(&data, &server), 10, "the right log has everything");
    server.kill();
    // Everything again, and this time the log stays lost.
    std::fs::remove_file(&log).expect("a log");
    refused(&data, &[], &[], "has gone back");
}

#[test]
fn older_data_is_accepted_once_and_is_the_truth_from_then_on() {
    let (_outer, data) = killed();
    std::fs::remove_file(data.join("aldaba.db-wal")).expect("a log");
    refused(&data, &[], &[], "has gone back");
    let server = Server::start_arguments(&data, free_address(), &["--accept-older-data"]);
    assert_eq!(applications(&data, &server), 0);
    assert_eq!(server.stop(), Some(0));
    let server = Server::start(&data, free_address());
    assert_eq!(applications(&data, &server), 0);
}

#[test]
fn a_clean_stop_leaves_no_log_and_starts_again() {
    let (_outer, data) = killed();
    assert_eq!(Server::start(&data, free_address()).stop(), Some(0));
    assert!(!data.join("aldaba.db-wal").exists());
    let server = Server::start(&data, free_address());
    assert_eq!(applications(&data, &server), 10);
}
