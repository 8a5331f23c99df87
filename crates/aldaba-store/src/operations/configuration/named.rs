//! What policies and wire profiles of organizations have in common: a name within the organization, and endpoints that use it.

use crate::Changed;
use crate::operations::transaction::{ReadingExt, values};
use crate::operations::{Reading, Result, Statement, Transaction, application};
use aldaba_delivery::{AppId, EndpointId, OrgId, Timestamp};

/// The statements of one table.
pub(crate) struct Named {
    pub create: &'static Statement,
    pub replace: &'static Statement,
    pub delete: &'static Statement,
    /// The first application after another one of which an endpoint uses the name.
    pub next_user: &'static Statement,
    /// An endpoint of an application that uses it.
    pub endpoint_of: &'static Statement,
}

/// Declares the statements of a table. `$column`: the column of endpoints that has the name.
macro_rules! named {
    ($table:literal, $column:literal) => {
        statements! {
            CREATE = concat!(
                "INSERT INTO ", $table, " (org, name, body, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO NOTHING"
            );
            REPLACE = concat!("UPDATE ", $table, " SET body = ?3, updated_at = ?4 WHERE org = ?1 AND name = ?2");
            DELETE = concat!("DELETE FROM ", $table, " WHERE org = ?1 AND name = ?2");
            KNOWN = concat!("SELECT 1 FROM ", $table, " WHERE org = ?1 AND name = ?2");
            ALL = concat!(
                "SELECT org, name, body, created_at, updated_at FROM ", $table, " ORDER BY org, name"
            );
            ONE = concat!(
                "SELECT org, name, body, created_at, updated_at FROM ", $table, " WHERE org = ?1 AND name = ?2"
            );
            // The conditions are those of the index.
            NEXT_USER = concat!(
                "SELECT app FROM endpoint WHERE org = ?1 AND ", $column, " = ?2 AND app > ?3
                 AND ", $column, " IS NOT NULL AND deleted = 0 ORDER BY app LIMIT 1"
            );
            ENDPOINT_OF = concat!(
                "SELECT id FROM endpoint WHERE org = ?1 AND ", $column, " = ?2 AND app = ?3
                 AND ", $column, " IS NOT NULL AND deleted = 0 LIMIT 1"
            );
        }

        static NAMED: super::named::Named = super::named::Named {
            create: &CREATE,
            replace: &REPLACE,
            delete: &DELETE,
            next_user: &NEXT_USER,
            endpoint_of: &ENDPOINT_OF,
        };
    };
}
pub(crate) use named;

impl Named {
    pub(crate) fn create(
        &self,
        tx: &dyn Transaction,
        (org, name, body): (OrgId, &str, &str),
        (created_at, updated_at): (Timestamp, Timestamp),
    ) -> Result<Changed> {
        let made = tx.execute(self.create, values![org, name, body, created_at, updated_at])?;
        Ok(if made == 0 { Changed::UidTaken } else { Changed::done() })
    }

    pub(crate) fn replace(
        &self,
        tx: &dyn Transaction,
        (org, name, body): (OrgId, &str, &str),
        at: Timestamp,
    ) -> Result<Changed> {
        tx.execute(self.replace, values![org, name, body, at]).map(Changed::found)
    }

    pub(crate) fn delete(&self, tx: &dyn Transaction, org: OrgId, name: &str) -> Result<Changed> {
        if let Some(endpoint) = self.user(tx, org, name)? {
            return Ok(Changed::InUse { endpoint: Some(endpoint) });
        }
        tx.execute(self.delete, values![org, name]).map(Changed::found)
    }

    /// An endpoint that uses the name. Those of a deleted application do not count, and may be very many: they are passed
    /// over application by application.
    fn user(&self, reading: &dyn Reading, org: OrgId, name: &str) -> Result<Option<EndpointId>> {
        let mut after = AppId::from_bytes([0; 20]);
        while let Some(app) = reading.one(self.next_user, values![org, name, after])? {
            if !application::is_deleted(reading, app)? {
                return reading.one(self.endpoint_of, values![org, name, app]);
            }
            after = app;
        }
        Ok(None)
    }
}
