//! How many messages were sent on a day, by organization and application. The counts are read once in a batch
//! and written with it, in the same commit as the messages.

use crate::{Accept, Quota, QuotaOf};
use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Counts of former days that one commit takes away.
const SWEPT: i64 = 100;

const COUNT: &str = "SELECT count FROM message_count WHERE day = ?1 AND owner = ?2";
/// The three newest days are kept whatever their dates: a clock that is a year ahead does not make today's
/// counts go.
const SWEEP: &str = "DELETE FROM message_count WHERE (day, owner) IN
    (SELECT day, owner FROM message_count WHERE day < min(?1,
        (SELECT max(day) FROM message_count WHERE day <
            (SELECT max(day) FROM message_count WHERE day < (SELECT max(day) FROM message_count)))) LIMIT ?2)";

/// Whose messages of which day.
type Key = (i64, [u8; 20]);

/// The counts of a batch.
#[derive(Debug, Default)]
pub(super) struct Counts(BTreeMap<Key, Count>);

#[derive(Debug)]
struct Count {
    /// On disk.
    before: i64,
    more: i64,
}

impl Counts {
    /// Counts a message, or says whose limit is reached.
    pub(super) fn count(
        &mut self,
        connection: &Connection,
        accept: &Accept,
        quota: &Quota,
    ) -> rusqlite::Result<Option<QuotaOf>> {
        let day = Quota::day_of(accept.message.created_at);
        let of_organization = (QuotaOf::Organization, (day, *quota.org.as_bytes()), quota.organization);
        let of_application = (QuotaOf::Application, (day, *accept.app.as_bytes()), quota.application);
        let limits = [of_organization, of_application];
        for (whose, key, most) in &limits {
            let Some(most) = *most else { continue };
            let sent = self.read(connection, *key)?;
            if u64::try_from(sent.before + sent.more).unwrap_or(0) >= most {
                return Ok(Some(*whose));
            }
        }
        for (_, key, _) in limits.iter().filter(|(_, _, most)| most.is_some()) {
            self.read(connection, *key)?.more += 1;
        }
        Ok(None)
    }

    fn read(&mut self, connection: &Connection, key: Key) -> rusqlite::Result<&mut Count> {
        match self.0.entry(key) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(unknown) => {
                let mut count = connection.prepare_cached(COUNT)?;
                let before: Option<i64> = count.query_row(key, |row| row.get(0)).optional()?;
                Ok(unknown.insert(Count { before: before.unwrap_or(0), more: 0 }))
            }
        }
    }

    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        for ((day, owner), Count { before, more }) in self.0.iter().filter(|(_, count)| count.more > 0) {
            let mut add = connection.prepare_cached(
                "INSERT INTO message_count (day, owner, count) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET count = count + excluded.count",
            )?;
            add.execute((day, owner, more))?;
            if *before == 0 {
                // The clock may have been set back by a day.
                connection.prepare_cached(SWEEP)?.execute((day - 1, SWEPT))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::in_memory;
    use crate::sqlite::plan::plan;

    #[test]
    fn counts_are_found_and_swept_by_their_key() {
        assert_eq!(plan(COUNT), "SEARCH message_count USING PRIMARY KEY (day=? AND owner=?)");
        assert!(!plan(SWEEP).contains("SCAN message_count"), "{}", plan(SWEEP));
    }

    #[test]
    fn former_days_go_when_a_new_one_begins() {
        let connection = in_memory().unwrap();
        for day in 0..5 {
            let count = Count { before: 0, more: 3 };
            Counts(BTreeMap::from([((day, [1; 20]), count)])).write(&connection).unwrap();
        }
        let mut days = connection.prepare("SELECT day FROM message_count ORDER BY day").unwrap();
        let days: Vec<i64> = days.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(days, [2, 3, 4]);
    }
}
