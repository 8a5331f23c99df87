//! Event types of organizations.

use crate::operations::stored::{columns, insert, parameters, replacements, stored};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Transaction};
use crate::{Changed, EventType, EventTypeChange, EventTypeWrite};
use aldaba_delivery::{OrgId, Timestamp};

stored! { EventType {
    id, org, name, description, archived, deprecated, validate, schemas, feature_flags, group_name, created_at,
    updated_at,
} }

statements! {
    UPDATED_AT = "SELECT updated_at FROM event_type WHERE org = ?1 AND name = ?2";
    PUT = format!(
        "{} ON CONFLICT (org, name) DO UPDATE SET {}",
        insert::<EventType>("event_type"), replacements::<EventType>()
    );
    REMOVE = "DELETE FROM event_type WHERE org = ?1 AND name = ?2";
    ALL = format!("SELECT {} FROM event_type ORDER BY org, name", columns::<EventType>());
    ONE = format!("SELECT {} FROM event_type WHERE org = ?1 AND name = ?2", columns::<EventType>());
}

/// All or none: every write is compared with what its caller has read before the first is made.
pub(crate) fn write(tx: &dyn Transaction, change: &EventTypeChange) -> Result<Changed> {
    for EventTypeWrite { name, was, .. } in &change.writes {
        if tx.one::<Timestamp>(&UPDATED_AT, values![change.org, name])? != *was {
            return Ok(Changed::Stale);
        }
    }
    for EventTypeWrite { name, now, .. } in &change.writes {
        match now {
            Some(event_type) => tx.execute(&PUT, &parameters(event_type))?,
            None => tx.execute(&REMOVE, values![change.org, name])?,
        };
    }
    Ok(Changed::done())
}

pub(crate) fn all(reading: &dyn Reading) -> Result<Vec<EventType>> {
    reading.all(&ALL, values![])
}

pub(crate) fn one(reading: &dyn Reading, org: OrgId, name: &str) -> Result<Option<EventType>> {
    reading.one(&ONE, values![org, name])
}
