//! A throwaway Debian with its own systemd, processes and network, in namespaces of this machine: what is installed there
//! runs as on a machine of its own, service and sandbox included.

use super::throwaway_root::ThrowawayRoot;
use crate::run::read;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Mounts what systemd needs, and becomes it. Devices are those of this machine: a folder may not allow new ones. `chroot` would not
/// do: within one there are no user namespaces, which sandboxes of services need.
const BOOT: &str = r#"
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for folder in run tmp; do mount -t tmpfs tmpfs $folder; done
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
touch dev/console
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs tmpfs dev/shm
ln -s /proc/self/fd dev/fd
mkdir run/outside
pivot_root . run/outside
cd /
umount --lazy run/outside
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=multi-user.target
"#;

/// How often the machine is asked whether it runs, and how many times.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
const MAX_LOOKS: usize = 600;

pub(super) struct Machine<'a> {
    /// It must stay while the machine runs.
    _root: &'a ThrowawayRoot,
    /// The parent of its first process, which dies with it, and so everything within.
    namespaces: Child,
    _group: ControlGroup,
    /// The number of its first process on this machine.
    systemd: String,
}

impl<'a> Machine<'a> {
    /// Why there can be no machine within this one, if there cannot.
    pub(super) fn obstacle() -> Option<String> {
        let mut namespaces = Command::new("unshare");
        namespaces.args(NAMESPACES).args([
            "sh",
            "-c",
            "mount --make-rprivate / && mount -t tmpfs tmpfs /mnt",
        ]);
        match read(&mut namespaces) {
            Err(why) => Some(why),
            Ok(_) => hierarchy().is_none().then(|| "there are no control groups of version 2".to_owned()),
        }
    }

    /// Starts it and waits until it has started everything that it starts by itself.
    pub(super) fn boot(root: &'a ThrowawayRoot) -> Result<Self, String> {
        let group = ControlGroup::new()?;
        // An empty file: a number is made at the start. None would mean a first boot, which asks for settings.
        let id = root.path("/etc/machine-id");
        fs::write(&id, "").map_err(|error| format!("{}: {error}", id.display()))?;
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"echo $$ > "$0/cgroup.procs" && exec unshare "$@""#])
            .arg(&group.0)
            .args(NAMESPACES);
        command.args(["sh", "-c", BOOT, "sh"]).arg(root.folder()).stdin(Stdio::null()).stdout(Stdio::null());
        let namespaces = command.spawn().map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let mut machine = Self { _root: root, namespaces, _group: group, systemd: String::new() };
        let parent = machine.namespaces.id();
        machine.systemd = wait("its first process", || child_of(parent))?;
        let runs = || {
            let said = machine.script("systemctl is-system-running || true").output().ok()?;
            ["running\n", "degraded\n"].contains(&&*String::from_utf8_lossy(&said.stdout)).then_some(())
        };
        wait("its start", runs)?;
        Ok(machine)
    }

    /// A script within it, as root in root's home.
    pub(super) fn script(&self, script: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.systemd, "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup"]);
        command.args(["bash", "-c", &format!("cd\nset -euo pipefail\n{script}")]);
        command.env_clear().env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("HOME", "/root").env("LC_ALL", "C.UTF-8").env("DEBIAN_FRONTEND", "noninteractive");
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        let _ = self.namespaces.kill();
        let _ = self.namespaces.wait();
    }
}

/// The group of its processes, in which its systemd makes more.
struct ControlGroup(PathBuf);

impl ControlGroup {
    fn new() -> Result<Self, String> {
        let all = hierarchy().ok_or("there are no control groups of version 2")?;
        let group = all.join(format!("aldaba-xtask-{}", std::process::id()));
        fs::create_dir_all(&group).map_err(|error| format!("{}: {error}", group.display()))?;
        Ok(Self(group))
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // The kernel takes a moment to end the processes; a group with one cannot be removed.
        let _ = wait("the end of its processes", || {
            let _ = Command::new("find")
                .arg(&self.0)
                .args(["-depth", "-type", "d", "-delete"])
                .stderr(Stdio::null())
                .status();
            (!self.0.exists()).then_some(())
        });
    }
}

/// Where the control groups of version 2 are, alone or beside those of version 1.
fn hierarchy() -> Option<PathBuf> {
    let places = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
    places.into_iter().find(|place| place.join("cgroup.controllers").exists())
}

fn child_of(process: u32) -> Option<String> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
    children.split_whitespace().next().map(str::to_owned)
}

/// Asks again and again until there is an answer.
pub(super) fn wait<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> Result<T, String> {
    for _ in 0..MAX_LOOKS {
        match ask() {
            Some(answer) => return Ok(answer),
            None => std::thread::sleep(LOOK_INTERVAL),
        }
    }
    Err(format!("waited in vain for {what}"))
}

const NAMESPACES: [&str; 8] =
    ["--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--fork", "--kill-child"];
