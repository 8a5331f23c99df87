use crate::process::{Running, free_port, wait_until_open};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// Where Debian puts the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// Whom it runs as where the tests run as root, which it refuses.
const USER: &str = "postgres";

/// It need not survive a loss of power: its crashes here are those of a process.
const SETTINGS: [&str; 6] = [
    "fsync=off",
    "max_connections=300",
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "shared_buffers=64MB",
    "deadlock_timeout=200ms",
];

/// A PostgreSQL server.
#[derive(Debug)]
pub struct Postgres {
    // `None` between a crash and the next start.
    running: Mutex<Option<Running>>,
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    databases: AtomicUsize,
}

impl Postgres {
    /// A server of its own, for tests that do it harm.
    pub fn start() -> Self {
        let programs = programs();
        let folder = folder();
        let data = folder.join("data");
        let mut initdb = Command::new(programs.join("initdb"));
        initdb.args([
            "--no-sync",
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
        ]);
        initdb.arg("--pgdata").arg(&data).current_dir(&folder);
        if let Some(user) = user() {
            use std::os::unix::process::CommandExt;
            initdb.uid(user);
        }
        let made = initdb.output().expect("initdb starts");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let server = Self {
            running: Mutex::new(None),
            programs,
            folder,
            port: free_port(),
            databases: AtomicUsize::new(0),
        };
        server.restart();
        server
    }

    /// The server that all tests of this process share.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().expect("no test has panicked here");
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    /// The address of an empty database that nobody else has.
    pub fn database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let port = self.port.to_string();
        let mut createdb = Command::new(self.programs.join("createdb"));
        createdb.args(["--host=127.0.0.1", "--username=postgres", "--port", &port, &name]);
        let made = createdb.output().expect("createdb starts");
        assert!(made.status.success(), "createdb: {}", String::from_utf8_lossy(&made.stderr));
        format!("postgres://postgres@127.0.0.1:{port}/{name}")
    }

    /// Ends it as a crash would.
    pub fn kill(&self) {
        if let Some(running) = self.running.lock().expect("no test has panicked here").take() {
            running.crash();
        }
    }

    /// It stands still until it is resumed: connections stay open, new ones are taken by the system, and nothing answers.
    pub fn pause(&self) {
        self.on_running(Running::pause_all);
    }

    pub fn resume(&self) {
        self.on_running(Running::resume_all);
    }

    fn on_running(&self, what: impl FnOnce(&Running)) {
        what(self.running.lock().expect("no test has panicked here").as_ref().expect("it is running"));
    }

    /// Starts it again on the same port, with what it had.
    pub fn restart(&self) {
        let mut running = self.running.lock().expect("no test has panicked here");
        assert!(running.is_none(), "it is running");
        let port = self.port.to_string();
        let mut arguments = vec!["-D", "data", "-p", &port];
        for setting in SETTINGS {
            arguments.extend(["-c", setting]);
        }
        *running = Some(Running::start(user(), &self.folder, &self.programs.join("postgres"), &arguments));
        wait_until_open(self.port, &self.folder);
        self.wait_until_ready();
    }

    /// Starts it again as a standby of nobody: it answers, and does not write until it is promoted (`pg_promote()`).
    pub fn restart_as_standby(&self) {
        let signal = self.folder.join("data/standby.signal");
        fs::write(&signal, "").expect("the folder is ours");
        if let Some(user) = user() {
            chown(&signal, Some(user), None).expect("root may give a file away");
        }
        self.restart();
    }

    fn wait_until_ready(&self) {
        let port = self.port.to_string();
        let mut ready = Command::new(self.programs.join("pg_isready"));
        ready.args(["--quiet", "--timeout=30", "--host=127.0.0.1", "--port", &port]);
        while !ready.status().expect("pg_isready starts").success() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        match self.running.get_mut().ok().and_then(Option::take) {
            Some(running) => running.end(),
            None => drop(fs::remove_dir_all(&self.folder)),
        }
    }
}

fn programs() -> PathBuf {
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let newest =
        versions.map(|version| version.path().join("bin")).filter(|bin| bin.join("initdb").exists()).max();
    newest.expect("PostgreSQL is not installed: run `cargo xtask servers`")
}

/// Short, because it may be shown in a path; owned by whom the server runs as.
fn folder() -> PathBuf {
    let folder = tempfile::Builder::new().prefix("aldaba-postgres-").tempdir().expect("a folder").keep();
    if let Some(user) = user() {
        chown(&folder, Some(user), None).expect("root may give a folder away");
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("it is ours");
    folder
}

/// The number of the user to run as; `None`: the one who runs the tests.
fn user() -> Option<u32> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string(Path::new("/etc/passwd")).expect("there is a list of users");
    let line = users.lines().find(|line| line.split(':').next() == Some(USER));
    let number = line.and_then(|line| line.split(':').nth(2)).and_then(|number| number.parse().ok());
    Some(number.expect("there is no user `postgres`: run `cargo xtask servers`"))
}
