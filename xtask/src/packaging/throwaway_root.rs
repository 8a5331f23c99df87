//! A small Debian in a folder, to install packages in. It goes when it is dropped.

use crate::background::Folder;
use crate::run::{TaskResult, read, root, show};
use crate::tools;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// What the package depends on, and the commands of docs/operations.md.
const INCLUDED: &str = "--include=adduser,curl,jq,sudo,systemd";

pub(super) struct ThrowawayRoot(Folder);

impl ThrowawayRoot {
    /// A copy of the folder that debootstrap makes once. It is beside it: a folder for temporary files may not allow devices.
    pub(super) fn new() -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let pristine = pristine()?;
        let name = format!("copy-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let copy = Folder(pristine.with_file_name(name));
        read(Command::new("cp").args(["--archive", "--reflink=auto"]).arg(&pristine).arg(&copy.0))?;
        Ok(Self(copy))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0.0
    }

    pub(super) fn path(&self, inside: &str) -> PathBuf {
        self.0.0.join(inside.trim_start_matches('/'))
    }

    /// A command within it.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("chroot");
        command.arg(&self.0.0).args(words).env_clear();
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
        command
    }

    /// What a command within it prints.
    pub(super) fn read(&self, words: &[&str]) -> Result<String, String> {
        read(&mut self.command(words))
    }

    /// The status and both outputs of a command within it.
    pub(super) fn output(&self, words: &[&str]) -> Result<Output, String> {
        self.command(words).output().map_err(|error| format!("{words:?}: {error}"))
    }

    /// Copies a file to root's home and returns its path within.
    pub(super) fn take(&self, file: &Path) -> Result<String, String> {
        let path = format!("/root/{}", file.file_name().unwrap_or_default().to_string_lossy());
        let target = self.path(&path);
        fs::copy(file, &target).map_err(|error| format!("{}: {error}", target.display()))?;
        Ok(path)
    }
}

/// The folder that is copied, for the release of Debian that this machine runs: the binary needs its C library.
pub(super) fn pristine() -> Result<PathBuf, String> {
    let release = "/etc/os-release";
    let text = fs::read_to_string(release).map_err(|error| format!("{release}: {error}"))?;
    let codename = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let codename = codename.ok_or("this machine runs no release of Debian with a name")?;
    let all = root().join("target/debian");
    let (folder, begun) = (all.join(codename), all.join(format!("{codename}-begun")));
    if folder.exists() {
        return Ok(folder);
    }
    if Command::new("debootstrap").arg("--version").output().is_err() {
        tools::install(&["debootstrap"])?;
    }
    if begun.exists() {
        fs::remove_dir_all(&begun).map_err(|error| format!("{}: {error}", begun.display()))?;
    }
    make(codename, &begun)?;
    fs::rename(&begun, &folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

fn make(codename: &str, folder: &Path) -> TaskResult {
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", INCLUDED, codename]).arg(folder);
    show(debootstrap.args(mirror()).stdout(Stdio::null()))
}

/// The server that this machine gets its packages from, if it says so.
fn mirror() -> Option<String> {
    let mut apt = Command::new("apt-get");
    apt.args(["indextargets", "--format", "$(SITE) $(COMPONENT)", "Created-By: Packages"]);
    let said = read(&mut apt).ok()?;
    let mut main = said.lines().filter_map(|line| line.strip_suffix(" main"));
    main.find(|site| site.starts_with("http") && !site.contains("security")).map(str::to_owned)
}
