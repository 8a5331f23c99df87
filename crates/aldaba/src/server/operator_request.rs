//! Requests of the operator to a running server, which commands leave in its data folder: `aldaba clock trust` and
//! `aldaba restore --resume`.
//!
//! A request is a file. A server that has done it renames the file: that is the answer. A file that disappears without an
//! answer was taken for one of an earlier server, and is made again.

use aldaba_store::Error;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The interval at which a server looks for a request.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The interval at which the command looks for the answer.
const ANSWER_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How long a command waits for a server to do its request.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The operator's request to a running server: a file in its data folder.
#[derive(Clone)]
pub(crate) struct OperatorRequest {
    /// The server's task that does such requests.
    pub(crate) task: &'static str,
    /// What is asked for.
    what: &'static str,
    request: PathBuf,
    answer: PathBuf,
}

impl OperatorRequest {
    /// To trust the machine's clock.
    pub(crate) fn trust_clock(data: &Path) -> Self {
        let (request, answer) = (data.join("clock.trust"), data.join("clock.trusted"));
        Self { task: "clock-requests", what: "trust the clock", request, answer }
    }

    /// To send again after a restore.
    pub(crate) fn resume(data: &Path) -> Self {
        let (request, answer) = (data.join("sending.resume"), data.join("sending.resumed"));
        Self { task: "resume-requests", what: "resume sending", request, answer }
    }

    /// Removes what was left for an earlier server. A command that still waits asks again.
    pub(crate) fn forget(&self) {
        for file in [&self.request, &self.answer] {
            match fs::remove_file(file) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(%error, file = %file.display(), "cannot remove a former request to {}", self.what);
                }
                _ => {}
            }
        }
    }

    /// Asks the server that holds the data folder. Returns when it has done that.
    pub(crate) async fn ask(&self) -> io::Result<()> {
        self.forget();
        self.make()?;
        loop {
            tokio::time::sleep(ANSWER_POLL_INTERVAL).await;
            // In this order: one becomes the other in one step.
            if self.request.try_exists()? {
                continue;
            }
            if self.answer.try_exists()? {
                self.forget();
                return Ok(());
            }
            self.make()?;
        }
    }

    fn make(&self) -> io::Result<()> {
        let open = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&self.request);
        open.map(drop)
    }

    /// Does requests until it is dropped.
    pub(crate) async fn serve<F>(self, act: impl Fn() -> F)
    where
        F: Future<Output = Result<(), Error>>,
    {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            if !self.clone().off_the_runtime(|files| files.request.try_exists()).await.unwrap_or(false) {
                continue;
            }
            if let Err(error) = act().await {
                tracing::warn!(%error, "cannot {}; trying again", self.what);
                continue;
            }
            match self.clone().off_the_runtime(|files| fs::rename(&files.request, &files.answer)).await {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(%error, "cannot answer the request to {}", self.what);
                }
                _ => {}
            }
        }
    }

    /// A slow disk must delay no delivery.
    async fn off_the_runtime<T: Send + 'static>(
        self,
        look: impl FnOnce(&Self) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        tokio::task::spawn_blocking(move || look(&self)).await?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_engine::{Background, SystemClock};
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn a_request_is_done_though_the_server_panics_at_first() {
        let folder = tempfile::tempdir().unwrap();
        let (requests, calls) = (OperatorRequest::trust_clock(folder.path()), Arc::new(AtomicU32::new(0)));
        let background = Background::new(Arc::new(SystemClock::new()));
        let serving = tokio::spawn({
            let (requests, background, calls) = (requests.clone(), background.clone(), calls.clone());
            async move {
                let serve = || {
                    let (requests, calls) = (requests.clone(), calls.clone());
                    requests.serve(move || {
                        assert!(calls.fetch_add(1, Ordering::SeqCst) > 0, "on purpose");
                        std::future::ready(Ok(()))
                    })
                };
                background.supervised(requests.task, serve).await;
            }
        });
        requests.ask().await.unwrap();
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        assert_eq!(
            background.restarted().iter().map(|task| task.name).collect::<Vec<_>>(),
            ["clock-requests"]
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
        serving.abort();
    }

    #[tokio::test]
    async fn a_request_that_a_starting_server_removes_is_made_again_and_only_its_owner_may_write_it() {
        let folder = tempfile::tempdir().unwrap();
        let requests = OperatorRequest::trust_clock(folder.path());
        let asking = tokio::spawn({
            let requests = requests.clone();
            async move { requests.ask().await }
        });
        for _ in 0..2 {
            while !requests.request.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let mode = fs::metadata(&requests.request).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            requests.forget();
        }
        let serving = tokio::spawn(requests.serve(|| std::future::ready(Ok(()))));
        asking.await.unwrap().unwrap();
        serving.abort();
    }
}
