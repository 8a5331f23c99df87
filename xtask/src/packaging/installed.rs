//! The package in a throwaway root: installed, used, upgraded, removed, installed again and purged.

use super::VERSION;
use super::checks::the_unit_is_valid;
use super::throwaway_root::ThrowawayRoot;
use crate::background::{Background, PATIENT, url};
use crate::run::{TaskResult, read};
use crate::tools;
use std::fs;
use std::path::Path;
use std::process::Command;

const DATA: &str = "/var/lib/aldaba";
const SETTINGS: &str = "/etc/aldaba/aldaba.toml";
/// Where systemd finds that the unit starts with the machine.
const ENABLED: &str = "/etc/systemd/system/multi-user.target.wants/aldaba.service";
/// What an administrator has written.
const OWN_LINE: &str = "retention_days = 7";

pub(super) fn check(root: &ThrowawayRoot, older: &Path, newer: &Path, symbols: &Path) -> TaskResult {
    if Command::new("curl").arg("--version").output().is_err() {
        tools::install(&["curl"])?;
    }
    let [older, newer, symbols] = [root.take(older)?, root.take(newer)?, root.take(symbols)?];
    let installed = Installed { root };
    installed.dpkg(&["--install", &older])?;
    installed.installing_makes_a_user_and_a_folder_that_nobody_else_can_read()?;
    the_unit_is_valid(root)?;
    let before = installed.a_server_of_the_user_accepts()?;
    installed.upgrading_keeps_data_keys_and_settings(&before, &newer, &symbols)?;
    installed.removing_keeps_data_and_settings_and_installing_again_finds_them(&before, &newer)?;
    installed.purging_leaves_nothing()
}

struct Installed<'a> {
    root: &'a ThrowawayRoot,
}

/// What a server has been told, and how its keys are.
struct Use {
    token: String,
    app: String,
    keys: String,
    user: String,
}

