//! Events are taken in.

use crate::sqlite::op::Reply;
use crate::sqlite::{Op, SqliteStore};
use crate::{Accept, Accepted, Accepts, Done, Error};

impl Accepts for SqliteStore {
    fn accept(&self, batch: Vec<Accept>, done: Done<Vec<Accepted>>) {
        if self.space.is_low() {
            return done.call(Err(Error::Full));
        }
        self.write(Op::Accept(batch), Reply::Accept(done));
    }
}
