//! Ctrl-C or SIGTERM during a case leaves neither a server nor a folder behind.

use crate::background::runtime;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::io;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

const EXIT: i32 = 130;

static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// A server to kill on a signal.
pub(crate) fn watch(server: Pid) {
    RUNNING.lock().push(server);
}

pub(crate) fn forget(server: Pid) {
    RUNNING.lock().retain(|running| *running != server);
}

/// Installs the cleanup for signals.
pub(crate) fn clean_up_at_signal(folder: PathBuf) -> io::Result<()> {
    let runtime = runtime()?;
    let (mut interrupt, mut terminate) = {
        let _inside = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        // Held until the end, so that no other server starts meanwhile.
        let running = RUNNING.lock();
        for server in &*running {
            let _ = kill_process(*server, Signal::KILL);
            let _ = waitpid(Some(*server), WaitOptions::empty());
        }
        let _ = std::fs::remove_dir_all(folder);
        std::process::exit(EXIT);
    });
    Ok(())
}