impl Installed<'_> {
    fn installing_makes_a_user_and_a_folder_that_nobody_else_can_read(&self) -> TaskResult {
        let stat = |path| self.root.read(&["stat", "--format=%U:%G %a", path]);
        for (path, expected) in [
            (DATA, "aldaba:aldaba 700"),
            (SETTINGS, "root:aldaba 640"),
            ("/etc/aldaba/aldaba.env", "root:root 600"),
            ("/usr/bin/aldaba", "root:root 755"),
            ("/usr/share/doc/aldaba/operations.md", "root:root 644"),
            ("/usr/share/doc/aldaba/copyright", "root:root 644"),
        ] {
            same(path, stat(path)?.trim(), expected)?;
        }
        same(
            "the shell of the user",
            self.root.read(&["getent", "passwd", "aldaba"])?.trim().rsplit(':').next().unwrap_or_default(),
            "/usr/sbin/nologin",
        )?;
        self.expect(ENABLED, true)?;
        same("dpkg --verify", &self.root.read(&["dpkg", "--verify", "aldaba"])?, "")?;
        done("installing makes a user, and a folder that nobody else can read")
    }

    fn a_server_of_the_user_accepts(&self) -> Result<Use, String> {
        let (server, url) = self.serve()?;
        let token = self.root.read(&self.as_user(&["aldaba", "token", "create", "--config", SETTINGS]))?;
        let token = token.trim().to_owned();
        let made = curl(&url, &token, "/app", &["--json", r#"{"name": "It stays", "uid": "it-stays"}"#])?;
        if !made.contains("it-stays") {
            return Err(format!("the installed server does not accept: {made}"));
        }
        let health = self.root.read(&self.as_user(&["aldaba", "health", "--config", SETTINGS]))?;
        same("aldaba health", health.trim(), "ready")?;
        drop(server);
        let user = self.root.read(&["id", "aldaba"])?;
        done("the installed server accepts, as its own user")?;
        Ok(Use { token, app: made, keys: self.keys()?, user })
    }

    fn upgrading_keeps_data_keys_and_settings(&self, before: &Use, newer: &str, symbols: &str) -> TaskResult {
        let settings = self.root.path(SETTINGS);
        let text = fs::read_to_string(&settings).map_err(|error| format!("{SETTINGS}: {error}"))?;
        fs::write(&settings, format!("{text}\n{OWN_LINE}\n"))
            .map_err(|error| format!("{SETTINGS}: {error}"))?;
        self.root.read(&["systemctl", "--quiet", "disable", "aldaba.service"])?;
        self.dpkg(&["--install", newer, symbols])?;
        let version = self.root.read(&["dpkg-query", "--show", "--showformat=${Version}", "aldaba"])?;
        same("the version", &version, VERSION)?;
        same("the user", &self.root.read(&["id", "aldaba"])?, &before.user)?;
        self.expect(ENABLED, false)?;
        self.still_there(before)?;
        done("an upgrade keeps data, keys, settings, the user, and a unit disabled that was")
    }

    fn removing_keeps_data_and_settings_and_installing_again_finds_them(
        &self,
        before: &Use,
        newer: &str,
    ) -> TaskResult {
        let said = self.dpkg(&["--remove", "aldaba-dbgsym", "aldaba"])?;
        if !said.contains("stays, with the database and its keys") {
            return Err(format!("a removal does not say what stays:\n{said}"));
        }
        self.expect("/usr/bin/aldaba", false)?;
        self.expect("/usr/lib/systemd/system/aldaba.service", false)?;
        self.expect(SETTINGS, true)?;
        same("the keys", &self.keys()?, &before.keys)?;
        self.dpkg(&["--install", newer])?;
        self.still_there(before)?;
        done("a removal keeps data, keys and settings, and another installation finds them")
    }

    fn purging_leaves_nothing(&self) -> TaskResult {
        self.dpkg(&["--purge", "aldaba"])?;
        for path in [DATA, "/etc/aldaba", "/usr/share/doc/aldaba", ENABLED] {
            self.expect(path, false)?;
        }
        if self.root.output(&["getent", "passwd", "aldaba"])?.status.success() {
            return Err("the user is still there after a purge".into());
        }
        same("dpkg --audit", &self.root.read(&["dpkg", "--audit"])?, "")?;
        done("a purge leaves no data, settings or user")
    }

    /// The token works, and names the same application; the keys and the administrator's line are the same.
    fn still_there(&self, before: &Use) -> TaskResult {
        same("the keys", &self.keys()?, &before.keys)?;
        let settings = self.root.path(SETTINGS);
        let text = fs::read_to_string(settings).map_err(|error| format!("{SETTINGS}: {error}"))?;
        if !text.lines().any(|line| line == OWN_LINE) {
            return Err(format!("{SETTINGS} has lost the line `{OWN_LINE}`"));
        }
        let stat = self.root.read(&["stat", "--format=%U:%G %a", SETTINGS])?;
        same(SETTINGS, stat.trim(), "root:aldaba 640")?;
        let (_server, url) = self.serve()?;
        same("the application", &curl(&url, &before.token, "/app/it-stays", &[])?, &before.app)
    }

    fn keys(&self) -> Result<String, String> {
        let [encryption, jwt] = ["encryption.key", "jwt.secret"].map(|key| format!("{DATA}/{key}"));
        self.root.read(&["sha256sum", &encryption, &jwt])
    }

    /// Starts the server as the unit does, at a free port. Dropping the process stops it as systemd does.
    fn serve(&self) -> Result<(Background, String), String> {
        let serve = ["aldaba", "serve", "--config", SETTINGS, "--listen", "127.0.0.1:0"];
        let mut command = self.root.command(&self.as_user(&serve));
        command.env("ALDABA_LOG", "error").env(PATIENT.0, PATIENT.1);
        let mut server = Background::start(command)?;
        let printed = server.wait_for("token create")?;
        let url = url(printed).ok_or(format!("the server printed no address: {printed}"))?;
        Ok((server, url))
    }

    fn as_user<'a>(&self, words: &[&'a str]) -> Vec<&'a str> {
        [&["setpriv", "--reuid=aldaba", "--regid=aldaba", "--clear-groups", "--"], words].concat()
    }

    /// Runs dpkg; returns all that it and the scripts of the package say.
    fn dpkg(&self, words: &[&str]) -> Result<String, String> {
        let done = self.root.output(&[&["dpkg"], words].concat())?;
        let said =
            [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        if done.status.success() { Ok(said) } else { Err(format!("dpkg {}: {said}", words.join(" "))) }
    }

    fn expect(&self, path: &str, is_there: bool) -> TaskResult {
        // A link to a file that is not there is there.
        if fs::symlink_metadata(self.root.path(path)).is_ok() == is_there {
            return Ok(());
        }
        Err(format!("{path} {}", if is_there { "is missing" } else { "is still there" }))
    }
}

fn curl(url: &str, token: &str, path: &str, more: &[&str]) -> Result<String, String> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail-with-body", "--header"]);
    curl.arg(format!("Authorization: Bearer {token}")).args(more).arg(format!("{url}/api/v1{path}"));
    read(&mut curl)
}

fn same(what: &str, found: &str, expected: &str) -> TaskResult {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: expected `{expected}`, found `{found}`"))
}

fn done(claim: &str) -> TaskResult {
    println!("packages: {claim} ... ok");
    Ok(())
}
