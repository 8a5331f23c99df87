//! The container image: the folder that it is built in, and its test on a Debian that is made here.

use super::binary::Stripped;
use super::throwaway_root::pristine;
use super::{VERSION, guide, part};
use crate::background::Folder;
use crate::run::{TaskResult, read, root, show};
use crate::tools;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that build images, the preferred one first.
const BUILDERS: [&str; 3] = ["podman", "docker", "buildah"];

/// Puts everything that the image is built from into a folder.
pub(super) fn prepare(stripped: &Stripped, folder: &Path) -> Result<PathBuf, String> {
    let copy = |source: &Path, name: &str, mode: &str| {
        let target = folder.join(name);
        read(Command::new("install").args(["-D", "--mode", mode]).arg(source).arg(target)).map(drop)
    };
    copy(&stripped.program, "aldaba", "0755")?;
    for name in ["Containerfile", "compose.yaml", "aldaba.env"] {
        copy(&part("container").join(name), name, "0644")?;
    }
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root().join(name), &format!("licences/{name}"), "0644")?;
    }
    Ok(folder.to_owned())
}

/// Builds the image; returns the program that has built it.
pub(super) fn build(context: &Path, base: Option<&str>) -> Result<&'static str, String> {
    let works = |name: &&str| Command::new(name).arg("info").output().is_ok_and(|done| done.status.success());
    let builder = BUILDERS.into_iter().find(works).ok_or_else(|| {
        format!(
            "none of {} works here; install podman, or build {} elsewhere",
            BUILDERS.join(", "),
            context.display()
        )
    })?;
    let mut build = Command::new(builder);
    build.args(["build", "--file"]).arg(context.join("Containerfile"));
    if builder != "docker" {
        // The other format has no health check.
        build.args(["--format", "docker"]);
    }
    build.args(["--tag", "aldaba", "--tag", &format!("aldaba:{VERSION}")]);
    if let Some(base) = base {
        build.args(["--build-arg", &format!("BASE={base}")]);
    }
    show(build.arg(context))?;
    Ok(builder)
}

/// The image that is made of a Debian here, since no registry is needed then.
const BASE: &str = "localhost/aldaba-debian";
/// What the page calls the image, the container and the volume, and what the test calls them: it must not touch those of
/// the person who runs it.
const NAMES: [(&str, &str); 6] = [
    ("--tag aldaba ", "--tag aldaba-xtask "),
    ("--name aldaba ", "--name aldaba-xtask "),
    ("--publish 127.0.0.1:8071:8071", "--publish 127.0.0.1::8071"),
    ("--volume aldaba:", "--volume aldaba-xtask:"),
    (":/var/lib/aldaba aldaba\n", ":/var/lib/aldaba aldaba-xtask\n"),
    ("podman exec aldaba ", "podman exec aldaba-xtask "),
];

/// Builds the image, and runs the commands of docs/operations.md about it: then another container must find what the first has
/// stored.
pub(crate) fn check(server: &Path) -> TaskResult {
    if Command::new("podman").arg("--version").output().is_err() {
        tools::install(&["podman", "buildah", "crun"])?;
    }
    let folder = Folder::new()?;
    let context = root().join("target/package/container");
    prepare(&Stripped::of(server, &folder.0)?, &context)?;
    let import = "tar --create --directory \"$0\" . | podman import --quiet - \"$1\"";
    show(Command::new("sh").args(["-c", import]).arg(pristine()?).arg(BASE))?;
    drop(Container);
    let _container = Container;
    let mut commands = guide::of_container()?;
    for (of_page, own) in NAMES {
        if !commands.contains(of_page) {
            return Err(format!("docs/operations.md has no `{of_page}` about containers"));
        }
        commands = commands.replace(of_page, own);
    }
    let (build, run) = commands.split_once("podman run").ok_or("the page runs no container")?;
    let (build, run) = (
        build.replace("podman build", &format!("podman build --build-arg BASE={BASE}")),
        format!("podman run{run}"),
    );
    show(&mut script(&build))?;
    show(&mut script(&run))?;
    let made = within("aldaba token create --name 'a key' --scope read")?;
    if !made.starts_with("aldaba_") {
        return Err(format!("the container makes no key: {made}"));
    }
    if within("id --user")?.trim() != "8071" {
        return Err("the container runs as another user than its own".into());
    }
    show(&mut script("podman healthcheck run aldaba-xtask"))?;
    show(&mut script("podman stop --time 30 aldaba-xtask && podman rm aldaba-xtask"))?;
    show(&mut script(&run))?;
    let keys = within("aldaba token list")?;
    if !keys.contains("a key") {
        return Err(format!("another container does not find the key in the volume: {keys}"));
    }
    println!("the container runs as its user, is healthy, and another one finds its volume");
    Ok(())
}

/// What a command in the container prints.
fn within(command: &str) -> Result<String, String> {
    read(&mut script(&format!("podman exec aldaba-xtask {command}")))
}

fn script(script: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("set -euo pipefail\n{script}")]).current_dir(root());
    command
}

/// Container and volume, removed when dropped.
struct Container;

impl Drop for Container {
    fn drop(&mut self) {
        let _ = read(&mut script("podman rm --force aldaba-xtask; podman volume rm --force aldaba-xtask"));
    }
}
