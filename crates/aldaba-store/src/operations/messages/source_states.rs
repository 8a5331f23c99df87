//! Events of a source by their states. A state follows from deliveries, and those that wait or are dead are in indexes of their
//! endpoints: where there are few of them, nothing else is read.

use crate::operations::codes::StoredState;
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result};
use crate::{EventState, Order, SourceEventsQuery};
use aldaba_delivery::{EndpointId, MessageId};
use std::collections::BTreeSet;

/// Endpoints and deliveries that are read. Where there are more, so many events are in the state that they are found among
/// all events.
const MAX_ROWS: usize = 2000;

statements! {
    /// Deleted ones too: their deliveries count.
    ENDPOINTS = "SELECT id FROM endpoint WHERE app = ?1 ORDER BY id LIMIT ?2";
    WAITING = "SELECT message, state FROM delivery WHERE endpoint = ?1 AND state = 0 LIMIT ?2";
    /// With those that were skipped.
    DEAD = "SELECT message, state FROM delivery WHERE endpoint = ?1 AND state >= 2 LIMIT ?2";
}

/// All events of a part of the list that may be in the wanted state, in its order. `None`: they may be too many, or their
/// state is not one that can be found so.
pub(crate) fn few(reading: &dyn Reading, query: &SourceEventsQuery) -> Result<Option<Vec<MessageId>>> {
    let (wanted, deliveries) = match query.state {
        Some(EventState::Processing) => (StoredState::Waiting, &WAITING),
        Some(EventState::Failed) => (StoredState::Dead, &DEAD),
        Some(EventState::Processed) | None => return Ok(None),
    };
    let most = MAX_ROWS.min(query.part.walk);
    let endpoints: Vec<EndpointId> = reading.all(&ENDPOINTS, values![query.app, most + 1])?;
    let (low, high) = query.part.bounds();
    let (mut rows, mut messages) = (endpoints.len(), BTreeSet::new());
    for endpoint in endpoints {
        if rows > most {
            return Ok(None);
        }
        let found: Vec<(MessageId, StoredState)> =
            reading.all(deliveries, values![endpoint, most + 1 - rows])?;
        rows += found.len();
        let inside = found
            .into_iter()
            .filter(|(message, state)| *state == wanted && low < *message && *message < high);
        messages.extend(inside.map(|(message, _)| message));
    }
    if rows > most {
        return Ok(None);
    }
    let mut messages: Vec<_> = messages.into_iter().collect();
    if query.part.order == Order::Descending {
        messages.reverse();
    }
    Ok(Some(messages))
}
