//! The database: its schema, whether it has lost commits, whether it is whole, its keys, the clock, and what waits.

use super::{Finding, keys};
use crate::config::Config;
use crate::shell::full_path;
use aldaba_delivery::Timestamp;
use aldaba_engine::{CLOCK_SETTING, ClockRecord, PAUSE_SETTING, PauseRecord};
use aldaba_store::{OpenError, Snapshot, known_schema};

/// Problems of the database that are listed.
const LISTED: usize = 5;
const DAMAGED: &str = "stop the server, keep a copy of the whole folder, and restore a backup (docs/backup.md); look at the disk";

pub(super) fn examine(config: &Config, thorough: bool, now: Timestamp, findings: &mut Vec<Finding>) {
    let snapshot = match Snapshot::begin(config.data()) {
        Ok(snapshot) => snapshot,
        Err(error @ OpenError::FromTheFuture { .. }) => {
            findings.push(Finding::problem(
                "schema",
                error.to_string(),
                "run that version; what a downgrade needs is in docs/backup.md",
            ));
            return;
        }
        Err(error) => {
            findings.push(Finding::problem("integrity", error.to_string(), DAMAGED));
            return;
        }
    };
    findings.push(schema(&snapshot));
    findings.push(watermark(&snapshot));
    findings.push(integrity(&snapshot, thorough));
    keys::examine(config, &snapshot, findings);
    findings.push(clock(&snapshot, now));
    findings.push(sending(config, &snapshot, now));
}

fn schema(snapshot: &Snapshot) -> Finding {
    const CHECK: &str = "schema";
    let (found, known) = (snapshot.schema(), known_schema());
    let writer =
        snapshot.program().map(|version| format!(", last written by Aldaba {version}")).unwrap_or_default();
    if found < known {
        return Finding::ok(
            CHECK,
            format!(
                "schema {found}{writer}; the next start of this version brings it to {known}: make a backup before"
            ),
        );
    }
    Finding::ok(CHECK, format!("schema {found}{writer}"))
}

fn watermark(snapshot: &Snapshot) -> Finding {
    const CHECK: &str = "watermark";
    match snapshot.loss() {
        None => {
            Finding::ok(CHECK, format!("commit {} is the last one, and none is missing", snapshot.commit()))
        }
        Some(loss) => Finding::problem(
            CHECK,
            format!("the database has gone back: {loss} Accepted messages are missing"),
            "put back the aldaba.db and aldaba.db-wal that belong together, or restore a backup; docs/configuration.md, \"The \
             database has gone back\"",
        ),
    }
}

fn integrity(snapshot: &Snapshot, thorough: bool) -> Finding {
    const CHECK: &str = "integrity";
    match snapshot.problems(thorough) {
        Err(error) => Finding::problem(CHECK, error.to_string(), DAMAGED),
        Ok(problems) if problems.is_empty() => {
            let how =
                if thorough { "with its indexes" } else { "without comparing its indexes; --thorough does" };
            Finding::ok(CHECK, format!("the database is whole, {how}"))
        }
        Ok(problems) => {
            let listed = problems.iter().take(LISTED).cloned().collect::<Vec<_>>().join("; ");
            Finding::problem(CHECK, format!("the database is damaged: {listed}"), DAMAGED)
        }
    }
}

fn clock(snapshot: &Snapshot, now: Timestamp) -> Finding {
    const CHECK: &str = "clock";
    let record = snapshot.setting(CLOCK_SETTING).ok().flatten();
    let record = record.and_then(|bytes| ClockRecord::from_bytes(&bytes));
    let newest = snapshot.newest_moment().ok().flatten().map(ClockRecord::trusted);
    match record.or(newest) {
        Some(record) if !record.would_trust(now) => Finding::warning(
            CHECK,
            "the machine's clock is more than a day ahead, or an hour behind, of where the server has seen it: nothing is \
             removed and nothing ends by time",
            "set the clock; if it is right, run `aldaba clock trust`",
        ),
        _ => Finding::ok(CHECK, "the machine's clock is where it is expected"),
    }
}

fn sending(config: &Config, snapshot: &Snapshot, now: Timestamp) -> Finding {
    const CHECK: &str = "sending";
    let waiting = match snapshot.pending(now) {
        Ok(pending) => format!("{} deliveries wait, {} of them are due", pending.waiting, pending.due),
        Err(error) => return Finding::problem(CHECK, error.to_string(), DAMAGED),
    };
    let stored = snapshot.setting(PAUSE_SETTING).ok().flatten();
    match stored.and_then(|bytes| PauseRecord::from_bytes(&bytes)) {
        None => Finding::ok(CHECK, waiting),
        Some(_) => Finding::warning(
            CHECK,
            format!("nothing is sent, because the folder was restored from a backup; {waiting}"),
            format!("to send what waits: aldaba restore --resume --data {}", full_path(config.data())),
        ),
    }
}
