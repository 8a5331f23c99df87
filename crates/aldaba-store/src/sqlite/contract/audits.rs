//! Who changed what.

use crate::sqlite::{SqliteStore, audit};
use crate::{AuditPage, AuditQuery, Audits, Read};

impl Audits for SqliteStore {
    fn audit(&self, query: AuditQuery) -> Read<AuditPage> {
        self.read(move |connection| audit::list(connection, &query))
    }
}
