//! Due times that a wrong clock has stored.

use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Result, delivery, message};
use crate::{BackendReads, FutureDelivery, LanePosition, Seq};
use aldaba_delivery::{AppId, EndpointId, OrgId, Timestamp};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

statements! {
    /// Two searches, as in `lanes.rs`.
    NOT_DUE = "SELECT due_at, seq, endpoint FROM delivery WHERE state = 0 AND due_at = ?1 AND seq > ?2
        UNION ALL
        SELECT due_at, seq, endpoint FROM delivery WHERE state = 0 AND due_at > ?1
        ORDER BY due_at, seq LIMIT ?3";
    OWNER = "SELECT app, org, policy FROM endpoint WHERE id = ?1";
}

pub(crate) fn future_deliveries(
    reading: &dyn BackendReads,
    after: LanePosition,
    limit: usize,
) -> Result<Vec<FutureDelivery>> {
    let mut owners: HashMap<EndpointId, Option<(AppId, OrgId, String)>> = HashMap::new();
    let mut found = Vec::new();
    let positions: Vec<(Timestamp, Seq, EndpointId)> =
        reading.all(&NOT_DUE, values![after.due_at, after.seq, limit])?;
    for (_, seq, endpoint) in positions {
        let Some(waiting) = delivery::waiting(reading, seq)? else { continue };
        let owner = match owners.entry(endpoint) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(reading.one(&OWNER, values![endpoint])?),
        };
        let Some((app, org, policy)) = owner.clone() else { continue };
        let (mut deliver_at, mut tried_at) = (None, None);
        if waiting.attempts == 0 {
            deliver_at = message::deliver_at(reading, app, waiting.message)?;
        } else {
            tried_at = reading.last_scheduled_attempt(waiting.message, seq)?;
        }
        found.push(FutureDelivery { waiting, endpoint, app, org, policy, deliver_at, tried_at });
    }
    Ok(found)
}
