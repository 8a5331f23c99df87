//! What came of attempts.

use crate::sqlite::op::Reply;
use crate::sqlite::{Op, SqliteStore, record};
use crate::{Done, Read, Record, Recorded, Records, RequestDigest, Resent};
use aldaba_delivery::{AppId, AttemptId};

impl Records for SqliteStore {
    fn record(&self, batch: Vec<Record>, done: Done<Vec<Recorded>>) {
        self.write(Op::Record(batch), Reply::Record(done));
    }

    fn resent(&self, resent: Resent, done: Done<()>) {
        self.write(Op::Resent(Box::new(resent)), Reply::Resent(done));
    }

    fn attempt_of_key(&self, app: AppId, digest: RequestDigest) -> Read<Option<AttemptId>> {
        self.read(move |connection| record::attempt_of_key(connection, app, &digest))
    }
}
