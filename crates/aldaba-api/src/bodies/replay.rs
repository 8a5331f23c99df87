//! Replays: sending again what has ended, in the background.

use super::attempt::{Attempt, Status};
#[cfg(feature = "server")]
use crate::names::{channel, name as check_name, tag};
#[cfg(feature = "server")]
use crate::read::{choice_of, moment, names, number, size, text, toggle};
use crate::{Timestamp, request, response, words};
use serde_json::Value;

/// Event types that one request can name.
#[cfg(feature = "server")]
pub const MAX_EVENT_TYPES: usize = 100;

request! {
    /// Which messages are sent again.
    Replay "ReplayIn" = {"since": "2025-01-31T12:00:00Z"} {
        /// Messages accepted from then on.
        required since: Timestamp = moment();
        /// Until then; now, if not given.
        nullable until: Timestamp = moment();
        /// Of one of these types.
        nullable event_types: Vec<String> = names(MAX_EVENT_TYPES, check_name).undescribed();
        /// With this channel.
        nullable channel: String = text().by(channel);
        /// With this tag.
        nullable tag: String = text().by(tag);
        /// Deliveries that are opened a second at most.
        nullable rate_per_second: u32 = number(1, 10_000);
        /// Only count.
        given dry_run: bool = toggle();
    }
}

impl Replay {
    /// Everything since a moment.
    pub fn since(since: impl Into<Timestamp>) -> Self {
        Self { since: since.into(), ..Self::default() }
    }
}

request! {
    /// Which messages are sent again, with more to choose by.
    BulkReplay "BulkReplayIn" = {"since": "2025-01-31T12:00:00Z", "eventTypes": ["invoice.paid"], "dryRun": true} {
        /// Messages accepted from then on.
        required since: Timestamp = moment();
        /// Until then; now, if not given.
        nullable until: Timestamp = moment();
        /// Of one of these types.
        nullable event_types: Vec<String> = names(MAX_EVENT_TYPES, check_name).undescribed();
        /// With this channel.
        nullable channel: String = text().by(channel);
        /// With this tag.
        nullable tag: String = text().by(tag);
        /// Deliveries that are opened a second at most.
        nullable rate_per_second: u32 = number(1, 10_000);
        /// Only count.
        given dry_run: bool = toggle();
        /// 0 success, 2 fail, 4 cancelled.
        nullable status: Status = choice_of(&[0, 2, 4], "0 (success), 2 (fail) or 4 (cancelled): others are still on their way");
        /// 0 (no answer), 100, 200, 300, 400 or 500.
        nullable status_code_class: u16 = choice_of(&[0, 100, 200, 300, 400, 500], "0 (no answer), 100, 200, 300, 400 or 500");
        /// Also what the endpoint was never sent.
        given missing: bool = toggle();
    }
}

impl BulkReplay {
    /// Everything since a moment.
    pub fn since(since: impl Into<Timestamp>) -> Self {
        Self { since: since.into(), ..Self::default() }
    }
}

impl From<Replay> for BulkReplay {
    fn from(replay: Replay) -> Self {
        let Replay { since, until, event_types, channel, tag, rate_per_second, dry_run } = replay;
        Self { since, until, event_types, channel, tag, rate_per_second, dry_run, ..Self::default() }
    }
}

words! {
    /// How far a background task is.
    TaskStatus {
        /// It goes on.
        Running = "running",
        /// It did all it should.
        Finished = "finished",
        /// It ended early.
        Failed = "failed",
    }
}

response! {
    /// Work that goes on in the background.
    BackgroundTask "TaskOut" of BackgroundTaskView {
        /// Such as `qtask_…`.
        required id: String;
        /// How far it is.
        required status: TaskStatus = text();
        /// What it is: `endpoint.recover`, `endpoint.replay`, `endpoint.bulk-replay` or `application.erase`.
        required task: String;
        /// When its status was last seen to change.
        required updated_at: Timestamp = moment();
        /// What came of it so far.
        required data: Value;
    }
}

response! {
    /// What a replay would send.
    ReplayCount "CountOut" of ReplayCountView {
        /// So many.
        required count: u64 = size();
        /// Counting was given up there.
        required at_least: bool;
        /// What one replay opens at most.
        required most: u64 = size();
    }
}

response! {
    /// What was sent once more.
    Resent "ResentOut" of ResentView {
        /// The attempt that was made; a repeat of the request shows the one that the first has made. Null where it is still
        /// under way: it is on the list of the message's attempts once it has ended.
        nullable attempt: Attempt;
    }
}
