//! What was dispatched to addresses. Each state has its own stretch of the index; a list of all of them merges these.

use crate::operations::codes::StoredState;
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, delivery, message};
use crate::{DeliveryStatus, Dispatch, DispatchState, DispatchesQuery, ListPage, Order};
use aldaba_delivery::{AppId, MessageId};

/// Bounds know their moments roughly: so many rows more than a page are read that those beside it do not empty it.
const ROWS_BESIDE: usize = 64;

statements! {
    OF_STATE[order] = format!(
        "SELECT message FROM delivery
         WHERE dispatched > 0 AND app = ?1 AND dispatched = ?2 AND state = ?3 AND message > ?4 AND message < ?5
         ORDER BY message {} LIMIT ?6", order.word
    );
    OF_JOB[order] = format!(
        "SELECT id FROM message WHERE app = ?1 AND job = ?2 AND job IS NOT NULL AND id > ?3 AND id < ?4
         ORDER BY id {} LIMIT ?5", order.word
    );
    /// Not `dispatched > 0`, or SQLite would search among all that the application has dispatched.
    NEWEST = format!(
        "SELECT {} FROM delivery WHERE message = ?1 AND dispatched <> 0 AND app = ?2 ORDER BY seq DESC LIMIT 1",
        delivery::COLUMNS
    );
    ADDRESS = "SELECT url, policy FROM endpoint WHERE id = ?1";
}

pub(crate) fn list(reading: &dyn Reading, query: &DispatchesQuery) -> Result<ListPage<Dispatch, MessageId>> {
    let (messages, stopped) = match &query.job {
        Some(job) => of_job(reading, query, job)?,
        None => by_state(reading, query)?,
    };
    let (mut found, mut bytes) = (ListPage { stopped, ..ListPage::default() }, 0);
    for message in messages {
        if found.items.len() >= query.part.page.limit {
            break;
        }
        if let Some(dispatch) = one(reading, query.app, message)?
            && query.wants(dispatch.delivery.status.state)
            && query.part.within.includes(dispatch.message.created_at)
        {
            bytes += dispatch.message.content.bytes();
            found.items.push(dispatch);
            if bytes > query.bytes {
                found.stopped = Some(message);
                break;
            }
        }
    }
    if found.items.len() >= query.part.page.limit {
        found.stopped = None;
    }
    Ok(found)
}

/// Messages, and where to go on if there may be more than were read.
type Read = (Vec<MessageId>, Option<MessageId>);

fn by_state(reading: &dyn Reading, query: &DispatchesQuery) -> Result<Read> {
    let states: &[StoredState] = match query.state {
        None => &[StoredState::Waiting, StoredState::Delivered, StoredState::Dead, StoredState::Skipped],
        Some(DispatchState::Pending) => &[StoredState::Waiting],
        Some(DispatchState::Delivered) => &[StoredState::Delivered],
        Some(DispatchState::Failed) => &[StoredState::Dead, StoredState::Skipped],
    };
    let (low, high) = query.part.bounds();
    let most = query.part.page.limit.saturating_add(ROWS_BESIDE);
    let order = |a: &MessageId, b: &MessageId| match query.part.order {
        Order::Ascending => a.cmp(b),
        Order::Descending => b.cmp(a),
    };
    let (mut messages, mut stopped) = (Vec::new(), None);
    for state in states {
        let statement = OF_STATE.by(query.part.order);
        let of_state: Vec<MessageId> =
            reading.all(statement, values![query.app, query.how, state, low, high, most])?;
        // Beyond the last of them there may be more of this state between those of others.
        if let Some(last) = of_state.last().filter(|_| of_state.len() >= most) {
            stopped = Some(stopped.map_or(*last, |before| std::cmp::min_by(before, *last, order)));
        }
        messages.extend(of_state);
    }
    messages.sort_unstable_by(order);
    messages.dedup();
    if let Some(stopped) = &stopped {
        messages.retain(|message| order(message, stopped).is_le());
    }
    Ok((messages, stopped))
}

fn of_job(reading: &dyn Reading, query: &DispatchesQuery, job: &str) -> Result<Read> {
    let (low, high) = query.part.bounds();
    let most = query.part.walk;
    let messages: Vec<MessageId> =
        reading.all(OF_JOB.by(query.part.order), values![query.app, job, low, high, most])?;
    let stopped = messages.last().copied().filter(|_| messages.len() >= most);
    Ok((messages, stopped))
}

pub(crate) fn one(reading: &dyn Reading, app: AppId, message: MessageId) -> Result<Option<Dispatch>> {
    let newest = reading.one::<DeliveryStatus>(&NEWEST, values![message, app])?;
    let Some(status) = newest else { return Ok(None) };
    let address: Option<(String, String)> = reading.one(&ADDRESS, values![status.endpoint])?;
    let (Some((url, policy)), Some(message)) = (address, message::whole(reading, app, message)?) else {
        return Ok(None);
    };
    Ok(Some(Dispatch { delivery: delivery::view(reading, app, status)?, message, url, policy }))
}
