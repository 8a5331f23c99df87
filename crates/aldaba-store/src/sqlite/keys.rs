//! What must not happen twice.

use crate::{IdempotencyKey, RequestDigest};
use aldaba_delivery::Timestamp;
use rusqlite::{CachedStatement, Connection, OptionalExtension};

#[derive(Clone, Copy, Debug)]
pub(super) enum KeyKind {
    EventId = 0,
    Idempotency = 1,
}

/// One key of an application or an organization.
#[derive(Clone, Copy, Debug)]
pub(super) struct UniqueKey<'a> {
    pub(super) owner: &'a [u8; 20],
    pub(super) kind: KeyKind,
    pub(super) key: &'a [u8],
}

/// How long a key counts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kept {
    Until(Timestamp),
    /// As long as what it led to is kept, and not less than until a moment.
    WithResource {
        at_least: Option<Timestamp>,
    },
}

/// A key counts for as long as its row is there, whatever the clock says: a wrong one must not let it be used
/// again. Rows are removed by the engine, on a clock that it trusts.
pub(super) const FIND: &str = "SELECT resource FROM unique_key WHERE owner = ?1 AND kind = ?2 AND key = ?3";

pub(super) struct Keys<'c> {
    find: CachedStatement<'c>,
    keep: CachedStatement<'c>,
}

impl<'c> Keys<'c> {
    pub(super) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            find: connection.prepare_cached(FIND)?,
            keep: connection.prepare_cached(
                "INSERT OR REPLACE INTO unique_key (owner, kind, key, resource, expires_at, at_least)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?,
        })
    }

    /// The bytes of the id that the key led to.
    pub(super) fn find(&mut self, key: UniqueKey<'_>) -> rusqlite::Result<Option<[u8; 20]>> {
        let UniqueKey { owner, kind, key } = key;
        self.find.query_row((owner, kind as i64, key), |row| row.get(0)).optional()
    }

    /// The bytes of the id that a request has led to, under its current digest or its former one.
    pub(super) fn find_request(
        &mut self,
        owner: &[u8; 20],
        digest: &RequestDigest,
    ) -> rusqlite::Result<Option<[u8; 20]>> {
        let RequestDigest { current, former } = digest;
        for key in [Some(current), former.as_ref()].into_iter().flatten() {
            let found = self.find(UniqueKey { owner, kind: KeyKind::Idempotency, key })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    pub(super) fn keep_request(
        &mut self,
        owner: &[u8; 20],
        used: &IdempotencyKey,
        resource: &[u8; 20],
    ) -> rusqlite::Result<()> {
        let key = UniqueKey { owner, kind: KeyKind::Idempotency, key: &used.digest.current };
        self.keep(key, resource, Kept::Until(used.expires_at))
    }

    pub(super) fn keep(
        &mut self,
        key: UniqueKey<'_>,
        resource: &[u8; 20],
        kept: Kept,
    ) -> rusqlite::Result<()> {
        let UniqueKey { owner, kind, key } = key;
        let (expires_at, at_least) = match kept {
            Kept::Until(end) => (Some(end.millis()), None),
            Kept::WithResource { at_least } => (None, at_least.map(Timestamp::millis)),
        };
        self.keep.execute((owner, kind as i64, key, resource, expires_at, at_least))?;
        Ok(())
    }
}
