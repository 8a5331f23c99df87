use crate::process::{self, Running, free_port, wait_until_open};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;
use std::{fs, io};

const PROGRAM: &str = "/usr/bin/redis-server";

/// A Redis server that has on disk whatever it has acknowledged.
#[derive(Debug)]
pub struct Redis {
    // `None` between a crash and the next start.
    running: Mutex<Option<Running>>,
    folder: PathBuf,
    port: u16,
    settings: Vec<String>,
}

impl Redis {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// With more settings, as the command line takes them: `["--cluster-enabled", "yes"]`.
    pub fn start_with(settings: &[&str]) -> Self {
        assert!(Path::new(PROGRAM).exists(), "Redis is not installed: run `cargo xtask servers`");
        let folder = tempfile::Builder::new().prefix("aldaba-redis-").tempdir().expect("a folder").keep();
        let mut settings: Vec<_> = settings.iter().map(ToString::to_string).collect();
        // By itself a cluster's second port is 10,000 above the first, where outgoing connections have theirs.
        settings.extend(["--cluster-port".to_owned(), free_port().to_string()]);
        let server = Self { running: Mutex::new(None), folder, port: free_port(), settings };
        server.restart();
        server
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends it as a crash would.
    pub fn kill(&self) {
        if let Some(running) = self.running.lock().expect("no test has panicked here").take() {
            running.crash();
        }
    }

    /// Starts it again on the same port, with what it had.
    pub fn restart(&self) {
        let mut running = self.running.lock().expect("no test has panicked here");
        assert!(running.is_none(), "it is running");
        let port = self.port.to_string();
        let mut arguments = vec![
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
        ];
        arguments.extend(self.settings.iter().map(String::as_str));
        *running = Some(Running::start(None, &self.folder, Path::new(PROGRAM), &arguments));
        wait_until_open(self.port, &self.folder);
        self.wait_until_loaded();
    }

    /// It takes connections before it has read what it had, and refuses every question meanwhile.
    fn wait_until_loaded(&self) {
        let is_loading = || -> io::Result<bool> {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
            stream.write_all(b"PING\r\n")?;
            let mut answer = String::new();
            BufReader::new(stream).read_line(&mut answer)?;
            Ok(answer.starts_with("-LOADING"))
        };
        while is_loading().expect("it takes connections") {
            sleep(Duration::from_millis(10));
        }
    }

    /// It stands still until it is resumed: connections stay open, and nothing answers.
    pub fn pause(&self) {
        process::pause(self.id());
    }

    pub fn resume(&self) {
        process::resume(self.id());
    }

    fn id(&self) -> i32 {
        self.running.lock().expect("no test has panicked here").as_ref().expect("it is running").server
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        match self.running.get_mut().ok().and_then(Option::take) {
            Some(running) => running.end(),
            None => drop(fs::remove_dir_all(&self.folder)),
        }
    }
}
