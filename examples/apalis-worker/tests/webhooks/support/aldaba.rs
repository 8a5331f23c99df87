//! The real server, as a process with data of its own.

use super::WAIT_TIMEOUT;
use super::http::post;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

pub(crate) struct Aldaba {
    process: Child,
    folder: PathBuf,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    pub(crate) app: String,
}

impl Aldaba {
    /// With one application.
    pub(crate) async fn start(folder: &Path) -> Self {
        let made = binary().args(["init", "--data"]).arg(folder).output().unwrap();
        assert!(made.status.success(), "no installation: {}", String::from_utf8_lossy(&made.stderr));
        let (process, address) = serve(folder);
        let output = binary().args(["token", "create", "--data"]).arg(folder).output().unwrap();
        assert!(output.status.success(), "no token: {}", String::from_utf8_lossy(&output.stderr));
        let token = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        let app = post(address, "/api/v1/app", &token, r#"{"name": "Worker"}"#).await;
        let app = app["id"].as_str().unwrap().to_owned();
        Self { process, folder: folder.to_owned(), address, token, app }
    }

    pub(crate) fn stop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Again, with the same data, at another address.
    pub(crate) fn start_again(&mut self) {
        (self.process, self.address) = serve(&self.folder);
    }
}

impl Drop for Aldaba {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn serve(folder: &Path) -> (Child, SocketAddr) {
    let mut command = binary();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder);
    command.env("ALDABA_ALLOW_NETWORKS", "127.0.0.0/8").env("ALDABA_LOG", "warn").stdout(Stdio::piped());
    // Tests share their disk and processors with others, and are not about that.
    command.env("ALDABA_QUEUE_MILLISECONDS", "30000");
    let mut process = command.spawn().unwrap();
    let output = BufReader::new(process.stdout.take().unwrap());
    let (found, address) = mpsc::channel();
    std::thread::spawn(move || {
        // To its end, because a server whose output nobody reads would stop at some time.
        for line in output.lines().map_while(Result::ok) {
            if let Some(address) = address_in(&line) {
                let _ = found.send(address);
            }
        }
    });
    let address = address.recv_timeout(WAIT_TIMEOUT).expect("the server has printed no address");
    (process, address)
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("http://")?;
    let end = rest.find(|c: char| !(c.is_ascii_digit() || ".:".contains(c))).unwrap_or(rest.len());
    rest[..end].trim_end_matches('.').parse().ok()
}

fn binary() -> Command {
    let Some(path) = std::env::var_os("ALDABA_BIN") else {
        panic!(
            "these tests need a server: run `cargo xtask examples` at the root, or build it there \
             (`cargo build --bin aldaba`) and set ALDABA_BIN to the absolute path of the binary"
        );
    };
    let mut command = Command::new(path);
    // It would wonder what this is for.
    command.env_remove("ALDABA_BIN");
    command
}
