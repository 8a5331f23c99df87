//! Replays of an organization.

use super::{Error, Missing, Questions};
use aldaba_store::{Replay, ReplaysQuery};

impl Questions<'_> {
    pub(crate) async fn replay(&self, id: &str) -> Result<Replay, Error> {
        let id = id.parse().map_err(|_| Missing::Replay)?;
        self.store().replay(self.caller.org(), id).await?.ok_or_else(|| Missing::Replay.into())
    }

    pub(crate) async fn replays(&self, query: ReplaysQuery) -> Result<Vec<Replay>, Error> {
        Ok(self.store().replays(ReplaysQuery { org: self.caller.org(), ..query }).await?)
    }
}
