//! Sending again.

use crate::sqlite::monotonic::Slice;
use crate::sqlite::op::Reply;
use crate::sqlite::{Op, SqliteStore, replay};
use crate::{Done, Error, Read, Replay, ReplayCount, ReplayStep, ReplayStepped, Replays, ReplaysQuery};
use aldaba_delivery::{MessageId, OrgId, ReplayId};

impl Replays for SqliteStore {
    fn step_replay(&self, step: ReplayStep, done: Done<ReplayStepped>) {
        // What it opens makes results, which need room too.
        if self.space.is_low() {
            return done.call(Err(Error::Full));
        }
        self.write(Op::StepReplay(step), Reply::StepReplay(done));
    }

    fn replay(&self, org: OrgId, id: ReplayId) -> Read<Option<Replay>> {
        self.read(move |connection| replay::one(connection, org, id))
    }

    fn replays(&self, query: ReplaysQuery) -> Read<Vec<Replay>> {
        self.read(move |connection| replay::list(connection, query))
    }

    fn running_replays(&self) -> Read<Vec<Replay>> {
        self.read(replay::running)
    }

    fn count_replay(&self, replay: Replay, after: Option<MessageId>, look: usize) -> Read<ReplayCount> {
        let (clock, length) = (self.clock.clone(), self.count_slice);
        self.read(move |connection| {
            let slice = Slice::begin(&clock, length);
            replay::count_matches(connection, &slice, &replay, after, look)
        })
    }
}
