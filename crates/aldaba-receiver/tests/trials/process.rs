use super::Trial;
use super::child::{HASTY, LISTENING, NAME, PLACE};
use super::pausing::SAID;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// A child that receives.
pub(crate) struct Process {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
    pub(crate) port: u16,
}

/// Which ledger it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Right,
    Hasty,
}

impl Process {
    pub(crate) async fn start<T: Trial>(trial: &T, which: Which) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child", "--ignored", "--nocapture"]);
        command.env(NAME, T::NAME).env(PLACE, trial.place());
        if which == Which::Hasty {
            command.env(HASTY, "yes");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = hear(&mut said, LISTENING).await.parse().unwrap();
        Self { child, said, port }
    }

    pub(crate) async fn stands_still(&mut self) {
        hear(&mut self.said, SAID).await;
    }

    /// As `kill -9` does.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// Waits for a line that has these words, and says what follows them.
async fn hear(said: &mut Lines<BufReader<ChildStdout>>, words: &str) -> String {
    while let Some(line) = said.next_line().await.unwrap() {
        // The harness has begun the line.
        if let Some((_, rest)) = line.split_once(words) {
            return rest.to_owned();
        }
    }
    panic!("the child has ended without a word; see what it printed above");
}
