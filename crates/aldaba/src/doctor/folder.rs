//! The folder, its files, and the disk below.

use super::Finding;
use crate::config::Config;
use crate::shell::full_path;
use aldaba_store::{FolderState, has_database};
use rustix::fs::{Access, access, statfs, statvfs};
use std::path::Path;

/// A log that is this large has not been copied into the database for long. Copying begins at a quarter of it.
const LARGE_LOG: u64 = 1 << 30;
/// File systems that SQLite's log does not work on, by their magic numbers in Linux.
const NETWORK_FILE_SYSTEMS: [(u32, &str); 4] =
    [(0x6969, "NFS"), (0xff53_4d42, "CIFS"), (0xfe53_4d42, "SMB"), (0x0102_1997, "9P")];

/// `None`: there is nothing to look into.
pub(super) fn examine(config: &Config, findings: &mut Vec<Finding>) -> Option<FolderState> {
    let folder = config.data();
    let shown = full_path(folder);
    match has_database(folder) {
        Ok(true) => {}
        Ok(false) => {
            findings.push(Finding::problem(
                "folder",
                format!("there is no Aldaba installation in {shown}: it has no aldaba.db"),
                "name the folder of your server with --data or ALDABA_DATA, or restore a backup",
            ));
            return None;
        }
        Err(error) => {
            findings.push(Finding::problem(
                "folder",
                format!("{shown} cannot be read: {error}"),
                "run the command as the user of the server, for example with `sudo --user`",
            ));
            return None;
        }
    }
    let state = match FolderState::of(folder) {
        Ok(state) => state,
        Err(error) => {
            findings.push(Finding::problem(
                "folder",
                format!("{shown} cannot be read: {error}"),
                "run the command as the user of the server",
            ));
            return None;
        }
    };
    findings.push(match access(folder, Access::WRITE_OK) {
        Ok(()) => Finding::ok("folder", format!("{shown} is there and can be written")),
        Err(error) => Finding::problem(
            "folder",
            format!("{shown} cannot be written: {error}"),
            "give it to the user of the server, with mode 0700; run this command as that user",
        ),
    });
    findings.push(permissions(&state));
    findings.push(file_system(folder));
    findings.push(space(config));
    findings.push(log(&state));
    Some(state)
}

fn permissions(state: &FolderState) -> Finding {
    const CHECK: &str = "permissions";
    if state.open_to_others.is_empty() {
        return Finding::ok(CHECK, "only the owner can read the folder and its files");
    }
    let open: Vec<_> =
        state.open_to_others.iter().map(|(name, mode)| format!("{name} ({mode:04o})")).collect();
    Finding::warning(
        CHECK,
        format!("other users can read or write: {}", open.join(", ")),
        "chmod 0700 the folder and 0600 its files; with systemd: StateDirectoryMode=0700",
    )
}

fn file_system(folder: &Path) -> Finding {
    const CHECK: &str = "file-system";
    let Ok(found) = statfs(folder) else {
        return Finding::ok(CHECK, "the system does not say what it is");
    };
    #[expect(clippy::cast_possible_truncation, reason = "magic numbers have 32 bits")]
    let magic = found.f_type as u32;
    match NETWORK_FILE_SYSTEMS.iter().find(|(known, _)| *known == magic) {
        None => Finding::ok(CHECK, "it is local, as far as the system says"),
        Some((_, name)) => Finding::problem(
            CHECK,
            format!("the folder is on {name}, where commits are not safe"),
            "stop the server and move the folder to a local disk",
        ),
    }
}

fn space(config: &Config) -> Finding {
    const CHECK: &str = "space";
    let Ok(disk) = statvfs(config.data()) else {
        return Finding::ok(CHECK, "the disk does not say how much room it has");
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let low = config.store.low_space_bytes;
    let room = format!("{} MiB are free", free >> 20);
    let action =
        "free some space on the disk of the data folder, or shorten retention periods (docs/retention.md)";
    if free < low {
        let detail =
            format!("{room}, less than `low_space_bytes` ({} MiB): messages are refused (507)", low >> 20);
        return Finding::problem(CHECK, detail, action);
    }
    if free < low.saturating_mul(2) {
        return Finding::warning(
            CHECK,
            format!("{room}; below {} MiB messages are refused", low >> 20),
            action,
        );
    }
    Finding::ok(CHECK, room)
}

fn log(state: &FolderState) -> Finding {
    const CHECK: &str = "log";
    let sizes = format!(
        "the database has {} MiB, its write-ahead log {} MiB",
        state.database_bytes >> 20,
        state.log_bytes >> 20
    );
    if state.log_bytes < LARGE_LOG {
        return Finding::ok(CHECK, sizes);
    }
    Finding::warning(
        CHECK,
        sizes,
        "another program reads the database for long, such as a backup or a shell: let it end. The log starts over by itself",
    )
}
