//! The samples as processes.

use crate::process::{Process, free_address};
use crate::sender::{BRAND, SECRET, Sender, Signing};
use std::env;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long a copy waits in these tests for the end of work on the same event. The samples' own default is longer.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    Express,
    Flask,
    Axum,
    Hono,
    Edge,
}

/// What a sample is told by its environment.
#[derive(Clone, Debug, Default)]
pub struct Settings(Vec<(&'static str, String)>);

/// A sample that runs.
#[derive(Debug)]
pub struct Running {
    sample: Sample,
    settings: Settings,
    address: SocketAddr,
    log: PathBuf,
    // None after it was killed.
    process: Option<Process>,
}

impl Sample {
    /// Those whose mark and work are in one transaction.
    pub const TRANSACTIONAL: [Self; 3] = [Self::Express, Self::Flask, Self::Axum];

    /// Those whose mark is a key beside the work.
    pub const BY_KEY: [Self; 2] = [Self::Hono, Self::Edge];

    pub fn marks_by_key(self) -> bool {
        Self::BY_KEY.contains(&self)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Express => "express-receiver",
            Self::Flask => "flask-receiver",
            Self::Axum => "axum-shop",
            Self::Hono => "hono-receiver",
            Self::Edge => "edge-worker",
        }
    }

    fn command(self) -> Command {
        let mut command = Command::new(match self {
            Self::Express | Self::Hono | Self::Edge => program("NODE_BIN"),
            Self::Flask => program("FLASK_PYTHON"),
            Self::Axum => program("AXUM_SHOP_BIN"),
        });
        match self {
            Self::Express => command.arg("server.mjs"),
            Self::Hono | Self::Edge => command.arg("node.mjs"),
            Self::Flask => command.arg("app.py").env("PYTHONDONTWRITEBYTECODE", "1"),
            Self::Axum => &mut command,
        };
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(self.name()));
        command
    }
}

/// Where a program is that these tests do not bring with them.
pub(crate) fn program(variable: &str) -> OsString {
    env::var_os(variable)
        .unwrap_or_else(|| panic!("{variable} is not set: run `cargo xtask examples` at the root"))
}

impl Settings {
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.push((name, value.into()));
        self
    }
}

impl Running {
    pub async fn start(sample: Sample, signing: Signing, settings: Settings, folder: &Path) -> Self {
        let mut running = Self::stopped(sample, signing, settings, folder);
        running.start_again().await;
        running
    }

    /// Starts it with settings with which it must not run; what it says when it ends. What is set here comes in the
    /// place of what all samples are told.
    pub async fn refuse(sample: Sample, signing: Signing, settings: Settings, folder: &Path) -> String {
        let stopped = Self::stopped(sample, signing, Settings::default(), folder);
        let mut command = stopped.command();
        command.envs(settings.0);
        Process::refuse(command, &stopped.log).await
    }

    fn stopped(sample: Sample, signing: Signing, settings: Settings, folder: &Path) -> Self {
        let address = free_address();
        let mut settings = settings
            .with("WEBHOOK_SECRET", SECRET)
            .with("WAIT_TIMEOUT_SECONDS", WAIT_TIMEOUT.as_secs().to_string())
            .with("PORT", address.port().to_string());
        if signing == Signing::Branded {
            settings = settings.with("WEBHOOK_BRAND", BRAND);
        }
        let log = folder.join(format!("{}-{}.log", sample.name(), address.port()));
        Self { sample, settings, address, log, process: None }
    }

    /// With the same settings, at the same address.
    pub async fn start_again(&mut self) {
        self.process = Some(Process::start(self.command(), &self.log, self.address).await);
    }

    fn command(&self) -> Command {
        let mut command = self.sample.command();
        command.envs(self.settings.0.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Ends it as `kill -9` does.
    pub fn kill(&mut self) {
        self.process = None;
    }

    pub fn sender(&self, signing: Signing) -> Sender {
        Sender { address: self.address, signing }
    }

    pub fn url(&self) -> String {
        format!("http://{}/webhooks", self.address)
    }

    /// What it has printed.
    pub fn log(&self) -> String {
        self.process.as_ref().map(Process::log).unwrap_or_default()
    }
}
