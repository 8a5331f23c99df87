//! How many messages were sent on a day, by organization and application. The counts are read once in a batch
//! and written with it, in the same commit as the messages.

use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Transaction};
use crate::{Accept, Quota, QuotaOf};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// MessageCounts of former days that one commit takes away.
const REMOVED_AT_ONCE: usize = 100;
/// So many of the newest days are kept whatever their dates: a clock that is a year ahead does not remove today's counts.
const DAYS_KEPT: usize = 3;

statements! {
    COUNT = "SELECT count FROM message_count WHERE day = ?1 AND owner = ?2";
    ADD = "INSERT INTO message_count (day, owner, count) VALUES (?1, ?2, ?3)
        ON CONFLICT (day, owner) DO UPDATE SET count = message_count.count + excluded.count";
    DAY_BEFORE = "SELECT day FROM message_count WHERE day < ?1 ORDER BY day DESC LIMIT 1";
    OLD = "SELECT day, owner FROM message_count WHERE day < ?1 ORDER BY day, owner LIMIT ?2";
    REMOVE = "DELETE FROM message_count WHERE day = ?1 AND owner = ?2";
}

/// Removes the counts of an owner. Few days are kept.
pub(crate) fn forget(tx: &dyn Transaction, owner: &[u8; 20]) -> Result<usize> {
    let (mut day, mut removed) = (i64::MAX, 0);
    while let Some(before) = tx.one(&DAY_BEFORE, values![day])? {
        day = before;
        removed += tx.execute(&REMOVE, values![day, owner])?;
    }
    Ok(removed)
}

/// Whose messages of which day.
type Key = (i64, [u8; 20]);

/// The counts of a batch.
#[derive(Clone, Debug, Default)]
pub struct MessageCounts(BTreeMap<Key, Count>);

#[derive(Clone, Copy, Debug)]
struct Count {
    /// On disk.
    before: i64,
    more: i64,
}

impl MessageCounts {
    /// MessageCounts a message, or says whose limit is reached.
    pub fn count(
        &mut self,
        reading: &dyn Reading,
        accept: &Accept,
        quota: &Quota,
    ) -> Result<Option<QuotaOf>> {
        let day = Quota::day_of(accept.message.created_at);
        let of_organization = (QuotaOf::Organization, (day, *quota.org.as_bytes()), quota.organization);
        let of_application = (QuotaOf::Application, (day, *accept.app.as_bytes()), quota.application);
        let limits = [of_organization, of_application];
        for (whose, key, most) in &limits {
            let Some(most) = *most else { continue };
            let sent = self.read(reading, *key)?;
            if u64::try_from(sent.before + sent.more).unwrap_or(0) >= most {
                return Ok(Some(*whose));
            }
        }
        for (_, key, _) in limits.iter().filter(|(_, _, most)| most.is_some()) {
            self.read(reading, *key)?.more += 1;
        }
        Ok(None)
    }

    fn read(&mut self, reading: &dyn Reading, key: Key) -> Result<&mut Count> {
        match self.0.entry(key) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(unknown) => {
                let before = reading.number(&COUNT, values![key.0, key.1])?;
                Ok(unknown.insert(Count { before, more: 0 }))
            }
        }
    }

    pub fn write(&self, tx: &dyn Transaction) -> Result<()> {
        for ((day, owner), Count { before, more }) in self.0.iter().filter(|(_, count)| count.more > 0) {
            tx.execute(&ADD, values![day, owner, more])?;
            if *before == 0 {
                remove_old(tx, *day)?;
            }
        }
        Ok(())
    }
}

/// Removes counts of days before the newest ones, and before yesterday: the clock may have been set back by a day.
fn remove_old(tx: &dyn Transaction, today: i64) -> Result<()> {
    let mut oldest_kept = i64::MAX;
    for _ in 0..DAYS_KEPT {
        let Some(day) = tx.one(&DAY_BEFORE, values![oldest_kept])? else { return Ok(()) };
        oldest_kept = day;
    }
    let old: Vec<Key> = tx.all(&OLD, values![oldest_kept.min(today - 1), REMOVED_AT_ONCE])?;
    for (day, owner) in old {
        tx.execute(&REMOVE, values![day, owner])?;
    }
    Ok(())
}
