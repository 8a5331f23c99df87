//! The container image: the folder that it is built in, and its test on a Debian that is made here.

use super::binary::Stripped;
use super::throwaway_root::pristine;
use super::{VERSION, guide, part};
use crate::background::Folder;
use crate::run::{TaskResult, read, root, show};
use crate::tools;
use std::fs;
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
/// What is built of it.
const IMAGE: &str = "localhost/aldaba-xtask";
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

/// The settings of podman: a runtime for control groups of both versions, and limits that need no right to raise them.
const SETTINGS: &str = "\
[engine]
runtime = \"runc\"
[containers]
default_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]
";

/// Builds the image, and runs the commands of docs/operations.md about it: then another container must find what the first has
/// stored.
pub(crate) fn check(server: &Path) -> TaskResult {
    let is_there = |program: &&str| Command::new(program).arg("--version").output().is_ok();
    if !["podman", "buildah", "runc"].iter().all(is_there) {
        tools::install(&["podman", "buildah", "runc"])?;
    }
    let podman = Podman::new()?;
    let context = root().join("target/package/container");
    prepare(&Stripped::of(server, &podman.folder.0)?, &context)?;
    let pristine = pristine()?;
    podman.show(&format!(
        "tar --create --directory '{}' . | podman import --quiet - {BASE}",
        pristine.display()
    ))?;
    podman.remove();
    let mut commands = guide::of_container()?;
    for (of_page, own) in NAMES {
        if !commands.contains(of_page) {
            return Err(format!("docs/operations.md has no `{of_page}` about containers"));
        }
        commands = commands.replace(of_page, own);
    }
    let (build, run) = commands.split_once("podman run").ok_or("the page runs no container")?;
    let run = format!("podman run{run}");
    podman.show(&build.replace("podman build", &format!("podman build --build-arg BASE={BASE}")))?;
    podman.show(&run)?;
    let made = podman.within("aldaba token create --name 'a key' --scope read")?;
    if !made.starts_with("aldaba_") {
        return Err(format!("the container makes no key: {made}"));
    }
    if podman.within("id --user")?.trim() != "8071" {
        return Err("the container runs as another user than its own".into());
    }
    podman.show("podman healthcheck run aldaba-xtask")?;
    podman.show("podman stop --time 30 aldaba-xtask && podman rm aldaba-xtask")?;
    podman.show(&run)?;
    let keys = podman.within("aldaba token list")?;
    if !keys.contains("a key") {
        return Err(format!("another container does not find the key in the volume: {keys}"));
    }
    podman.remove();
    podman.check_compose(&context)?;
    println!(
        "the container runs as its user, is healthy, and another one finds its volume; so does the one of compose"
    );
    Ok(())
}

/// What the test changes in compose.yaml: nothing of the person's, a free port, and no right to raise limits.
const OF_COMPOSE: [(&str, &str); 3] = [
    ("image: aldaba\n", "image: localhost/aldaba-xtask\n"),
    ("\"127.0.0.1:8071:8071\"", "\"127.0.0.1::8071\""),
    ("nofile: 65536\n", "nofile: 1024\n      nproc: 1024\n"),
];

/// Podman with its settings. Container and volume are removed when it is dropped.
struct Podman {
    folder: Folder,
}

impl Podman {
    fn new() -> Result<Self, String> {
        let folder = Folder::new()?;
        let settings = folder.0.join("containers.conf");
        fs::write(&settings, SETTINGS).map_err(|error| format!("{}: {error}", settings.display()))?;
        Ok(Self { folder })
    }

    fn show(&self, script: &str) -> TaskResult {
        show(&mut self.script(script))
    }

    /// What a command in the container prints.
    fn within(&self, command: &str) -> Result<String, String> {
        read(&mut self.script(&format!("podman exec aldaba-xtask {command}")))
    }

    /// Starts the image by compose.yaml: with a root folder that is read only, and without capabilities.
    fn check_compose(&self, context: &Path) -> TaskResult {
        let python = tools::environment("podman-compose", &part("container/podman-compose.txt"))?;
        let failed = |error: std::io::Error| format!("compose.yaml: {error}");
        let mut text = fs::read_to_string(context.join("compose.yaml")).map_err(failed)?;
        for (of_file, own) in OF_COMPOSE {
            if !text.contains(of_file) {
                return Err(format!("compose.yaml has no `{of_file}`"));
            }
            text = text.replace(of_file, own);
        }
        let file = self.folder.0.join("compose.yaml");
        fs::write(&file, text).map_err(failed)?;
        fs::copy(context.join("aldaba.env"), self.folder.0.join("aldaba.env")).map_err(failed)?;
        let program = python.with_file_name("podman-compose");
        let compose = format!("{} --project-name aldaba-xtask --file {}", program.display(), file.display());
        self.show(&format!("{compose} up --no-build --detach"))?;
        let healthy = format!(
            "for _ in $(seq 60); do {compose} exec -T aldaba aldaba health && exit 0; sleep 1; done; exit 1"
        );
        let outcome = self.show(&healthy);
        self.show(&format!("{compose} down --volumes"))?;
        outcome
    }

    fn remove(&self) {
        let _ =
            read(&mut self.script("podman rm --force aldaba-xtask; podman volume rm --force aldaba-xtask"));
    }

    fn script(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("set -euo pipefail\n{script}")]).current_dir(root());
        command.env("CONTAINERS_CONF", self.folder.0.join("containers.conf"));
        command
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        self.remove();
        let _ = read(&mut self.script(&format!("podman rmi --force {IMAGE} {BASE}")));
    }
}
