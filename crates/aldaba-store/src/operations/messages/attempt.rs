//! Attempts, and lists of them.

use crate::operations::column::from_row;
use crate::operations::lists::{self, Looked};
use crate::operations::stored::{columns, columns_without, stored};
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Reading, Result, Slice, Transaction, keys, message};
use crate::{
    Attempt, AttemptFilter, AttemptScope, AttemptsQuery, BoundedCount, Changed, ListPage, RequestDigest, Seq,
};
use aldaba_delivery::{AppId, AttemptId, EndpointId, MessageId, Timestamp};

stored! { Attempt {
    id, seq, message, endpoint, started_at, duration, status_code, failure, error, response, trigger: "made_by",
    success,
} }

/// What a list looks at, without what came back.
struct Facts {
    id: AttemptId,
    seq: Seq,
    message: MessageId,
    endpoint: EndpointId,
    started_at: Timestamp,
    status_code: Option<u16>,
    success: bool,
}

from_row!(Facts { id, seq, message, endpoint, started_at, status_code, success });

const FACTS: &str = "SELECT id, seq, message, endpoint, started_at, status_code, success FROM attempt";
const BETWEEN: &str = "id > ?1 AND id < ?2";
const KEY: &str = "message = ?1 AND seq = ?2 AND id = ?3";
/// The condition of the index of unusual attempts, in the same words.
const UNUSUAL: &str = "(success = 0 OR status_code < 200 OR status_code > 299)";

statements! {
    OF_ENDPOINT[order] = format!("{FACTS} WHERE endpoint = ?4 AND {BETWEEN} ORDER BY id {} LIMIT ?3", order.word);
    UNUSUAL_OF_ENDPOINT[order] =
        format!("{FACTS} WHERE {UNUSUAL} AND endpoint = ?4 AND {BETWEEN} ORDER BY id {} LIMIT ?3", order.word);
    /// The attempts of a message lie in the order of its deliveries, and are sorted.
    OF_MESSAGE[order] = format!("{FACTS} WHERE message = ?4 AND {BETWEEN} ORDER BY id {} LIMIT ?3", order.word);
    OF_DELIVERY[order] =
        format!("{FACTS} WHERE message = ?4 AND seq = ?5 AND {BETWEEN} ORDER BY id {} LIMIT ?3", order.word);
    WHOLE = format!("SELECT {} FROM attempt WHERE {KEY}", columns::<Attempt>());
    BARE = format!("SELECT {} FROM attempt WHERE {KEY}", columns_without::<Attempt>(&["response"]));
    ONE = format!("SELECT {} FROM attempt WHERE message = ?1 AND id = ?2", columns::<Attempt>());
    EXPUNGE = "UPDATE attempt SET response = ?3 WHERE message = ?1 AND id = ?2 AND response <> ?3";
    EXISTS = "SELECT 1 FROM attempt WHERE message = ?1 AND id = ?2";
}

pub(crate) fn list(
    reading: &dyn Reading,
    slice: &Slice<'_>,
    query: &AttemptsQuery,
) -> Result<ListPage<Attempt, AttemptId>> {
    let statement = if query.responses { &WHOLE } else { &BARE };
    walk(reading, slice, query, |facts| {
        reading.one::<Attempt>(statement, values![facts.message, facts.seq, facts.id])
    })
}

pub(crate) fn count(reading: &dyn Reading, slice: &Slice<'_>, query: &AttemptsQuery) -> Result<BoundedCount> {
    let found = walk(reading, slice, query, |_| Ok(Some(())))?;
    let counted = found.items.len();
    Ok(BoundedCount {
        counted: counted as u64,
        more: found.stopped.is_some() || counted >= query.part.page.limit,
    })
}

fn walk<T>(
    reading: &dyn Reading,
    slice: &Slice<'_>,
    query: &AttemptsQuery,
    mut read: impl FnMut(&Facts) -> Result<Option<T>>,
) -> Result<ListPage<T, AttemptId>> {
    let (part, filter) = (&query.part, &query.filter);
    let order = part.order;
    let page = |low: AttemptId, high: AttemptId, rows: usize| match query.scope {
        AttemptScope::Endpoint(endpoint) if filter.wants_only_unusual() => {
            reading.all(UNUSUAL_OF_ENDPOINT.by(order), values![low, high, rows, endpoint])
        }
        AttemptScope::Endpoint(endpoint) => {
            reading.all(OF_ENDPOINT.by(order), values![low, high, rows, endpoint])
        }
        AttemptScope::Message(message) => {
            reading.all(OF_MESSAGE.by(order), values![low, high, rows, message])
        }
        AttemptScope::Delivery(message, seq) => {
            reading.all(OF_DELIVERY.by(order), values![low, high, rows, message, seq])
        }
    };
    let mut messages = Messages { reading, filter, last: None };
    lists::walk(
        part.into(),
        slice,
        page,
        |facts: &Facts| facts.id,
        |facts, _: &mut Looked| {
            let wanted = filter.wants(facts.success, facts.status_code, facts.endpoint)
                && part.within.includes(facts.started_at)
                && messages.fit(facts.message)?;
            if wanted { read(&facts) } else { Ok(None) }
        },
    )
}

/// Looks at the messages of attempts. Those of one message often follow each other, so that the last answer is kept.
struct Messages<'a> {
    reading: &'a dyn Reading,
    filter: &'a AttemptFilter,
    last: Option<(MessageId, bool)>,
}

impl Messages<'_> {
    fn fit(&mut self, message: MessageId) -> Result<bool> {
        let Some((app, filter)) = &self.filter.message else { return Ok(true) };
        if let Some((_, fits)) = self.last.filter(|(last, _)| *last == message) {
            return Ok(fits);
        }
        let fits = message::fits(self.reading, *app, message, filter)?;
        self.last = Some((message, fits));
        Ok(fits)
    }
}

pub(crate) fn one(reading: &dyn Reading, message: MessageId, attempt: AttemptId) -> Result<Option<Attempt>> {
    reading.one(&ONE, values![message, attempt])
}

pub(crate) fn expunge(tx: &dyn Transaction, message: MessageId, attempt: AttemptId) -> Result<Changed> {
    if tx.execute(&EXPUNGE, values![message, attempt, Attempt::EXPUNGED])? > 0 {
        return Ok(Changed::done());
    }
    Ok(if tx.exists(&EXISTS, values![message, attempt])? { Changed::Unchanged } else { Changed::NotFound })
}

/// The manual attempt that a key has led to.
pub(crate) fn of_key(reading: &dyn Reading, app: AppId, digest: &RequestDigest) -> Result<Option<AttemptId>> {
    let found = keys::find_request(reading, app.as_bytes(), digest)?;
    Ok(found.map(AttemptId::from_bytes))
}
