//! What a thing is before a change of it, for the audit log.

use super::{credentials, event_type, policy, profile, rows, source};
use crate::{Subject, Values};
use rusqlite::{Connection, OptionalExtension};

/// `None`: it is not there.
pub(super) fn read(connection: &Connection, subject: Subject<'_>) -> rusqlite::Result<Option<Values>> {
    match subject {
        Subject::Application(app) => {
            let select = format!("SELECT {} FROM application WHERE id = ?1", rows::APPLICATION);
            let mut find = connection.prepare_cached(&select)?;
            let found = find.query_row((app.as_bytes(),), rows::application).optional()?;
            Ok(found.as_ref().map(Values::from))
        }
        Subject::Endpoint(app, endpoint) => {
            let select = format!("SELECT {} FROM endpoint WHERE id = ?1 AND app = ?2", rows::ENDPOINT);
            let mut find = connection.prepare_cached(&select)?;
            let found = find.query_row((endpoint.as_bytes(), app.as_bytes()), rows::endpoint).optional()?;
            Ok(found.as_ref().map(|endpoint| Values::from(&endpoint.config)))
        }
        Subject::EventType(org, name) => {
            Ok(event_type::one(connection, org, name)?.as_ref().map(Values::from))
        }
        Subject::Policy(org, name) => Ok(policy::one(connection, org, name)?.as_ref().map(Values::from)),
        Subject::Profile(org, name) => Ok(profile::one(connection, org, name)?.as_ref().map(Values::from)),
        Subject::ApiKey(org, id) => Ok(credentials::one(connection, org, id)?.as_ref().map(Values::from)),
        Subject::Source(id) => Ok(source::by_id(connection, id)?.as_ref().map(Values::from)),
    }
}
